"""The reach of restricted hooks: real folders, a real fork server, real workers, the kernel's own refusals."""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.config.settings import HooksSettings
from gateway.hooks import HookRegistry
from gateway.hooks.manifests.manifest import read_manifest
from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.worker.sandbox import find_support
from tests.hooks.folders.workshop import Home, hook_of
from tests.hooks.wires.workshop import is_alive
from tests.spine import until

SUPPORT = find_support()
pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing)),
]

# Each try becomes "done", or the error's name; `options` says where things are.
TRIES = """
import errno, os, socket, subprocess, tempfile
from pathlib import Path

def note(function, *args):
    try:
        function(*args)
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

def connect(port):
    socket.create_connection(("127.0.0.1", port), 5).close()

def handle(event_type, context):
    at = context.options
    home = Path(os.environ["HERMES_HOME"])
    return {
        "found": {
            "secret": note((home / ".env").read_text),
            "other hook": note(os.listdir, home / "hooks" / "other"),
            "said": note(Path(at["said"]).read_text) if "said" in at else "",
            "write said": note((Path(at["writes"]) / "new").write_text, "x") if "writes" in at else "",
            "own": note((Path(__file__).parent / "own.txt").write_text, "x"),
            "data": note((context.data / "kept").write_text, "x"),
            "temporary": note(tempfile.NamedTemporaryFile),
            "tcp": note(connect, at["port"]),
            "udp": note(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()),
            "program": note(lambda: subprocess.run(["sh", "-c", "true"], check=True)),
            "variables": [name for name in ("SSH_AUTH_SOCK", "DISPLAY", "XDG_RUNTIME_DIR") if name in os.environ],
        }
    }
"""
OPEN = {"secret", "other hook", "own", "data", "temporary", "tcp", "udp", "program"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / ".env").write_text("TOKEN=x\n")
    home = Home(tmp_path)
    home.note("other")
    return home


@pytest.fixture
def port(tmp_path: Path) -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def plant(home: Home, name: str, keys: str = "", **options: Any) -> None:
    home.plant(name, f"intercepts: ['my:*']\noptions: {json.dumps(options)}\n{keys}", TRIES)


def lock(home: Home, name: str, path: str = "", **grants: Any) -> None:
    """As if this hook had been installed, and so much agreed to."""
    entry: dict[str, Any] = {
        "source": "x",
        "commit": None,
        "digest": read_whole_folder(home.root / (path or f"hooks/{name}")).digest,
        "path": path or f"hooks/{name}",
        "packages": [],
    }
    entry["grants"] = {"intercepts": ["my:*"], **grants}
    (home.root / "hooks.lock").write_text(json.dumps({"version": 1, "hooks": {name: entry}}))


async def tries(home: Home, **environ: Any) -> dict[str, Any]:
    """Return the successes of the hook; fails with the hook's own reason if it does not run."""
    async with home.serving(HookRegistry(), **environ) as service:
        trial = await service.fire("tries", "my:event")
        assert not trial.error, trial.error
        assert trial.result, home.log("tries")
        found: dict[str, Any] = trial.result["found"]
        return found


def done(found: dict[str, Any]) -> set[str]:
    return {name for name, became in found.items() if became == "done"}


DESKTOP = {"SSH_AUTH_SOCK": "/run/agent", "DISPLAY": ":0", "XDG_RUNTIME_DIR": "/run/user/0"}


async def test_a_placed_folder_that_says_nothing_is_restricted_by_nothing_new(home: Home, port: int) -> None:
    plant(home, "tries", port=port)
    found = await tries(home, **DESKTOP)
    assert done(found) == OPEN
    assert found["variables"] == ["SSH_AUTH_SOCK", "DISPLAY", "XDG_RUNTIME_DIR"]


async def test_one_word_restricts_a_placed_hook_to_what_is_its_own(home: Home, port: int) -> None:
    plant(home, "tries", "net: false\n", port=port)
    found = await tries(home, **DESKTOP)
    assert done(found) == {"own", "data", "temporary", "program"}
    assert found["variables"] == []
    assert {found[name] for name in ("secret", "other hook", "tcp", "udp")} == {"EACCES"}
    assert (home.root / "data" / "tries" / "kept").read_text() == "x"


async def test_what_a_hook_says_it_reaches_it_reaches(home: Home, port: int, tmp_path: Path) -> None:
    for name in ("shown", "kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "shown" / "page").write_text("page")
    keys = f"reads: [{tmp_path}/shown]\nwrites: [~/kept]\nnet: [{port}]\n"
    plant(home, "tries", keys, port=port, said=f"{tmp_path}/shown/page", writes=f"{tmp_path}/kept")
    os.environ["HOME"], before = str(tmp_path), os.environ["HOME"]
    try:
        found = await tries(home)
    finally:
        os.environ["HOME"] = before
    assert done(found) == {"own", "data", "temporary", "program", "said", "write said", "tcp"}


async def test_all_of_the_network_is_said_as_true(home: Home, port: int) -> None:
    plant(home, "tries", "net: true\n", port=port)
    assert {"tcp", "udp"} <= done(await tries(home))


async def test_an_installed_hook_is_restricted_though_it_says_nothing(home: Home, port: int) -> None:
    plant(home, "tries", port=port)
    lock(home, "tries")
    assert done(await tries(home)) == {"data", "temporary", "program"}


async def test_an_installed_hook_has_what_it_says_and_its_owner_agreed_to(home: Home, port: int) -> None:
    plant(home, "tries", f"net: [{port}]\nreads: [{home.root}/.env]\n", port=port)
    lock(home, "tries", net=True, reads=[str(home.root)])
    assert done(await tries(home)) == {"data", "temporary", "program", "tcp", "secret"}


@pytest.mark.parametrize(
    ("says", "agreed", "named"),
    [
        ("net: true", {"net": [443]}, "net: all of it"),
        ("net: [443, 80]", {"net": [443]}, "net: TCP to the ports 443, 80"),
        ("reads: [/etc/passwd]", {"reads": ["/etc/pass"]}, "reads: /etc/passwd"),
        ("reads: [/srv/../etc]", {"reads": ["/srv"]}, "reads: /srv/../etc"),
        ("writes: [~/kept]", {"reads": ["~/kept"]}, "writes: ~/kept"),
        ("uses: [send, store]", {"uses": ["store"]}, "uses: send"),
        ("env: [API_KEY]", {}, "env: API_KEY"),
        ("events: ['agent:end']", {}, "events: agent:end"),
        ("schedule: every 5m", {}, "schedule: every 5m"),
    ],
)
async def test_what_goes_beyond_the_agreement_waits_and_says_so(
    home: Home, says: str, agreed: dict[str, Any], named: str
) -> None:
    plant(home, "tries", f"{says}\n")
    lock(home, "tries", **agreed)
    async with home.serving(HookRegistry()) as service:
        status = await service.info("tries")
    assert (status.state, named in status.reason) == ("pending", True), status.reason


async def test_what_was_agreed_to_by_a_link_is_where_the_link_led(home: Home, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "out").symlink_to("/etc")
    plant(home, "tries", f"reads: [{tmp_path}/given/out/shadow]\n")
    lock(home, "tries", reads=[str(tmp_path / "given")])
    async with home.serving(HookRegistry()) as service:
        assert (await service.info("tries")).state == "pending"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"version": 1, "hooks": {"tries": {"path": "hooks/tries", "grants": {"net": "yes"}}}}', "$.grants.net"),
        ('{"version": 1, "hooks": {"tries": {"path": "hooks/tries"}}}', "grants"),
    ],
)
async def test_an_agreement_that_cannot_be_read_is_none(home: Home, text: str, named: str) -> None:
    plant(home, "tries")
    (home.root / "hooks.lock").write_text(text)
    async with home.serving(HookRegistry()) as service:
        status, other = await service.info("tries"), await service.info("other")
    assert status.state == "broken"
    assert "hooks.lock: hooks.tries" in status.reason
    assert named in status.reason
    assert other.state == "loaded"


@pytest.mark.parametrize("text", ["{", '{"version": 2, "hooks": {}}', '{"version": 1}'])
async def test_no_installed_hook_runs_under_a_lock_that_cannot_be_read(home: Home, text: str) -> None:
    home.hooks = home.root / "installed"
    plant(home, "tries")
    (home.root / "hooks.lock").write_text(text)
    async with home.serving(HookRegistry()) as service:
        status = await service.info("tries")
        assert "hooks.lock" in service.trouble
    assert status.state == "broken"
    assert "hooks.lock cannot be read" in status.reason


async def test_who_lies_among_the_installed_and_is_not_named_does_not_run(home: Home) -> None:
    home.hooks = home.root / "installed"
    plant(home, "tries")
    async with home.serving(HookRegistry()) as service:
        status = await service.info("tries")
    assert status.state == "broken"
    assert "does not name it" in status.reason


async def test_another_agreement_holds_at_the_next_look(home: Home, port: int) -> None:
    plant(home, "tries", f"net: [{port}]\n", port=port)
    lock(home, "tries")
    async with home.serving(HookRegistry()) as service:
        assert (await service.info("tries")).state == "pending"
        lock(home, "tries", net=[port])
        await service.reload("tries")
        assert (await service.info("tries")).state == "loaded"
        assert (await service.fire("tries", "my:event")).result["found"]["tcp"] == "done"


async def test_a_restricted_hook_never_runs_in_the_gateway_itself(home: Home) -> None:
    plant(home, "tries", "net: false\n", port=1)
    settings = HooksSettings(each={"tries": HooksSettings().find_overrides("tries")})
    async with home.serving(HookRegistry(), settings=settings) as service:
        assert hook_of(service, "tries").process.wire
        assert (await service.info("tries")).pid


PROGRAM = """#!{python}
import errno, json, os, socket, sys
def note(function, *args):
    try:
        function(*args)
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def look():
    home, data = os.environ["HERMES_HOME"], os.environ["HOOK_DATA"]
    return {{
        "found": {{
            "secret": note(lambda: open(home + "/.env").read()),
            "own": note(lambda: open("own.txt", "w").write("x")),
            "data": note(lambda: open(data + "/kept", "w").write("x")),
            "udp": note(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()),
        }}
    }}
print("it began", file=sys.stderr, flush=True)
"""
LINES = """
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": look()}), flush=True)
"""
ONESHOT = """
sys.stdin.read()
print(json.dumps(look()))
"""


@pytest.mark.parametrize(("protocol", "body"), [("lines", LINES), ("oneshot", ONESHOT)])
@pytest.mark.parametrize(
    ("keys", "open_to_it"), [("", {"secret", "own", "data", "udp"}), ("net: false\n", {"own", "data"})]
)
async def test_a_program_is_held_as_a_handler_is(
    home: Home, protocol: str, body: str, keys: str, open_to_it: set[str]
) -> None:
    manifest = f"intercepts: ['my:*']\ncommand: ./run\nprotocol: {protocol}\n{keys}"
    home.plant("tries", manifest, run=PROGRAM.format(python=sys.executable) + body)
    assert done(await tries(home)) == open_to_it
    assert "it began" in home.log("tries")
    assert (home.root / "data" / "tries" / "kept").read_text() == "x"


async def test_a_restricted_program_ends_with_all_that_it_started(home: Home) -> None:
    script = """\
    #!/bin/sh
    (setsid sleep 300 & echo $! > "$HOOK_DATA/detached")
    exec cat > /dev/null
    """
    home.plant("tries", "events: ['my:*']\ncommand: ./run\nnet: false\n", run=script)
    async with home.serving(HookRegistry()) as service:
        status = await service.info("tries")
        assert status.state == "loaded"
        told = home.root / "data/tries/detached"
        await until(lambda: told.exists() and told.read_text().endswith("\n"))
        detached = int(told.read_text())
        assert is_alive(detached)
        assert is_alive(status.pid)
        os.kill(status.pid, signal.SIGKILL)
        await until(lambda: not is_alive(detached))
        await until(lambda: hook_of(service, "tries").process.restarts == 1)


async def test_a_restricted_program_that_is_not_there_says_so_in_its_log(home: Home) -> None:
    home.plant("tries", "events: ['my:*']\ncommand: [no-such-program]\nnet: false\n")
    async with home.serving(HookRegistry()) as service:
        await until(lambda: "no-such-program cannot be started" in home.log("tries"))
        await until(lambda: hook_of(service, "tries").process.restarts >= 1)


async def test_what_it_reaches_is_shown(home: Home, tmp_path: Path) -> None:
    plant(home, "tries", f"reads: [/etc/hosts]\nwrites: [{tmp_path}/missing]\nnet: [443]\n")
    async with home.serving(HookRegistry()) as service:
        status, free = await service.info("tries"), await service.info("other")
    assert status.restricted == "its manifest says what it reaches"
    assert status.reads == (str(home.hooks / "tries"), "/etc/hosts")
    assert status.writes == (str(tmp_path / "data/tries"), str(home.hooks / "tries"), f"{tmp_path}/missing (not there)")
    assert (status.net, status.unheld, free.restricted) == ("TCP to the ports 443", (), "")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("reads: [notes]\n", "reads` holds `notes`, which is not a whole path; write it from / on, or from ~/ on"),
        ("writes: [~ann/x]\n", "writes` holds `~ann/x`, which is not a whole path"),
        ("net: 443\n", "`net` is a number"),
        ("net: [0]\n", "`net.1` is out of range"),
        ("net: maybe\n", "`net` is text"),
        ("url: 'http://localhost:1/x'\nreads: [/x]\n", "`reads` means nothing beside `url`"),
    ],
)
def test_what_cannot_be_meant_is_an_error_at_its_place(tmp_path: Path, keys: str, said: str) -> None:
    folder = tmp_path / "hook"
    folder.mkdir()
    (folder / "HOOK.yaml").write_text(f"events: [agent:end]\n{keys}")
    errors = [str(finding) for finding in read_manifest(folder).errors]
    assert any(said in error and error.startswith("hook/HOOK.yaml:") for error in errors), errors

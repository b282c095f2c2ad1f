"""A hook's store is its own: another hook of its name, from elsewhere, does not find it, and nothing is lost."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.hooks.durable.hook_expiry import OWNER
from gateway.installer.source import parse_source, remove_version
from gateway.records import records, subjects
from gateway.testing import GatewayProcess
from tests.cli.test_install import commit, lock_of
from tests.installer.archives import GREET, MANIFEST, put
from tests.installer.signed import Signer

pytestmark = pytest.mark.process

COUNTS = """
async def handle(event_type, context):
    store = context.gateway.store
    await store.set("n", await store.get("n", 0) + 1)
    with open(context.data / "n", "a") as file:
        file.write("x")
"""


@pytest.fixture
def gateway(tmp_path: Path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.home.root.mkdir(mode=0o700)
        yield gateway


def place(folder: Path) -> str:
    """A hook that counts in its store and in its folder."""
    return str(put(folder, {**GREET, "handler.py": COUNTS}))


def fire(gateway: GatewayProcess, data: str) -> tuple[Any, str]:
    """Fire an event, and return the counts of the hook in the two places."""
    assert gateway.cli("hooks", "fire", "greet", "agent:end").returncode == 0
    kept = gateway.call("hooks.info", {"name": "greet"})["kept"]["n"]
    return kept, (gateway.home.hook_data / data / "n").read_text()


def install(gateway: GatewayProcess, source: str) -> tuple[str, str]:
    """Under which name it keeps what it keeps, and what was said."""
    done = gateway.cli("hooks", "install", source, "--yes")
    assert done.returncode == 0, done.stderr
    return lock_of(gateway)["greet"]["stored_as"], done.stderr


def install_by_hand(gateway: GatewayProcess, source: str, answers: list[str]) -> str:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "gateway.cli", "hooks", "install", source]
    with subprocess.Popen(words, env=gateway.environ, stdin=theirs, stderr=subprocess.PIPE) as asked:
        os.close(theirs)
        assert asked.stderr
        shown = b""
        for answer in answers:
            shown += b"\n"
            while not shown.endswith(b"[y/N] "):
                shown += (more := os.read(asked.stderr.fileno(), 1000))
                assert more, shown
            os.write(ours, answer.encode() + b"\n")
        shown += asked.stderr.read()
    os.close(ours)
    return shown.decode()


@pytest.mark.row("T25")
def test_what_a_hook_keeps_is_found_by_none_of_its_name_from_elsewhere(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.start()
    one, two, three = (place(tmp_path / name / "greet") for name in ("one", "two", "three"))
    first, _ = install(gateway, one)
    assert fire(gateway, first) == (1, "x")
    gateway.cli("hooks", "disable", "greet")
    removed = gateway.cli("hooks", "remove", "greet").stderr
    assert f"its data stays in {gateway.home.hook_data / first}" in removed
    second, said = install(gateway, two)
    assert f"greet from {one} has kept {gateway.home.hook_data / first}, which stays there" in said
    assert gateway.call("hooks.info", {"name": "greet"})["kept"] == {}
    assert (fire(gateway, second), second == first) == ((1, "x"), False)
    gateway.cli("hooks", "disable", "greet")
    assert gateway.call("hooks.info", {"name": "greet"})["kept"] == {"n": 1}
    gateway.cli("hooks", "enable", "greet")
    gateway.cli("hooks", "remove", "greet")
    again, said = install(gateway, one)
    assert "switched off by command" in gateway.call("hooks.info", {"name": "greet"})["reason"]
    gateway.cli("hooks", "enable", "greet")
    assert (again, "has kept" in said, fire(gateway, first)) == (first, False, (2, "xx"))
    gateway.cli("hooks", "remove", "greet")
    # Whoever moves it to another place gives it what it had there; so it stays, also when it comes again.
    given = install_by_hand(gateway, three, ["y", "y"])
    assert f"greet from {one} has kept {gateway.home.hook_data / first}. Give it to this one?" in given
    assert fire(gateway, first) == (3, "xxx")
    gateway.cli("hooks", "remove", "greet")
    assert (install(gateway, three)[0], fire(gateway, first)) == (first, (4, "xxxx"))


@pytest.mark.row("T25")
def test_what_was_installed_by_an_earlier_version_goes_on_with_what_it_has(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    """It kept that under its bare name."""
    one, two = (place(tmp_path / name / "greet") for name in ("one", "two"))
    install(gateway, one)
    lock = json.loads(gateway.home.hooks_lock.read_text())
    del lock["hooks"]["greet"]["stored_as"], lock["stores"], lock["unused_stores"]
    gateway.home.hooks_lock.write_text(json.dumps(lock))
    gateway.start()
    assert fire(gateway, "greet") == (1, "x")
    put(tmp_path / "one" / "greet", {"README": "more"})
    assert gateway.cli("hooks", "update", "--yes").returncode == 0
    assert fire(gateway, "greet") == (2, "xx")
    gateway.cli("hooks", "remove", "greet")
    other, said = install(gateway, two)
    kept = f"greet from {one} has kept {gateway.home.hook_data / 'greet'}, which stays there"
    assert (fire(gateway, other), kept in said) == ((1, "x"), True)
    gateway.cli("hooks", "remove", "greet")
    assert (install(gateway, one)[0], fire(gateway, "greet")) == ("greet", (3, "xxx"))


OWED = """
async def handle(event_type, context):
    await context.gateway.store.set("n", 1)
    raise ValueError
"""


async def pass_a_week(journal: Path) -> None:
    """Since hooks were seen."""
    async with await open_sqlite(journal) as engine:
        pattern = subjects.hook_store_subject_of(OWNER)
        for record in await engine.read(pattern):
            kept = records.decode(record.data)
            assert isinstance(kept, records.StoredValue)
            aged = msgspec.structs.replace(kept, value=kept.value - 7 * records.DAY)
            await engine.append(NewRecord(record.subject, records.encode(aged)))


@pytest.mark.row("T25")
def test_what_a_hook_is_owed_none_of_its_name_from_elsewhere_gets(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Gone for a week, it leaves nothing in the journal, however it calls there what it keeps."""
    durable = {"HOOK.yaml": MANIFEST + "delivery: durable\n", "handler.py": OWED}
    one, two = (str(put(tmp_path / name / "greet", durable)) for name in ("one", "two"))
    gateway.script({"user": "x", "text": "y"})
    gateway.start()

    def owed() -> tuple[int, Any]:
        found = gateway.call("hooks.info", {"name": "greet"})
        return found["owed"], found["kept"]

    install(gateway, one)
    gateway.say("x")
    gateway.until(lambda: owed() == (1, {"n": 1}))
    assert "; its pending events wait for seven days: 1 event" in gateway.cli("hooks", "remove", "greet").stderr
    install(gateway, two)
    assert owed() == (0, {})
    gateway.cli("hooks", "remove", "greet")
    install(gateway, one)
    assert owed() == (1, {"n": 1})
    gateway.cli("hooks", "remove", "greet")
    gateway.stop()
    anyio.run(pass_a_week, gateway.home.journal)
    gateway.start()
    install(gateway, one)
    assert owed() == (0, {})


@pytest.mark.row("T25")
def test_sync_says_that_another_hook_begins_without_what_is_kept(gateway: GatewayProcess, tmp_path: Path) -> None:
    two, one = (place(tmp_path / name / "greet") for name in ("two", "one"))
    install(gateway, two)
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    gateway.cli("hooks", "remove", "greet")
    kept = put(gateway.home.hook_data / install(gateway, one)[0], {"n": "x"})
    said = gateway.cli("hooks", "sync", str(frozen), "--yes").stderr
    assert f"greet from {one} has kept {kept}, which stays there; this one begins without it" in said
    assert lock_of(gateway)["greet"]["stored_as"] != kept.name


def test_a_hook_that_a_skill_brings_keeps_apart_what_it_keeps(gateway: GatewayProcess, tmp_path: Path) -> None:
    skill = put(tmp_path / "tea", {"SKILL.md": "---\nname: tea\ndescription: Tea.\n---\nSteep.\n"})
    put(skill / "hooks" / "greet", {**GREET, "handler.py": COUNTS})
    gateway.cli("skills", "install", str(skill), "--yes")
    stored, _ = install(gateway, place(tmp_path / "one" / "greet"))
    lock = json.loads(gateway.home.hooks_lock.read_text())
    brought = lock["skills"]["tea"]["hooks"]["greet"]["stored_as"]
    assert brought.startswith("greet@")
    assert brought != stored


@pytest.mark.row("T25")
def test_two_skills_of_one_index_keep_apart_what_their_hooks_keep(gateway: GatewayProcess, tmp_path: Path) -> None:
    """Others than whose skill was removed may offer one there with a hook of the same name."""
    signer, index, names = Signer(), tmp_path / "index.json", ("tea", "coffee")
    shown = {"LICENSE": "MIT", "README": "x", "test_it.py": ""}
    put(tmp_path / "hook" / "greet", {**GREET, **shown, "handler.py": COUNTS})
    assert gateway.cli("hooks", "publish", str(tmp_path / "hook" / "greet"), str(index)).returncode == 0
    for name in names:
        skill = put(tmp_path / name, {"SKILL.md": f"---\nname: {name}\ndescription: x\n---\nSteep.\n", **shown})
        put(skill / "hooks" / "greet", {**GREET, "handler.py": COUNTS})
        assert gateway.cli("skills", "publish", str(skill), str(index)).returncode == 0
    signer.sign_file(index)
    gateway.cli("hooks", "index", "add", str(index), "--key", signer.line)
    kept = [install(gateway, "greet")[0]]
    for name in names:
        assert gateway.cli("skills", "install", name, "--yes").returncode == 0
        lock = json.loads(gateway.home.hooks_lock.read_text())
        kept.append(lock["skills"][name]["hooks"]["greet"]["stored_as"])
        gateway.cli("skills", "remove", name)
    assert len({*kept}) == 3


def test_another_version_has_what_the_one_before_kept(gateway: GatewayProcess, tmp_path: Path) -> None:
    commit(tmp_path / "repository", {**GREET, "handler.py": COUNTS})
    source = f"git+file://{tmp_path}/repository"
    first, _ = install(gateway, source)
    gateway.cli("hooks", "remove", "greet")
    assert install(gateway, f"{source}@main")[0] == first


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ("git+https://host/a.git@v1#greet", "git+https://host/a.git#greet"),
        ("git+ssh://git@host/a.git", "git+ssh://git@host/a.git#"),
        ("package:greetings==1.0#greet", "package:greetings#greet"),
        ("https://host/greet-1.0.tar.gz", "https://host/greet#"),
        ("/srv/greetings-1.0-py3-none-any.whl", "/srv/greetings-1.0-py3-none-any.whl#"),
        ("/srv/greet-1.0.tar.gz", "/srv/greet-1.0.tar.gz#"),
        ("/srv/greet-2", "/srv/greet-2#"),
        ("https://host/get-1.zip?of=ann", "https://host/get?of=ann#"),
        ("git+https://host/a.git@v1?of=ann#greet", "git+https://host/a.git?of=ann#greet"),
        ("git+file:///srv/a@v1", "git+file:/srv/a#"),
    ],
)
def test_where_it_comes_from_is_the_same_for_each_version(source: str, bare: str) -> None:
    assert remove_version(source) == bare
    if source.startswith("git+"):
        assert str(parse_source(source)) == source

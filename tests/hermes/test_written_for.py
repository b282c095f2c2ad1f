"""For whom a folder was written: what its HOOK.yaml and its source show, and who says otherwise."""

import json
from pathlib import Path

import pytest

from gateway.config.settings import HookOverrides, HooksSettings
from gateway.daemon.dialects import make_folder_source
from gateway.hermes.shim.event_shapes import HERMES_KEYS
from gateway.hooks import HookRegistry
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.places.sources import HookVersion
from gateway.testing import GatewayProcess
from tests.hooks.folders import workshop
from tests.spine import until

PLAIN = "def handle(event_type, context):\n    print(context['response'])\n"
ANSWERS = "def handle(e, c):\n    return verdict(c)\n"
DENIES = "def handle(e, c):\n    return {'decision': 'deny'}\n"
OBJECT = """
class Hook:
    def handle(self, kind, c):
        self.keep({**c})

    def keep(self, row):
        print(row['usage'])

handle = Hook().handle
"""


def look_at(at: Path, manifest: str, handler: str) -> HookVersion:
    folder = at / "one"
    folder.mkdir(mode=0o755)
    (folder / "HOOK.yaml").write_text(manifest)
    (folder / "handler.py").write_text(handler)
    return inspect(at)


def manifest_of(version: HookVersion) -> Manifest:
    assert version.manifest
    return version.manifest


def inspect(at: Path) -> HookVersion:
    version = make_folder_source(at, "home").find("one")
    assert version
    return version.source.inspect(version)


@pytest.mark.parametrize(
    ("manifest", "handler"),
    [
        ("events: [agent:end]\nicon: bell\npriority: 3\n", PLAIN),
        ("events: [agent:end]\n", "from gateway.hooks import HookRegistry\n" + PLAIN),
        ("events: [agent:end]\n", "def handle(kind, c):\n    print(c.get('user_name'), len(c), list(c.items()))\n"),
        ("events: [agent:end]\n", PLAIN + "def other(answer):\n    return answer['turn_id']\n"),
        ("events: ['command:*', tool:before]\n", "def handle(e, c):\n    return {'decision': 'allow'}\n"),
        ("events: ['command:*', tool:after]\n", "def handle(e, c):\n    return dict(decision='deny')\n"),
        ("events: ['command:*']\n", "def handle(e, c):\n    return c.get('result') or c.get('agent')\n"),
        ("events: [agent:end]\n", "def handle(e, c):\n    print(c.get('messages'), c.get('completed'))\n"),
    ],
)
def test_a_folder_in_which_nothing_is_of_ours_alone_was_written_for_hermes(
    tmp_path: Path, manifest: str, handler: str
) -> None:
    found = look_at(tmp_path, manifest, handler)
    assert (not found.dialect.is_own, found.owner_reason) == (True, "nothing in it is of this gateway alone")


@pytest.mark.parametrize(
    ("manifest", "handler", "reason"),
    [
        ("events: [agent:end]\ntimeout: 5s\n", PLAIN, "`timeout` in its HOOK.yaml"),
        ("events: [agent:end, tool:after]\n", PLAIN, "subscribes to tool:after"),
        ("events: [agent:end]\n", "from gateway.hooks import is_yes\n" + PLAIN, "handler.py:1: it imports is_yes"),
        ("events: [agent:end]\n", "import gateway.events\n" + PLAIN, "imports gateway.events"),
        (
            "events: [agent:end]\n",
            "def handle(e, c):\n    c.gateway.send('home', 'x')\n",
            "handler.py:2: it reads c.gat",
        ),
        ("events: [agent:end]\n", "async def handle(e, c):\n    print(c['response_full'])\n", "c['response_full']"),
        ("events: [agent:end]\n", "def go(e, data):\n    data.get('turn_id')\nhandle = go\n", "data.get('turn_id')"),
        ("events: [agent:end]\n", OBJECT, "row['usage']"),
        ("events: ['command:*']\nintercepts: ['command:*']\n", DENIES, "`intercepts` in its HOOK.yaml"),
        ("events: ['command:*']\ntimeout: 5\n", "import gateway.events\n" + DENIES, "`timeout` in its HOOK.yaml"),
        ("events: ['command:*']\n", DENIES.replace("return", "c.gateway; return"), "c.gateway"),
    ],
)
def test_what_only_this_gateway_has_says_that_it_was_written_for_it(
    tmp_path: Path, manifest: str, handler: str, reason: str
) -> None:
    found = look_at(tmp_path, manifest, handler)
    assert found.dialect.is_own
    assert reason in found.owner_reason


def test_who_guessed_wrong_is_told_by_a_key(tmp_path: Path) -> None:
    decides = "import os\nKEY = os.environ['KEY']\ndef handle(e, c):\n    return {'decision': 'deny'}\n"
    found = look_at(tmp_path, "events: ['command:*']\nenv: [OTHER]\nwritten_for: hermes\n", decides)
    assert (not found.dialect.is_own, manifest_of(found).intercepts) == (True, ("command:*",))
    assert (manifest_of(found).env, manifest_of(found).reading.found) == (("OTHER", "KEY"), ("KEY",))
    (tmp_path / "two").mkdir()
    found = look_at(tmp_path / "two", "events: ['command:*']\nwritten_for: gateway\n", decides)
    assert (found.dialect.is_own, found.owner_reason) == (True, "`written_for` says so")
    assert manifest_of(found).events == ("command:*",)


def test_hooks_of_ours_keep_what_their_source_shows(tmp_path: Path) -> None:
    handler = "import os\nfrom gateway.hooks import Deny\nA = os.environ['TOKEN']\ndef handle(e, c): ...\n"
    found = look_at(tmp_path, "events: [agent:end]\n", handler)
    assert (not found.dialect.is_own, manifest_of(found).env) == (False, ("TOKEN",))


@pytest.mark.parametrize(
    ("manifest", "handler", "although"),
    [
        ("events: ['command:stop']\ntimeout: 5\n", DENIES, "`timeout` in its HOOK.yaml is a key that Hermes"),
        ("events: ['command:stop']\ntimeout: 5\nenabled: true\npriority: 10\n", ANSWERS, "`timeout` in its HOOK"),
        ("events: ['command:stop']\non_error: deny\norder: 3\n", ANSWERS, "`on_error` in its HOOK.yaml"),
        (
            "events: [agent:end, 'command:stop']\n",
            "def handle(e, c):\n    return c.get('turn_id') and verdict(c)\n",
            "handler.py:2: it reads c.get('turn_id')",
        ),
        (
            "events: [agent:end, 'command:status']\n",
            "def handle(e, c):\n    print(c.get('messages'), c.get('turn_id'))\n    return dict(decision='deny')\n",
            "handler.py:2: it reads c.get('turn_id')",
        ),
    ],
)
def test_who_decides_as_under_hermes_is_no_hook_of_ours_for_one_key(
    tmp_path: Path, manifest: str, handler: str, although: str
) -> None:
    found = look_at(tmp_path, manifest, handler)
    assert not found.dialect.is_own
    told = manifest_of(found)
    assert told.intercepts == tuple(name for name in told.subscriptions if name.startswith("command:"))
    assert f"it decides about commands as under Hermes, although {although}" in found.owner_reason


@pytest.mark.parametrize(
    ("manifest", "handler", "is_told"),
    [
        ("events: ['command:stop']\nuses: [send]\n", ANSWERS, True),
        ("events: ['command:stop']\nuses: [send]\n", "def handle(e, c):\n    return None\n", False),
        ("events: [agent:end]\nuses: [send]\n", ANSWERS, False),
        ("events: ['command:stop']\nwritten_for: gateway\n", ANSWERS, False),
        ("intercepts: ['command:stop']\n", ANSWERS, False),
    ],
)
def test_an_answer_that_nobody_reads_is_told_of(tmp_path: Path, manifest: str, handler: str, is_told: bool) -> None:
    look_at(tmp_path, manifest, handler)
    said = [
        f"{one.place}: {one.what}: {one.remedy}" for one in inspect(tmp_path).findings if "no event reads" in one.what
    ]
    what = "one/handler.py:1:1: it returns something at command:stop, which no event reads: "
    assert said == is_told * [what + "add the event to `intercepts:`, or `written_for: hermes`"]


@pytest.mark.process
async def test_the_configuration_decides_over_what_is_seen_and_info_says_why(tmp_path: Path) -> None:
    yard = workshop.Home(tmp_path)
    yard.plant("one", "events: [agent:end]\n", PLAIN)
    async with yard.serving(HookRegistry()) as service:
        assert (await service.info("one")).written_for == "Hermes: nothing in it is of this gateway alone"
        told = HooksSettings(each={"one": HookOverrides(written_for="gateway")})
        await service.follow([make_folder_source(yard.hooks, "home")], told)

        async def has_changed() -> bool:
            return not str((await service.info("one")).written_for).startswith("Hermes")

        await until(has_changed, "what it was written for")
        assert (await service.info("one")).written_for == "this gateway: `written_for` says so"


@pytest.mark.process
def test_the_commands_that_only_look_obey_the_configuration_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("one", {"HOOK.yaml": "events: ['command:stop']\nuses: [send]\n", "handler.py": ANSWERS})
        commands = (("hooks", "check", "one"), ("doctor", "--hermes"), ("doctor",))
        assert all("which no event reads" in gateway.cli(*command).stdout for command in commands)
        gateway.configure("hooks: {one: {written_for: hermes}}\n")
        assert not any("which no event reads" in gateway.cli(*command).stdout for command in commands)


@pytest.mark.process
def test_in_the_gateways_own_process_it_finds_hermess_keys_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        kept = tmp_path / "keys.json"
        handler = (
            "import json\nfrom pathlib import Path\n\n\ndef handle(event_type, context):\n"
            f"    Path({str(kept)!r}).write_text(json.dumps([event_type, sorted(context), len(context)]))\n"
        )
        gateway.add_hook("near", {"HOOK.yaml": "events: [agent:start]\n", "handler.py": handler})
        gateway.configure("hooks: {near: {isolation: none}}\n")
        gateway.start()
        gateway.say("hello")
        gateway.until(kept.exists)
        gateway.until(lambda: bool(kept.read_text()))
        assert gateway.call("hooks.info", {"name": "near"})["pid"] == 0
        keys = sorted(HERMES_KEYS["agent:start"])
        assert json.loads(kept.read_text()) == ["agent:start", keys, len(keys)]


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        ("import webbrowser", True),
        ("from gi.repository import Notify", True),
        ("import dbus", True),
        ("import anyio\nRUN = anyio.run_process", True),
        ("import dbusless", False),
        ("from shlex import split", False),
    ],
)
def test_who_speaks_to_the_desktop_is_seen_in_its_source(tmp_path: Path, source: str, starts: bool) -> None:
    manifest = manifest_of(look_at(tmp_path, "events: [agent:end]\n", f"{source}\n{PLAIN}"))
    assert manifest.reading.starts_programs == starts

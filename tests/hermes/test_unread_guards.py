"""Guards whose registrations no source shows: nothing runs without them, be they starting, failing or gone."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

SLOW = "import json, os, time\ntime.sleep(1)\n"
GUARD = """
def guard(tool_name, args, **_):
    said = args["content"] if "WORD" in args.get("content", "") else ""
    if "RAISE" in said:
        raise ValueError("out of order")
    if "EXIT" in said:
        os._exit(3)
    if said:
        return {"action": "block", "message": "WORD: no"}
"""
# Each guards its own word, and says in a way of its own where.
PLUGINS = {
    "listed": GUARD + "HOOKS = json.load(open(os.path.join(os.path.dirname(__file__), 'hooks.json')))\n\n"
    "def register(ctx):\n    for name in HOOKS:\n        ctx.register_hook(name, guard)\n",
    "by-name": GUARD.replace("def guard", "def hook_pre_tool_call") + "def register(ctx):\n"
    "    for name, function in list(globals().items()):\n        if name.startswith('hook_'):\n"
    "            ctx.register_hook(name[5:], function)\n",
    "decorated": "HOOKS = []\n\ndef hook(*parts):\n    def keep(function):\n"
    "        HOOKS.append(('_'.join(parts), function))\n"
    "        return function\n    return keep\n"
    + GUARD.replace("\ndef guard", "\n@hook('pre', 'tool', 'call')\ndef guard")
    + "def register(ctx):\n    for name, function in HOOKS:\n        ctx.register_hook(name, function)\n",
    "reached": GUARD + "def register(ctx):\n    add = getattr(ctx, '_'.join(['register', 'hook']))\n"
    "    add('_'.join(['pre', 'tool', 'call']), guard)\n",
    "executed": GUARD + "def register(ctx):\n    exec(\"ctx.register_hook('pre_' + 'tool_' + 'call', guard)\")\n",
}
MASK = """
def transform(tool_name, args, result, **_):
    if "BREAK" in args.get("content", ""):
        raise ValueError(result)
    return result.replace("SECRET", "[gone]") if "SECRET" in result else None

def register(ctx):
    ctx.register_hook("_".join(["transform", "tool", "result"]), transform)
"""
WORDS = [name.replace("-", "") + "word" for name in PLUGINS]


def add_plugin(gateway: GatewayProcess, name: str, source: str, hooks: str = "") -> None:
    folder = gateway.home.plugins / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(source.replace("WORD", name.replace("-", "") + "word"))
    (folder / "plugin.yaml").write_text(f"name: {name}\n")
    if hooks:
        (folder / "hooks.json").write_text(hooks)


def enable(gateway: GatewayProcess, *names: str) -> None:
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(names)}}))


def keep(gateway: GatewayProcess, said: str) -> str:
    """Return the model's result when it wants to keep this."""
    gateway.say(f"keep {said}", said.split()[0].lower())
    return last_result(gateway, said.split()[0].lower())


def script(gateway: GatewayProcess, said: Sequence[str], settings: str = "") -> None:
    gateway.script(*(wants(f"keep {one}", "remember", text=one) for one in said), settings=settings)


def find_hook(gateway: GatewayProcess, name: str) -> dict[str, Any]:
    return next(one for one in gateway.call("hooks.list")["hooks"] if one["name"] == name)


def wait_for(gateway: GatewayProcess, name: str, state: str) -> None:
    gateway.until(lambda: find_hook(gateway, name)["state"] == state, 60)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        more = [f"{mark} {word}" for word in WORDS for mark in ("RAISE", "EXIT")]
        script(gateway, [*WORDS, *more, "plain", "SECRET", "BREAK SECRET"])
        for name, source in PLUGINS.items():
            add_plugin(gateway, name, SLOW + source, hooks='["pre_tool_call"]' if name == "listed" else "")
        add_plugin(gateway, "mask", SLOW + MASK)
        enable(gateway, *PLUGINS, "mask")
        gateway.start()
        yield gateway


@pytest.mark.parametrize("word", WORDS)
def test_a_tool_waits_for_it_while_it_starts(gateway: GatewayProcess, word: str) -> None:
    assert keep(gateway, word) == f"{word}: no"


def test_a_result_waits_for_it_too(gateway: GatewayProcess) -> None:
    assert keep(gateway, "SECRET") == "Remembered: [gone]"


def test_so_it_does_after_a_crash_of_the_gateway(gateway: GatewayProcess) -> None:
    for name in PLUGINS:
        wait_for(gateway, name, "loaded")
    gateway.kill()
    gateway.start()
    assert [keep(gateway, word) for word in WORDS] == [f"{word}: no" for word in WORDS]


def test_what_it_has_registered_is_all_that_it_is_asked(gateway: GatewayProcess) -> None:
    wait_for(gateway, "listed", "loaded")
    wait_for(gateway, "mask", "loaded")
    assert (find_hook(gateway, "listed")["events"], find_hook(gateway, "listed")["intercepts"]) == ([], ["tool:before"])
    assert find_hook(gateway, "mask")["intercepts"] == ["tool:after"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("mark", "why"), [("RAISE", "out of order"), ("EXIT", "its process ended with exit code 3")])
def test_a_guard_that_fails_denies(gateway: GatewayProcess, word: str, mark: str, why: str) -> None:
    said = keep(gateway, f"{mark} {word}")
    assert "Remembered" not in said
    assert why in said
    assert "on_error: skip in config.yaml its failures stop nothing" in said


def test_what_is_shown_of_it_is_so(gateway: GatewayProcess) -> None:
    wait_for(gateway, "listed", "loaded")
    assert find_hook(gateway, "listed")["on_error"] == "deny"
    rows = {one["name"]: one for one in json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]}
    assert {rows[name]["verdict"] for name in PLUGINS} == {"works"}
    told = "is known only when it runs: until then it counts as a guard"
    assert all(told in " ".join(rows[name]["why"]) for name in PLUGINS)
    assert told in gateway.cli("hooks", "check", "listed").stdout
    gateway.cli("hooks", "disable", "mask")
    wait_for(gateway, "mask", "disabled")
    assert not [said for said in find_hook(gateway, "mask")["findings"] if "@on" in said]
    gateway.cli("hooks", "enable", "mask")


def test_a_transform_that_fails_withholds(gateway: GatewayProcess) -> None:
    assert "SECRET" not in keep(gateway, "BREAK SECRET")


@pytest.mark.parametrize("name", PLUGINS)
def test_one_that_cannot_start_denies_and_says_why(tmp_path: Path, name: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain"], f"hooks: {{{name}: {{on_error: skip}}}}\n" if name == "reached" else "")
        add_plugin(gateway, name, "import frobnicate_policies, os, json\n" + PLUGINS[name], hooks='["pre_tool_call"]')
        enable(gateway, name)
        gateway.start()
        wait_for(gateway, name, "broken")
        said = keep(gateway, "plain")
        if name == "reached":
            assert said == "Remembered: plain"
            return
        assert f"{name} may guard this (what it registers at {name}/__init__.py:" in said
        assert "is known only when it runs) and cannot answer: it is broken" in said
        assert f"hooks disable plugin:{name}" in said
        reason = find_hook(gateway, name)["reason"]
        assert "tool:before, tool:after is denied meanwhile, since what it registers at" in reason


def test_a_harmless_one_is_waited_for_once(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    source = (
        f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n"
        "NAMES = os.environ.get('HARMLESS_HOOKS', 'on_session_finalize').split()\n"
        "def register(ctx):\n    for name in NAMES:\n        ctx.register_hook(name, note)\n"
        "def note(**kw):\n    return kw if NAMES[0] in kw else None\n"
    )
    with GatewayProcess(tmp_path / "home") as gateway:
        script(gateway, ["plain"])
        add_plugin(gateway, "harmless", source)
        enable(gateway, "harmless")
        gateway.start()
        assert keep(gateway, "plain") == "Remembered: plain"
        assert find_hook(gateway, "harmless")["state"] == "loaded"
        assert find_hook(gateway, "harmless")["intercepts"] == []
        gateway.kill()
        gate.unlink()
        gateway.start()
        assert keep(gateway, "plain") == "Remembered: plain"
        assert find_hook(gateway, "harmless")["state"] == "starting"
        gateway.kill()
        gate.touch()
        (gateway.home.plugins / "harmless" / "hooks.txt").write_text("it may read its names from here")
        gateway.start()
        assert keep(gateway, "plain") == "Remembered: plain"
        assert find_hook(gateway, "harmless")["state"] == "loaded"

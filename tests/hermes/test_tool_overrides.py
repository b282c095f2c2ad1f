"""A plugin that takes the place of the terminal: our shell is never used while it is not up."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.hermes.plugin_manifest import ANY_TOOL, find_overrides
from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

CELL = """
import json, os, time
{begin}

def run(args, **_):
    if args["command"] == "die":
        os._exit(3)
    return json.dumps({{"output": f"pretended: {{args['command']}}", "exit_code": 0, "error": None}})


def register(ctx):
    ctx.register_tool("terminal", "terminal", {{"parameters": {{"type": "object"}}}}, run, override=True{more})
"""
SCRIPT = (
    wants("ours", "shell", command="echo real"),
    wants("its", "terminal", command="die"),
    wants("look", "read_file", path="a.txt"),
    {
        "user": "delegate",
        "answers": [
            {"tool_calls": [{"name": "delegate", "args": {"agent": "helper", "task": "ours, please"}}]},
            {"text": "done"},
        ],
    },
    wants("ours, please", "shell", command="echo real > was-here"),
)
HELPER = "agents: {main: {agents: [helper]}, helper: {description: helps}}\n"


def furnish(gateway: GatewayProcess, source: str, *, is_allowed: bool = True, settings: str = "") -> None:
    folder = gateway.home.plugins / "cell"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: cell\n")
    (folder / "__init__.py").write_text(source)
    entries = {"cell": {"allow_tool_override": is_allowed}}
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["cell"], "entries": entries}}))
    gateway.script(*SCRIPT, settings=f"tools: {{shell: allow}}\n{settings}")


def state_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("hooks.info", {"name": "cell"})["state"])


def test_right_after_the_start_the_shell_waits_for_the_plugin(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gate, called = tmp_path / "gate", tmp_path / "called"
        furnish(gateway, CELL.format(begin=f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)", more=""))
        notes = gateway.home.hooks / "notes"
        notes.mkdir(parents=True)
        (notes / "HOOK.yaml").write_text("events: ['tool:before']\n")
        (notes / "handler.py").write_text(f"def handle(event_type, context):\n    open({str(called)!r}, 'w').close()\n")
        gateway.start()
        assert state_of(gateway) == "starting"
        with ThreadPoolExecutor() as pool:
            said = pool.submit(gateway.say, "ours")
            gateway.until(called.exists)
            gate.touch()
            said.result()
        assert last_result(gateway) == "pretended: echo real"
        assert state_of(gateway) == "loaded"


def test_between_its_end_and_its_next_start_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, CELL.format(begin="time.sleep(0.5)", more=""))
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "loaded")
        for _ in range(3):
            gateway.say("its", "dies")
            assert state_of(gateway) != "loaded"
            gateway.say("ours", "after")
            assert "real" not in last_result(gateway, "after").replace("pretended: echo real", "")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (CELL.format(begin="import no_such_package", more=""), "hermes-gateway hooks deps cell no_such_package"),
        (CELL.format(begin="def broken(:", more=""), "__init__.py:3"),
        (
            CELL.format(begin="", more="").replace('"terminal", "terminal"', 'os.environ["X"] + "al", "terminal"'),
            "KeyError",
        ),
    ],
    ids=["a package is missing", "no Python", "its name is computed"],
)
def test_while_it_is_broken_the_shell_is_refused_with_the_reason_and_what_helps(
    tmp_path: Path, source: str, reason: str
) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, source)
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "broken")
        gateway.say("ours")
        left = last_result(gateway)
        assert left.startswith("the plugin cell takes the place of shell and is not up: it is broken")
        assert reason in left
        assert "to go on without it: hermes-gateway hooks disable cell" in left
        gateway.cli("hooks", "disable", "cell")
        gateway.until(lambda: state_of(gateway) == "disabled")
        gateway.say("ours", "off")
        assert last_result(gateway, "off") == "real"


def test_a_manifest_that_cannot_be_read_is_no_way_past_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, CELL.format(begin="", more=""))
        (gateway.home.plugins / "cell" / "plugin.yaml").write_text("name: [cell\n")
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "broken")
        gateway.say("ours")
        assert "takes the place of shell and is not up" in last_result(gateway)


def test_other_tools_and_who_was_not_allowed_hold_up_nothing(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, CELL.format(begin="import no_such_package", more=""), is_allowed=False)
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "broken")
        gateway.say("ours")
        assert last_result(gateway) == "real"
        gateway.home.hermes_config.write_text(gateway.home.hermes_config.read_text().replace("false", "true"))
        gateway.cli("hooks", "reload")
        gateway.say("look", "look")
        assert "a.txt not found" in last_result(gateway, "look")


def test_an_agent_that_is_asked_has_it_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, CELL.format(begin="", more=""), settings=HELPER)
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "loaded")
        assert gateway.say("delegate")["reply"] == "done"
        assert last_result(gateway) == "grey"
        assert not (gateway.home.own_folder / "workspace" / "was-here").exists()


def test_whose_own_check_says_no_leaves_no_shell_behind(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        furnish(gateway, CELL.format(begin="", more=", check_fn=lambda: False"))
        gateway.start()
        gateway.until(lambda: state_of(gateway) == "loaded")
        gateway.say("ours")
        assert "tool 'shell' not found" in last_result(gateway)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('ctx.register_tool("terminal", "t", {}, f, override=True)', ("terminal",)),
        ('NAME = "terminal"\nctx.register_tool(NAME, "t", {}, f, override=True)', (ANY_TOOL,)),
        ('ctx.register_tool("ter" + "minal", "t", {}, f, override=True)', (ANY_TOOL,)),
        ('ctx.register_tool(name="patch", toolset="t", schema={}, handler=f, override=flag)', ("patch",)),
        ('ctx.register_tool("moon", "t", {}, f)\nctx.register_tool("sun", "t", {}, f)', ("moon", "sun")),
        ('for name in NAMES:\n    ctx.register_tool(name, "t", {}, f, override=True)', (ANY_TOOL,)),
        ('ctx.register_tool("moon", **more)', ("moon",)),
        ("ctx.register_tool(*facts)", (ANY_TOOL,)),
        ('getattr(ctx, "register_tool")("terminal", "t", {}, f, override=True)', (ANY_TOOL,)),
        ("add = ctx.register_tool\nadd(1)", (ANY_TOOL,)),
        ("import helper", (ANY_TOOL,)),
        ("no Python", (ANY_TOOL,)),
    ],
)
def test_what_its_source_shows(source: str, names: tuple[str, ...]) -> None:
    assert find_overrides(source.encode()) == names

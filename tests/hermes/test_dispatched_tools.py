"""Tools that a plugin reaches by `ctx.dispatch_tool`: those of servers too, by Hermes's names, past the same guards."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SERVER = Path(__file__).parent.parent / "agent" / "mcp" / "toolserver.py"
ERRANDS = """
def register(ctx):
    ctx.register_command("errand", lambda raw_args: ctx.dispatch_tool(raw_args, {"article": "tea"}))
"""
GUARD = """
def guard(tool_name, **_):
    return {"action": "block", "message": "not that"} if tool_name.endswith("refuse") else None

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
"""


def test_tools_of_servers_are_reached_and_guarded(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        server = {"command": sys.executable, "args": [str(SERVER), "stdio", str(tmp_path / "notes")], "trust": "all"}
        gateway.script(settings=f"mcp_servers: {json.dumps({'my_server': server})}\n")
        for name, source in (("errands", ERRANDS), ("warden", GUARD)):
            folder = gateway.home.plugins / name
            folder.mkdir(parents=True)
            (folder / "__init__.py").write_text(source)
            (folder / "plugin.yaml").write_text(f"name: {name}\n")
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["errands", "warden"]}}))
        gateway.start()
        told = {
            word: gateway.say(f"/errand {word}")["reply"] for word in ("mcp__my_server__price", "mcp_my_server_price")
        }
        assert all("tea" in said and "error" not in said for said in told.values()), told
        assert "not that" in gateway.say("/errand mcp__my_server__refuse")["reply"]
        assert "not found" in gateway.say("/errand mcp__my_server__nothing")["reply"]


ROUTED = """
agents: {main: {agents: [helper]}, helper: {description: helps, tools: [remember]}, kiosk: {tools: [remember]}}
routes: [{chat: kiosk, agent: kiosk}]
tools: {shell: allow}
"""
REACHES = """
import json, os
from pathlib import Path

HERE = Path(__file__).parent
LOOK = ("terminal", {"command": "echo reached"})


def register(ctx):
    def after(tool_name, session_id, **_):
        if tool_name == "memory":
            with open(os.path.join(os.environ["HERMES_HOME"], "seen-reach"), "a") as file:
                file.write(json.dumps(ctx.dispatch_tool(*LOOK)) + "\\n")

    ctx.register_hook("post_tool_call", after)
    ctx.register_command("look", lambda raw_args: ctx.dispatch_tool(*LOOK))
    ctx.register_command("knots", lambda raw_args: ctx.dispatch_tool("skill_view", {"name": "reaches:knots"}))
    ctx.register_skill("knots", HERE / "SKILL.md")
"""


def has_lines(path: Path, count: int) -> bool:
    return len(path.read_text().splitlines()) >= count


def test_a_plugin_reaches_the_tools_of_the_agent_that_acts(tmp_path: Path) -> None:
    keep = {"name": "remember", "args": {"text": "x"}}
    delegated = {"name": "delegate", "args": {"agent": "helper", "task": "keep it"}}
    turns = [
        {"user": "keep", "answers": [{"tool_calls": [keep]}, {"text": "kept"}]},
        {"user": "let it be kept", "answers": [{"tool_calls": [delegated]}, {"text": "kept"}]},
    ]
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*turns, {**turns[0], "user": "keep it"}, settings=ROUTED)
        folder = gateway.home.plugins / "reaches"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(REACHES)
        (folder / "plugin.yaml").write_text("name: reaches\n")
        (folder / "SKILL.md").write_text("---\nname: knots\ndescription: x\n---\nTie it twice.\n")
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["reaches"]}}))
        gateway.start()
        assert "reached" in gateway.say("/look")["reply"]
        assert "tool 'shell' not found" in gateway.say("/look", "kiosk")["reply"]
        assert "Tie it twice." in gateway.say("/knots")["reply"]
        told = gateway.home.root / "seen-reach"
        told.touch()
        for count, (text, session) in enumerate((("keep", "main"), ("keep", "kiosk"), ("let it be kept", "main"))):
            assert gateway.say(text, session)["reply"] == "kept"
            gateway.until(partial(has_lines, told, count + 1))
        assert ["reached" in line for line in told.read_text().splitlines()] == [True, False, False]

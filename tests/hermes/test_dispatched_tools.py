"""What a plugin reaches by `ctx.dispatch_tool`: tools of servers too, by Hermes's names, past the same guards."""

import json
import sys
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
        assert "there is no tool" in gateway.say("/errand mcp__my_server__nothing")["reply"]

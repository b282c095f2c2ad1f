"""Servers of tools as the configuration names them, in a running gateway."""

import sys
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SERVER = Path(__file__).parent.parent / "agent" / "mcp" / "toolserver.py"
CALL = {"name": "mcp_shop_price", "args": {"article": "tea"}}


def settings(notes):
    return f"""
mcp_servers:
  shop:
    command: {sys.executable}
    args: [{SERVER}, stdio, {notes}]
    tools: [price]
  gone:
    command: /no/such/program
"""


def test_the_agent_uses_the_servers_of_the_configuration_and_status_says_which_are_down(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        turn = {"user": "tea", "answers": [{"tool_calls": [CALL]}, {"text": "ready"}]}
        gateway.script(turn, settings=settings(tmp_path / "notes"))
        gateway.start()
        assert not (tmp_path / "notes").exists()
        assert gateway.say("how much is tea")["reply"] == "ready"
        assert (tmp_path / "notes").read_text().startswith("started")
        assert any("tool server gone: there is no program" in one for one in gateway.call("status")["attention"])
        assert gateway.stop()[0] == 0

"""A guard whose folder a tool of the agent takes away, in the running gateway: it stays shut until a person says so."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

GUARD = {
    "HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: calculate}\n",
    "handler.py": "from gateway.hooks import Deny\ndef handle(name, context):\n    raise Deny('the guard says no')\n",
}
BURNER = """
import shutil

def burn(args, **_):
    shutil.rmtree(args["path"])
    return "burnt"

def register(ctx):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    ctx.register_tool("burn", "burning", {"name": "burn", "parameters": schema}, burn)
"""


def test_a_guard_that_a_tool_takes_away_stays_shut_until_a_person_forgets_it(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        guard = gateway.add_hook("guard", GUARD)
        gateway.script(wants("burn it", "burn", path=str(guard)), wants("six", "calculate", expression="6*7"))
        plugin = gateway.home.plugins / "burner"
        plugin.mkdir(parents=True)
        (plugin / "plugin.yaml").write_text("name: burner\n")
        (plugin / "__init__.py").write_text(BURNER)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["burner"]}}))
        gateway.start()
        gateway.say("six", "before")
        assert last_result(gateway, "before") == "the guard says no"
        gateway.say("burn it", "burn")
        assert last_result(gateway, "burn") == "burnt"
        gateway.until(lambda: "its folder went" in gateway.call("hooks.info", {"name": "guard"})["reason"])
        gateway.say("six", "after")
        assert last_result(gateway, "after") == "the guard says no", "the version before runs on"
        gateway.stop()
        gateway.start()
        gateway.say("six", "restarted")
        assert "hooks forget guard" in last_result(gateway, "restarted")
        assert any("guard is missing" in one for one in gateway.call("status")["attention"])
        assert "nothing is denied" in gateway.cli("hooks", "forget", "guard").stdout
        gateway.say("six", "forgotten")
        assert last_result(gateway, "forgotten") == "42"

"""What hook authors test with, used as they use it."""

import pytest

from gateway.errors import GatewayError
from gateway.hooks import Deny
from gateway.testing import RecordingHook, gateway_in

CALL = {"tool_calls": [{"name": "calculate", "args": {"expression": "1 + 1"}}]}
SHOUT = {
    "HOOK.yaml": "intercepts: [agent:end]\n",
    "handler.py": "def handle(event_type, context):\n    context['response_full'] = context['response_full'].upper()\n",
}


@pytest.mark.process
async def test_a_gateway_in_the_tests_own_process_has_a_scripted_model_and_takes_functions_as_hooks(tmp_path):
    turn = {"user": "sum", "answers": [CALL, {"text": "done"}]}
    async with gateway_in(tmp_path / "home", turn, hooks={"shout": SHOUT}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        gateway.registry.on("tool:before", lambda event: Deny("no sums"), when={"tool": "calculate"})
        said = await gateway.say("sum, please")
        assert (said["reply"], said["status"]) == ("DONE", "ok")
        after = await heard.until("tool:after")
        assert (heard.names, after["denied"]) == (["tool:before", "tool:after"], "no sums")
        heard.remove()
        await gateway.say("sum again")
        await gateway.registry.settled()
        assert len(heard.events) == 2
        with pytest.raises(GatewayError, match="no node:after within 0 s; there was tool:before, tool:after"):
            await heard.until("node:after", patience=0.01)


@pytest.mark.process
async def test_without_a_script_it_is_the_demo_and_settings_stand_beside(tmp_path):
    async with gateway_in(tmp_path / "home", settings="agents: {main: {tools: [time]}}\n") as gateway:
        assert "I do not know" in (await gateway.say("what is 2 + 2"))["reply"]
        assert "It is" in (await gateway.say("what time is it"))["reply"]

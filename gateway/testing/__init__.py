"""For tests of hooks and of the gateway itself: a real gateway, as a process, in a home of its own.

    with GatewayProcess(tmp_path) as gateway:
        gateway.script({"user": "weather", "answers": [{"text": "sunny"}]})
        gateway.add_hook("shout", {"HOOK.yaml": "intercepts: [message:received]\\n", "handler.py": SOURCE})
        gateway.start()
        assert gateway.say("weather")["reply"] == "sunny"

The model is the demo, or says what the script says; nothing leaves the machine. `script`, `ScriptModel` and
`read_script` are the scripted model by itself, for tests of a turn without a gateway.

    async with gateway_in(tmp_path, {"user": "weather", "text": "sunny"}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        assert (await gateway.say("weather"))["reply"] == "sunny"

is the same gateway inside the test's own process, for hooks that are functions of the test.
"""

from gateway.agent.models.script import ScriptModel, read_script, script
from gateway.testing.gateway_process import GatewayProcess
from gateway.testing.live_gateway import LiveGateway, RecordingHook, gateway_in

__all__ = ["GatewayProcess", "LiveGateway", "RecordingHook", "ScriptModel", "gateway_in", "read_script", "script"]

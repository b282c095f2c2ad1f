"""For tests of hooks and of the gateway itself.

    called = call("greet", "message:received", {"text": "hello"})
    assert called.changed == {"text": "good morning"}

calls a hook plainly, in this process and in a few milliseconds: no gateway, no process of its own, no limits.

    with GatewayProcess(tmp_path) as gateway:
        gateway.script({"user": "weather", "answers": [{"text": "sunny"}]})
        gateway.add_hook("shout", {"HOOK.yaml": "intercepts: [message:received]\\n", "handler.py": SOURCE})
        gateway.start()
        assert gateway.say("weather")["reply"] == "sunny"

is a real gateway, as a process, in a home of its own. The model is the demo, or says what the script says; nothing
leaves the machine. `script`, `ScriptModel` and `read_script` are the scripted model by itself, for tests of a turn
without a gateway.

    async with gateway_in(tmp_path, {"user": "weather", "text": "sunny"}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        assert (await gateway.say("weather"))["reply"] == "sunny"

is the same gateway inside the test's own process, for hooks that are functions of the test.

What stands here is imported when it is asked for: pytest loads the plugin beside this in every run, for whoever has us.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.agent.models.script import ScriptModel, read_script, script
    from gateway.hooks.folders.trial import HookTrial
    from gateway.testing.gateway_process import GatewayProcess
    from gateway.testing.live_gateway import LiveGateway, RecordingHook, gateway_in
    from gateway.testing.plain_call import call

__all__ = [
    "GatewayProcess",
    "HookTrial",
    "LiveGateway",
    "RecordingHook",
    "ScriptModel",
    "call",
    "gateway_in",
    "read_script",
    "script",
]

_PLACES = {
    "gateway.agent.models.script": ("ScriptModel", "read_script", "script"),
    "gateway.hooks.folders.trial": ("HookTrial",),
    "gateway.testing.gateway_process": ("GatewayProcess",),
    "gateway.testing.live_gateway": ("LiveGateway", "RecordingHook", "gateway_in"),
    "gateway.testing.plain_call": ("call",),
}

if not TYPE_CHECKING:  # a type checker knows what is here, and nothing else

    def __getattr__(name: str) -> Any:
        place = next((place for place, names in _PLACES.items() if name in names), None)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(place), name)

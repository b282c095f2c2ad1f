"""The tools for tests of hooks and of the gateway itself.

A plain call runs a hook in this process, in a few milliseconds: without a gateway, a process of its own, or limits.

    called = call("greet", "message:received", {"text": "hello"})
    assert called.changed == {"text": "good morning"}

`GatewayProcess` is a real gateway, as a process, in its own home. The model is the demo, or says what the script says;
nothing leaves the machine.

    with GatewayProcess(tmp_path) as gateway:
        gateway.script({"user": "weather", "answers": [{"text": "sunny"}]})
        gateway.add_hook("shout", {"HOOK.yaml": "intercepts: [message:received]\\n", "handler.py": SOURCE})
        gateway.start()
        assert gateway.say("weather")["reply"] == "sunny"

`script`, `ScriptModel` and `read_script` are the scripted model by itself, for tests of a turn without a gateway.

`gateway_in` is the same gateway inside the test's own process, for hooks that are functions of the test.

    async with gateway_in(tmp_path, {"user": "weather", "text": "sunny"}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        assert (await gateway.say("weather"))["reply"] == "sunny"

Each name is imported on first use: pytest loads the plugin beside this in every run, wherever we are installed.
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

"""The names that programs and hooks of other people may import from the gateway, and where older names are now.

Whatever stands in `PUBLIC` stays as it is until a version that says otherwise, what stands in `PROVISIONAL` may still
change with a word in the changelog; everything else is the gateway's own, and moves without notice. A name that moved
is in `MOVED`: it works as before, and warns of its new place. New names are added here first; tests hold the
documentation and the samples to this list.
"""

import importlib
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any

PUBLIC: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gateway.hooks": ("Deny", "End", "Event", "HookRegistry", "Retry", "Subscription", "is_yes", "on"),
        "gateway.hooks.remote": ("Remote", "RemoteSpec", "interceptor"),
        "gateway.hooks.server": ("HookServer",),
        "gateway.testing": (
            "GatewayProcess",
            "LiveGateway",
            "RecordingHook",
            "HookTrial",
            "ScriptModel",
            "call",
            "gateway_in",
            "read_script",
            "script",
        ),
    }
)
PROVISIONAL: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # The adapter kit, and what it takes to run the behaviour suite on an adapter.
        "gateway.adapters": (
            *("Adapter", "AdapterContext", "AdapterError", "AdapterHost", "Address", "Attachment", "Button"),
            *("DoubtPolicy", "IncomingMessage", "LiteralText", "LoadedFile", "Message", "NetworkErrors"),
            *(
                "NetworkRoute",
                "NetworkTransport",
                "OutboundFile",
                "PlatformReport",
                "PlatformSettings",
                "PlatformSetup",
            ),
            *("PlatformSpec", "Presence", "Rate", "RateLimiter", "Receipt", "Reply", "RouteAnswer", "Secret"),
            *("SetupQuestion", "TokenShape", "Transport", "add_context", "decode_button", "describe", "describe_reply"),
            *("encode_button", "fetch_file", "kind_of", "make_access_questions", "make_reaction"),
            *("Contact", "Location", "MessagePart", "Poll", "Sticker", "describe_parts"),
            *("make_contact", "make_location", "make_poll", "make_sticker"),
            *("split_markdown", "to_plain_name"),
        ),
        "gateway.testing.networks": ("ANN", "BEN", "GROUP", "STRANGER", "Shown", "Wire"),
        # `Chunk` and `ModelRequest` are what a `Model` gives and takes.
        "gateway.agent": ("Agent", "Chunk", "Model", "ModelRequest", "Ports", "Tool", "run_turn", "tool"),
        "gateway.transcript": ("Entry",),
    }
)
# A class for the context of each event, for type checkers alone: there is no such module at run time.
TYPES = "gateway.hooks.contexts"
# What 0.1 had in another place.
MOVED: Mapping[str, str] = MappingProxyType(
    {
        "gateway.hooks.CAUSE": "gateway.hooks.cause.CAUSE",
        "gateway.hooks.Cause": "gateway.hooks.cause.Cause",
        "gateway.hooks.Health": "gateway.hooks.folders.stats.HookStats",
        "gateway.hooks.Hook": "gateway.hooks.hook.Hook",
        "gateway.hooks.Pause": "gateway.events.Pause",
        "gateway.hooks.Question": "gateway.events.Question",
        "gateway.hooks.Scope": "gateway.hooks.scope.HookScope",
        "gateway.hooks.caused_by": "gateway.hooks.cause.use_cause",
        "gateway.hooks.wires.http.Remote": "gateway.hooks.remote.Remote",
        "gateway.hooks.wires.http.RemoteSpec": "gateway.hooks.remote.RemoteSpec",
        "gateway.hooks.wires.server.HookServer": "gateway.hooks.server.HookServer",
        "gateway.hooks.wires.telling.interceptor": "gateway.hooks.remote.interceptor",
    }
)


def get_moved(module: str, name: str) -> Any:
    """Returns what a module had under this name, with a DeprecationWarning. AttributeError when it never had it."""
    new = MOVED.get(f"{module}.{name}")
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{module}.{name} is {new} now", DeprecationWarning, stacklevel=3)
    place, _, new_name = new.rpartition(".")
    return getattr(importlib.import_module(place), new_name)


class MovedModuleFinder:
    """Finds the modules that are gone but for the names in `MOVED`. It is asked last, when nobody else finds one."""

    @classmethod
    def find_spec(
        cls,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG003 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG003
    ) -> ModuleSpec | None:
        if not name.startswith("gateway.") or not any(old.startswith(f"{name}.") for old in MOVED):
            return None
        return ModuleSpec(name, cls, is_package=True)  # type: ignore[arg-type]  # the class loads by itself

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """The usual kind of module will do."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        def get_attribute(name: str) -> Any:
            return get_moved(module.__name__, name)

        vars(module)["__getattr__"] = get_attribute

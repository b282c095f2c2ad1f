"""The hooks that may lose their process while nothing calls them: the process starts again at the next event."""

from typing import Any, Literal

import msgspec

from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.services import HookServices
from gateway.hooks.wires.program import LastingProgram
from gateway.hooks.wires.wire import Wire
from gateway.hooks.wires.worker_handle import WorkerHandle

# The process ends: never (`kept`); if its modules hold the same as after their import (`compared`); always (`free`).
IdleRule = Literal["kept", "compared", "free"]

STARTUP = "gateway:startup"  # a hook of this event may have prepared something then


class IdleAnswer(msgspec.Struct):
    """The reason why a process must not end now, or "" if it may, and the hook's values for turns that go on."""

    obstacle: str
    kept: dict[str, dict[str, Any]] = {}


def find_idle_rule(version: HookVersion, services: HookServices) -> IdleRule:
    """Find the rule by which the hook's process may end; the configuration takes precedence over the manifest.

    The manifest counts only in our own dialect: other hooks do not know the rule.
    """
    keep, manifest = services.settings_of(version.name, version.short).keep, version.manifest
    if manifest is None:
        return "kept"
    if keep is None and version.dialect.is_own and manifest.wire == "worker":
        keep = manifest.keep
        if keep is None and STARTUP not in EventSelector(manifest.subscriptions):
            return "compared"
    return "free" if keep is False else "kept"


async def check_idle(wire: Wire) -> IdleAnswer:
    """Ask a worker whether it may end; the gateway inspects a foreign program from outside."""
    if isinstance(wire, LastingProgram):
        return IdleAnswer(wire.find_obstacle())
    if not isinstance(wire, WorkerHandle):
        return IdleAnswer("it has no process that could end")
    if wire.is_asking:
        return IdleAnswer("it waits for an answer of the gateway")
    try:
        return msgspec.convert(await wire.ask("$idle"), IdleAnswer)
    except msgspec.ValidationError:
        return IdleAnswer("it does not say whether it may end")

"""What one hook may ask of the gateway: what its manifest `uses`, and with the cause that it acts for."""

from collections import OrderedDict
from typing import Any

from gateway.errors import HookError
from gateway.events import Event
from gateway.events.catalogue import get_event_spec
from gateway.hooks.cause import Cause, use_cause
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.services import HookServices
from gateway.hooks.wires.wire import Capability

ALWAYS_ALLOWED = "facts"  # how the gateway is set up: there is no secret in it
MAX_CAUSES = 256  # events whose cause is known, for tasks that a hook goes on with after its answer


class HookRights:
    def __init__(self, name: str, house: HookServices) -> None:
        self._name = name
        self._house = house
        self._causes: OrderedDict[str, Cause | None] = OrderedDict()

    def remember(self, event: Event) -> None:
        """It is told of this event now, and what it does because of that has the same cause."""
        self._causes[str(event.get("id", ""))] = self._house.registry.current_cause()
        while len(self._causes) > MAX_CAUSES:
            self._causes.popitem(last=False)

    def make_capability(self, manifest: Manifest) -> Capability:
        """What answers the requests of a hook with this manifest."""

        async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
            word = verb.partition(".")[0]
            if word not in manifest.uses and word != ALWAYS_ALLOWED:
                raise HookError(f"{self._name} may not {word}: add `uses: [{word}]` to its HOOK.yaml")
            with use_cause(self._causes.get(during)):
                if verb == "emit":
                    return self._emit(params)
                return await self._house.grant(self._name, verb, params, during)

        return serve

    def _emit(self, params: dict[str, Any]) -> None:
        name, fields = params.get("name"), params.get("fields", {})
        if not isinstance(name, str) or not name or not isinstance(fields, dict):
            raise HookError("emit takes the name of an event and its fields")
        if get_event_spec(name) is not None:
            raise HookError(f"{name[:100]} is told by the gateway alone; a hook emits events of names of its own")
        self._house.registry.emit(name, **{str(field): value for field, value in fields.items()})

"""Which functions of a folder an event goes to, and one answer made of theirs.

A handler has `handle`, functions marked with `@on`, or both. `handle` hears of everything that the manifest names; a
marked function of those among them that it names itself. They are called in `order`, `handle` (0) before its equals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.events import OUTCOMES, Deny, Event
from gateway.hooks.filters import Filter, compile_filter
from gateway.hooks.folders.in_process import InProcessWire
from gateway.hooks.patterns import Patterns
from gateway.hooks.wires.event_calls import intercept, observe
from gateway.hooks.wires.wire import HookFailed, Wire
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import LoadedHandlers


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """One function: `name` as the wire knows it ("": `handle`, or whatever is at the other end)."""

    name: str = ""
    order: float = 0
    matches: Filter | None = None
    guards: bool = False
    timeout: float | None = None

    def applies(self, event: Event) -> bool:
        return self.matches is None or self.matches(event)

    def limit(self, timeout: float) -> float:
        return timeout if self.timeout is None else min(timeout, self.timeout)


WHOLE_HOOK = (HandlerTarget(),)


class HandlerTargets:
    """The functions of one loaded handler."""

    def __init__(self, wire: Wire) -> None:
        loaded = wire.loaded if isinstance(wire, WorkerHandle | InProcessWire) else LoadedHandlers(True, ())
        is_plugin = isinstance(wire, WorkerHandle) and wire.spec.plugin is not None  # its guards stand in its manifest
        self._handle = loaded.handle
        self._marked: Patterns[HandlerTarget] = Patterns()
        self.offers = loaded.offers
        self.patches = loaded.patches
        self.names: tuple[str, ...] = tuple(dict.fromkeys(name for mark in loaded.marks for name in mark.names))
        for mark in loaded.marks:
            guards = not is_plugin and mark.on_error == "deny"
            target = HandlerTarget(mark.target, mark.order, compile_filter(mark.when), guards, mark.timeout)
            for name in mark.names:
                self._marked.add(name, target)

    def of(self, name: str) -> Sequence[HandlerTarget]:
        if not self.names:
            return WHOLE_HOOK
        exact, globs = self._marked.match(name)
        found = dict.fromkeys([*(WHOLE_HOOK if self._handle else ()), *exact, *globs])
        return sorted(found, key=lambda target: target.order)


async def ask_handlers(wire: Wire, targets: Sequence[HandlerTarget], event: Event, timeout: float) -> Any:
    """What the functions make of an event that they may change: the first decision, or None when all is in the event.

    Raises:
        HookFailed: one of them could not answer.
    """
    if len(targets) == 1 and targets[0] == WHOLE_HOOK[0]:
        return await intercept(wire, event, timeout)
    failures = []
    for target in targets:
        if not target.applies(event):
            continue
        try:
            answer = await intercept(wire, event, target.limit(timeout), target.name)
        except HookFailed as failed:
            if target.guards:
                why = "" if event.name.endswith(":after") else f": {failed}"  # it may hold what was to be hidden
                return Deny(f"{target.name} guards this and failed{why}")
            failures.append(failed)  # a guard among the others is asked all the same
            continue
        if isinstance(answer, OUTCOMES) or (isinstance(answer, Mapping) and "decision" in answer):
            return answer
        if isinstance(answer, Mapping):
            writable = answer if event.writable is None else event.writable
            event.update({field: value for field, value in answer.items() if field in writable})
    if failures:
        raise failures[0]
    return None


async def notify_handlers(
    wire: Wire, targets: Sequence[HandlerTarget], name: str, event: Event, timeout: float
) -> None:
    """Raises HookFailed when one of them failed; the others get the event even so."""
    failures = []
    for target in targets:
        if not target.applies(event):
            continue
        try:
            await observe(wire, name, event, target.limit(timeout), target.name)
        except HookFailed as failed:
            failures.append(failed)
    if failures:
        raise failures[0]

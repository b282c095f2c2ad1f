"""The functions of a hook's folder that get an event, and the combination of their answers.

A handler has `handle`, functions marked with `@on`, or both. `handle` receives every event of the manifest; a marked
function receives only the events of its `@on`. The functions are called in `order`; `handle` has the order 0, and comes
before other functions of this order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.events import Deny, Event, outcome_from
from gateway.events.outcomes import is_decision
from gateway.hooks.filters import Filter, compile_filter
from gateway.hooks.hook import Remark
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.outcome_collector import change_fields
from gateway.hooks.patterns import EventSelector, Patterns
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.registry import INTERCEPT_LIMIT
from gateway.hooks.wires.event_calls import CallTerms, intercept, observe
from gateway.hooks.wires.in_process import InProcessWire
from gateway.hooks.wires.wire import HookFailed, Wire
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import LoadedHandlers


class HandlerTarget(msgspec.Struct, frozen=True):
    """One function: `name` as the hook's process knows it ("" for `handle`, or for a whole program)."""

    name: str = ""
    order: float = 0
    matches: Filter | None = None
    guards: bool = False
    timeout: float | None = None

    def applies(self, event: Event) -> bool:
        return self.matches is None or self.matches(event)

    def narrow(self, terms: CallTerms) -> CallTerms:
        """Return the terms for a call of this function alone."""
        timeout = terms.timeout if self.timeout is None else min(terms.timeout, self.timeout)
        return msgspec.structs.replace(terms, timeout=timeout, target=self.name)


WHOLE_HOOK = (HandlerTarget(),)


class HandlerTargets:
    """The functions of one loaded handler; the manifest of a plugin names the guards among its functions."""

    def __init__(self, wire: Wire, *, is_plugin: bool = False) -> None:
        loaded = wire.loaded if isinstance(wire, WorkerHandle | InProcessWire) else LoadedHandlers(True, ())
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

    def find_unused(self, manifest: Manifest) -> Iterator[str]:
        """Return the events of `@on` marks that the manifest lacks: these events never call the marked functions."""
        named = EventSelector(manifest.subscriptions)
        return (name for name in self.names if name not in named and name not in manifest.subscriptions)

    def of(self, name: str) -> Sequence[HandlerTarget]:
        if not self.names:
            return WHOLE_HOOK
        exact, globs = self._marked.match(name)
        found = dict.fromkeys([*(WHOLE_HOOK if self._handle else ()), *exact, *globs])
        return sorted(found, key=lambda target: target.order)


def add_registrations(version: HookVersion, wire: Wire) -> HookVersion:
    """Return the version with the registrations that only a running hook knows."""
    if version.manifest is None or not isinstance(wire, WorkerHandle):
        return version
    manifest = version.dialect.complete(version.manifest, wire.loaded)
    return version if manifest is version.manifest else msgspec.structs.replace(version, manifest=manifest)


def limit_decision(version: HookVersion) -> float:
    """Return the seconds that the hook has to decide about an event."""
    assert version.manifest
    return min(version.manifest.decide_timeout, INTERCEPT_LIMIT, version.dialect.turn.seconds)


def describe_unused_mark(name: str) -> str:
    return (
        f"a function is marked with @on({name!r}), which HOOK.yaml does not name, "
        "so it is not called; add it to `intercepts` or `events`"
    )


async def ask_version(
    version: HookVersion,
    wire: Wire,
    targets: Sequence[HandlerTarget],
    event: Event,
    remark: Remark,
    limit: float | None = None,
) -> Any:
    """Ask this version of a hook, and return its answer in our format; `remark` gets the parts that have no effect.

    Raises HookFailed if the hook could not answer, and TypeError or ValueError if the answer means nothing.
    """
    assert version.manifest
    terms = CallTerms(limit or limit_decision(version), remark, version.manifest.reading.left_out)
    said = await ask_handlers(wire, targets, event, terms)
    answer = version.dialect.read_answer(said)
    outcome_from(answer)
    return answer


async def ask_handlers(wire: Wire, targets: Sequence[HandlerTarget], event: Event, terms: CallTerms) -> Any:
    """Call the functions with an event that they may change, and return the first decision, or None.

    Raises:
        HookFailed: a function could not answer.
    """
    if len(targets) == 1 and targets[0] == WHOLE_HOOK[0]:
        return await intercept(wire, event, terms)
    failures = []
    for target in targets:
        if not target.applies(event):
            continue
        try:
            answer = await intercept(wire, event, target.narrow(terms))
        except HookFailed as failed:
            if target.guards:
                why = "" if event.name.endswith(":after") else f": {failed}"  # the failure may hold the hidden text
                return Deny(f"{target.name} guards this and failed{why}")
            failures.append(failed)  # a guard among the other functions is still asked
            continue
        if is_decision(answer):
            return answer
        if isinstance(answer, Mapping):
            change_fields(event, answer, terms.remark)
    if failures:
        raise failures[0]
    return None


async def notify_handlers(wire: Wire, targets: Sequence[HandlerTarget], event: Event, terms: CallTerms) -> None:
    """Notify each function of the event, even after one has failed. Raises HookFailed if any function failed."""
    failures = []
    for target in targets:
        if not target.applies(event):
            continue
        try:
            await observe(wire, event, target.narrow(terms))
        except HookFailed as failed:
            failures.append(failed)
    if failures:
        raise failures[0]

"""Writes the events that durable hooks are owed into the journal, each once however many of them want it.

The record's name in the journal is made of the event's id: a turn that is resumed after a crash repeats its events
under the same ids, and what was written before stays one record. Between the telling of an event and its append a
crash can still take it; what a turn must not lose belongs into the turn's own append.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec

from gateway import records
from gateway.engine.interface import Engine, NewRecord, append_until_written
from gateway.errors import Duplicate
from gateway.events import Event
from gateway.hooks.filters import Filter, compile_filter
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.subjects import can_be_durable
from gateway.hooks.folders.subscription import patterns_of
from gateway.hooks.patterns import Patterns
from gateway.hooks.registry import HookRegistry
from gateway.hooks.subscriptions import Subscription
from gateway.hooks.wires.field_encoding import encode_event

WRITER_KEY = "durable delivery"  # its name in the registry

log = logging.getLogger("gateway.hooks")


@dataclass(frozen=True, slots=True)
class DurableSubscription:
    """What one hook is owed, once its consumer stands."""

    hook: str
    patterns: tuple[str, ...]
    wants: Patterns[str]
    skips: Patterns[str]  # what it intercepts, and so is not to observe
    matches: Filter | None
    consumer_ready: anyio.Event = field(default_factory=anyio.Event)

    def is_for(self, name: str, fields: Mapping[str, Any]) -> bool:
        if name.startswith("hook:") and fields.get("hook") == self.hook:
            return False
        if not any(self.wants.match(name)) or any(self.skips.match(name)):
            return False
        return self.matches is None or self.matches(fields)


def durable_subscription_of(manifest: Manifest) -> DurableSubscription:
    wants, skips = patterns_of(manifest.events), patterns_of(manifest.intercepts)
    return DurableSubscription(manifest.folder, manifest.events, wants, skips, compile_filter(manifest.when))


class DurableWriter:
    """One observer for all durable hooks together."""

    def __init__(self, registry: HookRegistry, engine: Engine) -> None:
        self._registry = registry
        self._engine = engine
        self._debts: dict[str, DurableSubscription] = {}
        self._patterns: tuple[str, ...] = ()
        self._subscription = Subscription()

    def add(self, debt: DurableSubscription) -> None:
        self._debts[debt.hook] = debt
        self._agree()

    def forget(self, hook: str) -> None:
        if self._debts.pop(hook, None):
            self._agree()

    def _agree(self) -> None:
        patterns = tuple(dict.fromkeys(name for debt in self._debts.values() for name in debt.patterns))
        if patterns == self._patterns:
            return
        before, self._patterns = self._subscription, patterns
        self._subscription = self._registry.watch(patterns, self._write, key=WRITER_KEY) if patterns else Subscription()
        self._subscription.replace(before)

    async def _write(self, name: str, event: Event) -> None:
        owed = [debt for debt in self._debts.values() if debt.is_for(name, event)]
        if not owed:
            return
        if not can_be_durable(name):
            log.warning("%s cannot be delivered durably: a journal takes no such name", name[:100])
            return
        for debt in owed:
            await debt.consumer_ready.wait()
        put = journal_put_of(name, event)
        with suppress(Duplicate):
            await append_until_written(lambda: self._engine.append(put), name)


def journal_put_of(name: str, fields: Mapping[str, Any]) -> NewRecord:
    """The record of an event."""
    plain, _ = encode_event(name, fields)
    emitted = records.EmittedEvent(name=name, fields=msgspec.json.decode(plain))
    return records.make_event_put(emitted, f"ev:{fields.get('id', '')}")

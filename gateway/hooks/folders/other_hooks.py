"""Which hooks the other gateways on a journal have, and what their durable ones are owed.

Each gateway writes down what it has, in one record of its own, and follows those of the others. So what happens where
the folder of a durable hook is missing is written for it all the same, also while no gateway that has it is at work. It
counts as long as events are kept: who is away for longer than that is owed nothing more. A hook that is removed or
switched off wants nothing from then on; where no gateway was at work, from the next start of the one that had it.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway import record_subjects, records
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import EngineError
from gateway.hooks.filters import compile_filter
from gateway.hooks.patterns import EventSelector
from gateway.records import HookFolder, NodeHooks, OwedHook

KEPT_FOR = records.EVENT_TTL
WRITE_EVERY = records.DAY
LOOK_EVERY = 1.0  # seconds between two looks whether there are other hooks here now

ListHooks: TypeAlias = Callable[[], tuple[dict[str, HookFolder], tuple[OwedHook, ...]]]


class OwedFilter:
    """Whether a durable hook is owed an event."""

    def __init__(self, owed: OwedHook) -> None:
        self.owed = owed
        self._observes = EventSelector(owed.events)
        self._intercepts = EventSelector(owed.intercepts)
        self._matches = compile_filter(owed.when)

    def takes(self, name: str, fields: Mapping[str, Any]) -> bool:
        """One about itself, or that it intercepts, it is not owed."""
        if name.startswith("hook:") and fields.get("hook") == self.owed.hook:
            return False
        if name not in self._observes or name in self._intercepts:
            return False
        return self._matches is None or self._matches(fields)


@dataclass(frozen=True, slots=True)
class KnownNode:
    """What a gateway has written, until when it counts, and the filters of its durable hooks, by what they are made of.

    Gateways that have the same hooks share their filters: with a hundred of them an event is not looked at more often.
    """

    hooks: NodeHooks
    until: float
    filters: Mapping[bytes, OwedFilter]


class OtherHooks:
    """`node` is this gateway. It follows the journal, which is loaded before hooks are told of anything."""

    patterns: Sequence[str] = (record_subjects.NODE_HOOKS_SUBJECTS,)

    def __init__(self, engine: Engine, node: str) -> None:
        self._engine, self._node = engine, node
        self._known: dict[str, KnownNode] = {}  # by its name
        self._filters: dict[OwedFilter, float] = {}  # of the others, and until when it counts
        self._written: NodeHooks | None = None
        self._due = 0.0
        self.on_change: Callable[[], None] = lambda: None
        self.telling = anyio.CancelScope()

    async def load(self) -> None:
        self._known, self._filters = {}, {}
        async for record, kept in records.read_all(self._engine, record_subjects.NODE_HOOKS_SUBJECTS, NodeHooks):
            self._note(record, kept)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, NodeHooks):
            self._note(record, kept)

    def find(self, node: str) -> NodeHooks | None:
        """What it has, where it said so."""
        return self._known[node].hooks if node in self._known else None

    def list_filters(self, here: Collection[str]) -> Iterator[OwedFilter]:
        """Of the durable hooks that others have; those that are `here`, by the names of their consumers, left out."""
        now = self._engine.clock.latest()
        return (one for one, until in self._filters.items() if until > now and one.owed.token not in here)

    async def tell(self, settled: Callable[[], Awaitable[None]], list_here: ListHooks) -> None:
        """Write down what is here, from when it is `settled` on, until it is to be told no more."""
        with self.telling:
            await settled()
            while True:
                folders, owed = list_here()
                await self._write(NodeHooks(node=self._node, folders=folders, owed=owed))
                await anyio.sleep(LOOK_EVERY)

    async def _write(self, have: NodeHooks) -> None:
        """It is written where it is new, and once a day; if the journal is ill, the next time."""
        now = self._engine.clock.latest()
        if have == self._written and now < self._due:
            return
        subject = record_subjects.node_hooks_subject_of(self._node)
        with suppress(EngineError):
            (seq,) = await self._engine.append(NewRecord(subject, records.encode(have), ttl=KEPT_FOR))
            self._written, self._due = have, now + WRITE_EVERY
            await self._engine.purge(subject, seq - 1)

    def _note(self, record: Record, kept: NodeHooks) -> None:
        there = {key: one for node in self._known.values() for key, one in node.filters.items()}
        owed = {msgspec.json.encode(one): one for one in kept.owed}
        filters = {key: there.get(key) or OwedFilter(one) for key, one in owed.items()}
        self._known[kept.node] = KnownNode(kept, record.ts + KEPT_FOR, filters)
        ends = dict[OwedFilter, float]()
        for name, node in self._known.items():
            if name != self._node:
                ends |= {one: max(node.until, ends.get(one, 0.0)) for one in node.filters.values()}
        self._filters = ends
        self.on_change()

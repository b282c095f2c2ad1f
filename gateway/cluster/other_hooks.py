"""Which hooks the other gateways on a journal have, what these guard, and what durable ones are owed.

Each gateway writes down what it has, in one record of its own, and follows those of the others. So what happens where
the folder of a durable hook is missing is written for it all the same, also while no gateway that has it is at work. It
counts as long as events are kept: who is away for longer than that is owed nothing more. A hook that is removed or
switched off wants nothing from then on; where no gateway was at work, from the next start of the one that had it.
For as long what a hook guards is known on gateways that lack its folder (`other_guards`).
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import EngineError
from gateway.hooks.filters import compile_filter
from gateway.hooks.patterns import EventSelector
from gateway.records import records, subjects
from gateway.records.records import HookFolder, HookGuard, NodeHooks, OwedHook

KEPT_FOR = records.EVENT_TTL
WRITE_EVERY = records.DAY
LOOK_EVERY = 1.0  # seconds between two looks whether there are other hooks here now

ListHooks: TypeAlias = Callable[[], tuple[dict[str, HookFolder], tuple[OwedHook, ...], dict[str, HookGuard]]]


class OwedFilter:
    """Decides if a durable hook is owed an event, and knows the fields that it does not read."""

    def __init__(self, owed: OwedHook, left_out: frozenset[str] = frozenset()) -> None:
        self.owed = owed
        self.left_out = left_out
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


class KnownNode(msgspec.Struct, frozen=True):
    """What a gateway has written, until when it counts, and the filters of its durable hooks, by what they are made of.

    Gateways that have the same hooks share their filters: with a hundred of them an event is not looked at more often.
    """

    hooks: NodeHooks
    until: float
    filters: Mapping[bytes, OwedFilter]


class OtherHooks:
    """`node` is this gateway. It follows the journal, which is loaded before hooks are told of anything.

    `guards`: what others guard, by the names of their hooks and of the gateways that have them; `on_guards` hears of
    which hooks that changes.
    """

    patterns: Sequence[str] = (subjects.NODE_HOOKS_SUBJECTS,)

    def __init__(self, engine: Engine, node: str) -> None:
        self._engine, self._node = engine, node
        self._known: dict[str, KnownNode] = {}  # by its name
        self._filters: dict[OwedFilter, float] = {}  # of the others, and until when it counts
        self._written: NodeHooks | None = None
        self._due = 0.0
        self.guards: Mapping[str, Mapping[str, HookGuard]] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.on_guards: Callable[[Collection[str]], None] = lambda _names: None
        self.telling = anyio.CancelScope()
        self.told = anyio.Event()  # what is here was written down

    async def load(self) -> None:
        """What was known counts until all is read: a guard is not forgotten for a moment."""
        known: dict[str, KnownNode] = {}
        async for record, kept in records.read_all(self._engine, subjects.NODE_HOOKS_SUBJECTS, NodeHooks):
            known[kept.node] = _read_node(record, kept, known)
        self._use(known)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, NodeHooks):
            self._use({**self._known, kept.node: _read_node(record, kept, self._known)})

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
            await self._add_guards(list_here()[2])
            await settled()
            while True:
                folders, owed, guards = list_here()
                have = NodeHooks(node=self._node, folders=folders, owed=owed, guards=guards)
                await self._write(have)
                if have == self._written:
                    self.told.set()
                await anyio.sleep(LOOK_EVERY)
                self._forget_expired()

    async def _add_guards(self, guards: Mapping[str, HookGuard]) -> None:
        """Those that are new here count on others at once, also while a slow hook is still starting."""
        before = self.find(self._node) or NodeHooks(node=self._node)
        if new := {name: guard for name, guard in guards.items() if name not in before.guards}:
            told = {**before.guards, **new}
            await self._write(NodeHooks(node=self._node, folders=before.folders, owed=before.owed, guards=told))

    async def _write(self, have: NodeHooks) -> None:
        """It is written where it is new, and once a day; if the journal is ill, the next time."""
        now = self._engine.clock.latest()
        if have == self._written and now < self._due:
            return
        with suppress(EngineError):
            seq = await self._put(have)
            self._written, self._due = have, now + WRITE_EVERY
            await self._engine.purge(subjects.node_hooks_subject_of(self._node), seq - 1)

    async def forget(self, node: str) -> None:
        """It is no more: what it had counts no longer, here and on all others. EngineError: they cannot be told."""
        if node in self._known:
            seq = await self._put(NodeHooks(node=node))
            await self._engine.purge(subjects.node_hooks_subject_of(node), seq - 1)

    async def _put(self, have: NodeHooks) -> int:
        subject = subjects.node_hooks_subject_of(have.node)
        (seq,) = await self._engine.append(NewRecord(subject, records.encode(have), ttl=KEPT_FOR))
        return seq

    def _forget_expired(self) -> None:
        """Who was away for too long has nothing any more."""
        now = self._engine.clock.latest()
        if any(node.until <= now for node in self._known.values()):
            self._use({name: node for name, node in self._known.items() if node.until > now})

    def _use(self, known: dict[str, KnownNode]) -> None:
        """This is known from now on; who goes by it is told."""
        ends, guards = dict[OwedFilter, float](), dict[str, dict[str, HookGuard]]()
        for name, node in sorted(known.items()):
            if name == self._node:
                continue
            ends |= {one: max(node.until, ends.get(one, 0.0)) for one in node.filters.values()}
            for hook, guard in node.hooks.guards.items():
                guards.setdefault(hook, {})[name] = guard
        before, self.guards = self.guards, guards
        self._known, self._filters = known, ends
        self.on_change()
        if changed := [name for name in {**before, **guards} if before.get(name) != guards.get(name)]:
            self.on_guards(changed)


def _read_node(record: Record, kept: NodeHooks, known: Mapping[str, KnownNode]) -> KnownNode:
    """With the filters that those who are `known` have already."""
    there = {key: one for node in known.values() for key, one in node.filters.items()}
    owed = {msgspec.json.encode(one): one for one in kept.owed}
    return KnownNode(kept, record.ts + KEPT_FOR, {key: there.get(key) or OwedFilter(one) for key, one in owed.items()})

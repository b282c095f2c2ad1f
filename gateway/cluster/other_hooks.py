"""The hooks of the other gateways on a journal: their guards, and the events that their durable hooks want.

Each gateway writes its hooks into one record of its own, and follows the other gateways' records. So this gateway
records events for a durable hook whose folder is missing here, even while no gateway with this hook runs. It does so
for as long as events are kept: for a gateway that is away for longer, it records no events. A hook that is removed or
disabled gets no more events; if its gateway was not running then, from the next start of that gateway. For just as
long, gateways that lack the folder of a guard know of the guard (`other_guards`).
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway.cluster.other_guards import OtherGuardSource
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import EngineError
from gateway.hooks.places.other_hooks import ListHooks, OtherHooks, OwedFilter
from gateway.hooks.places.sources import Source
from gateway.records import records, subjects
from gateway.records.records import HookGuard, NodeHooks

KEPT_FOR = records.EVENT_TTL
WRITE_EVERY = records.DAY
LOOK_EVERY = 1.0  # seconds between two checks whether hooks of this gateway have changed


class KnownNode(msgspec.Struct, frozen=True):
    """A gateway's hooks, the time until which they count, and the filters of its durable hooks, by their content.

    Gateways with the same hooks share filters: a hundred such gateways cost no more checks for each event.
    """

    hooks: NodeHooks
    until: float
    filters: Mapping[bytes, OwedFilter]


ForgetFormer: TypeAlias = Callable[["SharedHooks"], Coroutine[Any, Any, None]]
"""Forget the hooks of this gateway under its former name, if the gateway had another name."""


class SharedHooks(OtherHooks):
    """The hooks of other gateways; `node` is this gateway. `load` reads the journal before hooks are called.

    `guards` lists the guards of other gateways, by hook and gateway.
    """

    patterns: Sequence[str] = (subjects.NODE_HOOKS_SUBJECTS,)

    def __init__(self, engine: Engine, node: str, forget_former: ForgetFormer | None = None) -> None:
        super().__init__()
        self._forget_former = forget_former
        self.copies = (self,)
        self._engine, self._node = engine, node
        self._known: dict[str, KnownNode] = {}  # by the name of the gateway
        self._filters: dict[OwedFilter, float] = {}  # of other gateways, each with the time until which it counts
        self._written: NodeHooks | None = None
        self._due = 0.0
        self.guards: Mapping[str, Mapping[str, HookGuard]] = {}
        self.told = anyio.Event()  # set once the record of this gateway's hooks is written

    async def load(self) -> None:
        """Load all records; the earlier state counts until all records are read, so that no guard is ever missing."""
        known: dict[str, KnownNode] = {}
        async for record, kept in records.read_all(self._engine, subjects.NODE_HOOKS_SUBJECTS, NodeHooks):
            known[kept.node] = _read_node(record, kept, known)
        self._use(known)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, NodeHooks):
            self._use({**self._known, kept.node: _read_node(record, kept, self._known)})

    def find(self, node: str) -> NodeHooks | None:
        return self._known[node].hooks if node in self._known else None

    def list_filters(self, here: Collection[str]) -> Iterator[OwedFilter]:
        now = self._engine.clock.latest()
        return (one for one, until in self._filters.items() if until > now and one.owed.token not in here)

    def list_sources(self, path: Path) -> tuple[Source, ...]:
        return (OtherGuardSource(path, self),)

    async def tell(self, settled: Callable[[], Awaitable[None]], list_here: ListHooks) -> None:
        with self.telling:
            async with anyio.create_task_group() as tasks:
                if self._forget_former:
                    tasks.start_soon(self._forget_former, self)
                await self._tell(settled, list_here)

    async def _tell(self, settled: Callable[[], Awaitable[None]], list_here: ListHooks) -> None:
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
        """Write new guards at once, so that other gateways know of them even while a slow hook still starts."""
        before = self.find(self._node) or NodeHooks(node=self._node)
        if new := {name: guard for name, guard in guards.items() if name not in before.guards}:
            told = {**before.guards, **new}
            await self._write(NodeHooks(node=self._node, folders=before.folders, owed=before.owed, guards=told))

    async def _write(self, have: NodeHooks) -> None:
        """Write the record of this gateway if the hooks are new, and once a day; an ill journal is tried again."""
        now = self._engine.clock.latest()
        if have == self._written and now < self._due:
            return
        with suppress(EngineError):
            seq = await self._put(have)
            self._written, self._due = have, now + WRITE_EVERY
            await self._engine.purge(subjects.node_hooks_subject_of(self._node), seq - 1)

    async def forget(self, node: str) -> None:
        """Forget a gateway that no longer exists, here and on all other gateways.

        Raises EngineError if the journal takes no appends.
        """
        if node in self._known:
            seq = await self._put(NodeHooks(node=node))
            await self._engine.purge(subjects.node_hooks_subject_of(node), seq - 1)

    async def _put(self, have: NodeHooks) -> int:
        subject = subjects.node_hooks_subject_of(have.node)
        (seq,) = await self._engine.append(NewRecord(subject, records.encode(have), ttl=KEPT_FOR))
        return seq

    def _forget_expired(self) -> None:
        """Forget gateways that were away for too long."""
        now = self._engine.clock.latest()
        if any(node.until <= now for node in self._known.values()):
            self._use({name: node for name, node in self._known.items() if node.until > now})

    def _use(self, known: dict[str, KnownNode]) -> None:
        """Use this state, and call `on_change` and, for changed guards, `on_guards`."""
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
    """Read a gateway's record, and reuse the filters of `known` gateways."""
    there = {key: one for node in known.values() for key, one in node.filters.items()}
    owed = {msgspec.json.encode(one): one for one in kept.owed}
    return KnownNode(kept, record.ts + KEPT_FOR, {key: there.get(key) or OwedFilter(one) for key, one in owed.items()})

"""The work that one node at a time does for all nodes of a journal: read a bot's messages, maintain the records.

Each such task has a lease. The holder renews the lease and works; the other nodes are on standby. They do not ask for
the holder repeatedly: every node announces by live messages all leases that it holds or waits for, every two seconds
and at each change. If no node has announced a lease for as long as a lease lasts, the waiting nodes try to take it.

- A node that cannot renew in time stops before another can start (`certain_for`), even if the journal does not answer.
  The writes of a node are also fenced, by the position up to which the node has read; a lease only saves other nodes
  the work.
- A node that ends releases its leases and announces its end: another node continues at once.
- A node that holds two more bots than another node gives that node one of its bots.
- If many nodes wait for one free lease, each tries at a moment of its own, and the first announces that it holds the
  lease.
"""

import logging
import random
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec

from gateway.cluster.other_nodes import HeardNodes
from gateway.config.node_settings import NodeRole
from gateway.daemon.nodes import BOT, FindFiles, NodeFacts, NodeFiles, Nodes
from gateway.daemon.parts import Part, ServeFunction
from gateway.engine.interface import Engine, Lease
from gateway.errors import EngineError
from gateway.records import subjects

LEASE_SECONDS = 8.0
RENEWALS = 4.0  # within the time of a lease; the holder's work stops one interval before the lease ends
GLANCE = 0.5  # between two tries for a lease that seems free
TURN = 0.05  # about the time between the tries of two waiting nodes, so that they do not all try at once
LOAD_PAUSE = 0.3  # a node waits this much longer for each bot that it has more than another node
GIVEN_PAUSE = 2.0  # how long a node that gave a lease away leaves it to others
GIVEN_SECONDS = 300.0  # how long a node does not give the same lease away again
ILL_SECONDS = 60.0  # a part that fails for this long leaves its lease to another node

log = logging.getLogger(__name__)


class OwnLease(msgspec.Struct, eq=False):
    """A lease of this node, and the scopes of the work that runs under the lease."""

    lease: Lease
    until: float  # no other node starts before this time, by the steady clock
    since: float
    scopes: set[anyio.CancelScope] = msgspec.field(default_factory=set)
    is_well: bool = False

    def extend(self, until: float) -> None:
        self.until = until
        for scope in self.scopes:
            scope.deadline = until

    def stop_work(self) -> None:
        for scope in self.scopes:
            scope.cancel()


class SharedNodes(Nodes):
    """This node, which does the work of its `roles`, and the `others`. `run` renews the leases of this node."""

    others: HeardNodes

    def __init__(self, engine: Engine, name: str, roles: tuple[NodeRole, ...], seconds: float = LEASE_SECONDS) -> None:
        """Create the facts about this node; `seconds` is the time of a lease without a renewal."""
        self._run = uuid.uuid4().hex
        super().__init__(name, roles, HeardNodes(name, self._run, seconds))
        self._engine = engine
        self._seconds, self._pause = seconds, seconds / RENEWALS
        self.find_files: FindFiles = NodeFiles
        self._held: dict[str, OwnLease] = {}
        self._waits: Counter[str] = Counter()
        self._given: dict[str, float] = {}  # when each lease was given away
        self._changed = anyio.Event()
        self._one_at_a_time = anyio.Lock()
        self._is_gone = False

    async def run(
        self,
        find_files: FindFiles = NodeFiles,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        self.find_files = find_files
        heard = await self._engine.tail(subjects.PRESENCE_SUBJECTS)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.others.listen, heard)
                task_status.started()
                due = anyio.current_time()
                while True:
                    if anyio.current_time() >= due:
                        due = anyio.current_time() + self._pause
                        await self._renew_all()
                        self._give_to_others()
                    self._changed = anyio.Event()
                    await self._tell()
                    with anyio.move_on_after(due - anyio.current_time()):
                        await self._changed.wait()
        finally:
            self._is_gone = True
            with anyio.CancelScope(shield=True):
                await self._tell()

    def make_part(
        self,
        name: str,
        serve: ServeFunction,
        key: str,
        rest: Callable[[str], None] = lambda _why: None,
        prepare: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> Part:
        return LeasePart(name, serve, self, key, rest, prepare)

    async def take(self, key: str, tell: Callable[[str], None]) -> None:
        """Wait for the lease of this key; `tell` gets its current holder, "" if unknown."""
        self._waits[key] += 1
        self._changed.set()
        try:
            while not self.certain_for(key):
                news = self.others.news
                if not self.others.find_holder(key):
                    await anyio.sleep(self._find_patience(key))
                    await self._try(key)
                if not self.certain_for(key):
                    tell(self.others.find_holder(key))
                    with anyio.move_on_after(max(self.others.count_seconds(key), GLANCE)):
                        await news.wait()
        finally:
            self._waits[key] -= 1
            self._changed.set()

    @contextmanager
    def working(self, key: str) -> Iterator[anyio.CancelScope]:
        """Run work inside the block, and cancel it when the lease may end, or goes to another node."""
        own = self._held[key]
        with anyio.CancelScope(deadline=own.until) as scope:
            own.scopes.add(scope)
            try:
                yield scope
            finally:
                own.scopes.discard(scope)
                own.is_well = bool(own.scopes) and own.is_well

    def note_well(self, key: str) -> None:
        """Note that the work under the lease of this key succeeds."""
        if own := self._held.get(key):
            own.is_well = True
            self._changed.set()

    async def release(self, key: str, *, is_given: bool = False) -> None:
        """Release the lease, so that another node continues at once, unless work under the lease still runs here.

        With `is_given`, other nodes may try the lease first, and this node does not give it away again soon.
        """
        own = self._held.get(key)
        if own is None or own.scopes:
            return
        if is_given:
            self._given[key] = anyio.current_time()
        del self._held[key]
        with anyio.move_on_after(self._pause, shield=True):
            with suppress(EngineError):  # then the lease expires
                await own.lease.release()
            await self._tell()

    def certain_for(self, key: str) -> float:
        own = self._held.get(key)
        return max(own.until - anyio.current_time(), 0.0) if own else 0.0

    def is_wanted(self, key: str) -> bool:
        """Return True if another node waits for the lease, and this node has not given it away recently."""
        is_new = anyio.current_time() - self._given.get(key, -GIVEN_SECONDS) >= GIVEN_SECONDS
        return is_new and bool(self.others.list_waiting(key))

    def describe(self) -> NodeFacts:
        held = {key: own for key, own in self._held.items() if self.certain_for(key)}
        holds = {key: own.since for key, own in held.items()}
        works = tuple(key for key, own in held.items() if own.is_well)
        waits = (*+self._waits,)
        return NodeFacts(self.name, self._run, self._since, holds, works, waits, self._is_gone, roles=self.roles)

    def _find_patience(self, key: str) -> float:
        """Return how long to leave a free lease to nodes with less work, and by chance to nodes with as much work."""
        if anyio.current_time() - self._given.get(key, -self._seconds) < self._seconds:
            return GIVEN_PAUSE
        mine, theirs = self.describe().bots, [one.bots for one in self.others.list_waiting(key)]
        if not key.startswith(BOT):
            mine, theirs = 0, [0] * len(theirs)
        turns = random.uniform(0.0, sum(bots <= mine for bots in theirs))  # noqa: S311 - no secret
        return max(mine - min(theirs, default=mine), 0) * LOAD_PAUSE + turns * TURN

    async def _try(self, key: str) -> None:
        async with self._one_at_a_time:
            if self.certain_for(key) or self.others.find_holder(key):
                return
            begun = anyio.current_time()
            try:
                lease = await self._engine.lease(key, self.name, self._seconds)
            except EngineError as error:
                log.debug("the lease %s cannot be taken now: %s", key, error)
                return
            if lease:
                self._held[key] = OwnLease(lease, begun + self._seconds - self._pause, time.time())
                self._changed.set()
                self.others.wake()

    async def _renew_all(self) -> None:
        with anyio.move_on_after(self._seconds):  # absent servers must not block longer
            async with anyio.create_task_group() as tasks:
                for key, own in list(self._held.items()):
                    tasks.start_soon(self._renew, key, own)

    async def _renew(self, key: str, own: OwnLease) -> None:
        begun = anyio.current_time()
        try:
            is_ours = await own.lease.renew()
            if not is_ours and begun < own.until:  # an answer was lost: the lease is still ours, or free
                lease = await self._engine.lease(key, self.name, self._seconds)
                own.lease, is_ours = lease or own.lease, lease is not None
        except EngineError as error:
            log.debug("the lease %s cannot be renewed now: %s", key, error)
            return  # the work under the lease ends in time
        if is_ours:
            own.extend(begun + self._seconds - self._pause)
        elif self._held.get(key) is own:
            del self._held[key]
            own.stop_work()
            self._changed.set()

    def _give_to_others(self) -> None:
        """Give a bot to a node that waits for it and has at least two bots fewer."""
        mine = self.describe().bots
        for key, own in sorted(self._held.items()):
            fewest = min((one.bots for one in self.others.list_waiting(key)), default=mine)
            if key.startswith(BOT) and own.scopes and mine - fewest >= 2 and self.is_wanted(key):
                log.info("%s is left to another node, which has less to do", key.removeprefix(BOT))
                self._given[key] = anyio.current_time()
                own.stop_work()
                return

    async def _tell(self) -> None:
        """Announce this node; a lost announcement does no harm, because the next comes soon."""
        with suppress(EngineError):
            where = subjects.presence_subject_of(self.name)
            await self._engine.publish(where, msgspec.json.encode(describe_all(self)))


class LeasePart(Part):
    """A part that runs only on the node that holds its lease, and is on standby on all other nodes.

    The node keeps the lease while the part is paused, and while the part restarts after a fault. If the part has failed
    for `patience` seconds and another node waits for the lease, that node may try.
    """

    def __init__(
        self,
        name: str,
        serve: ServeFunction,
        nodes: SharedNodes,
        key: str,
        rest: Callable[[str], None] = lambda _why: None,
        prepare: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        super().__init__(name, self._serve_alone)
        self._rest, self._prepare = rest, prepare
        self._work = serve
        self._nodes = nodes
        self._key = key
        self.patience = ILL_SECONDS
        self._ill_since: float | None = None

    def up(self, detail: str = "") -> None:
        self._ill_since = None
        self._nodes.note_well(self._key)
        super().up(detail)

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._nodes.release(self._key)

    async def _serve_alone(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        await self._prepare()
        while True:
            await self._nodes.take(self._key, self._note_holder)
            try:
                with self._nodes.working(self._key) as scope:
                    await self._work(task_status=task_status)
            except Exception:
                await self._leave_if_ill()
                raise
            if not scope.cancelled_caught:
                return
            await self._nodes.release(self._key)

    def _note_holder(self, holder: str) -> None:
        why = f"on standby: {holder} serves it" if holder else "waits until it is free"
        if (self.facts.state, self.facts.detail) != ("standby", why):
            self.stand_by(why)
            self._rest(why)

    async def _leave_if_ill(self) -> None:
        now = anyio.current_time()
        self._ill_since = self._ill_since or now
        if now - self._ill_since >= self.patience and self._nodes.is_wanted(self._key):
            self._ill_since = None
            await self._nodes.release(self._key, is_given=True)


def describe_all(nodes: SharedNodes) -> NodeFacts:
    """Describe this node with its files."""
    files = nodes.find_files() or NodeFiles()
    return msgspec.structs.replace(nodes.describe(), **files._asdict(), clock=time.time())

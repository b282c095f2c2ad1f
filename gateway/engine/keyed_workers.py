"""Run one worker per key: each delivery of a consumer only wakes the worker of its key.

Order and truth are in the journal, so a delivery carries nothing that a worker needs. The first delivery of a key
starts its worker, which runs until it reads the journal and finds no more work. As long as the worker runs, it holds
the newest delivery unacknowledged: after a crash that delivery comes again and restarts the worker. All other
deliveries of the key are superfluous, and `serve` acknowledges them together. So a flood for one key takes some
milliseconds and delays no other key. A delivery that comes twice, late or out of order does no harm.

No wake-up is lost at the end of a worker. The worker reads the journal, finds no work and no delivery since it began to
read, and returns without awaiting anything; `_live` removes the worker from the dictionary before it awaits anything. A
delivery before this removal counts as news for the worker, and a delivery after it starts a new worker.

Keys that wait when serving begins (after a crash, or a night) form the `WorkerBacklog`. If all their workers started at
once, a new message would wait for all of them. So at most `BACKLOG_WORKERS` of them run at a time, the groups take
turns, and a key with a new delivery starts at once.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.abc
import anyio.lowlevel
import msgspec

from gateway.backoff import Backoff, find_pause
from gateway.engine.interface import Consumer, Delivery, Record
from gateway.errors import EngineError, EngineTooNew, GatewayError

log = logging.getLogger(__name__)

FETCH_COUNT = 256
FETCH_SECONDS = 60.0  # a delivery ends the wait at once
BACKLOG_SECONDS = 5.0  # how long a fetch waits for the rest of the backlog
RETRY_SECONDS = 1.0
RELEASE_SECONDS = 1.0
BACKLOG_WORKERS = 32  # workers of the backlog that run at a time
TOO_NEW_BACKOFF = Backoff(0.25, 15.0)  # before a record that needs a later version comes again, to any gateway
SHOWN_SECONDS = 600.0
MOST_SHOWN = 1000


class TooNewRecords(msgspec.Struct, eq=False):
    """The records that a later version of the gateway wrote, and that this version leaves alone."""

    _left: OrderedDict[str, float] = msgspec.field(default_factory=OrderedDict)
    _why: str = ""

    def note(self, key: str, error: EngineTooNew) -> None:
        if not self._why:
            log.warning("%s is left to a later version of the gateway, and so is what else it writes: %s", key, error)
        self._why = str(error)
        self._left[key] = time.monotonic()
        self._left.move_to_end(key)
        if len(self._left) > MOST_SHOWN:
            self._left.popitem(last=False)

    def describe(self) -> str:
        """Describe the recent records for an operator; "" if no record was left."""
        since = time.monotonic() - SHOWN_SECONDS
        count = sum(at >= since for at in self._left.values())
        return f"{count} were left to a later version of the gateway: {self._why}" if count else ""


class Wakeup(msgspec.Struct, eq=False):
    """The delivery that a worker holds, and whether another delivery came since the worker last called `listen`."""

    is_backlog: bool = False  # whether the worker was started for the backlog
    rest: Callable[[], None] = lambda: None  # called before it waits, so that other workers of the backlog can start
    _delivery: Delivery | None = None
    _news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def record(self) -> Record | None:
        """The record of the delivery."""
        return self._delivery.record if self._delivery else None

    @property
    def has_news(self) -> bool:
        """True if a delivery came since the last call of `listen`."""
        return self._news.is_set()

    def notify(self, delivery: Delivery) -> Delivery | None:
        """Take a delivery; if the worker holds another delivery, keep the newer and return the older."""
        self._news.set()
        held = self._delivery
        if held and held.record.seq > delivery.record.seq:
            return delivery
        self._delivery = delivery
        return held if held and held.record.seq != delivery.record.seq else None

    def listen(self) -> None:
        """Start to count deliveries as news. Call this method before you read the journal."""
        self._news = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for a delivery, at most `seconds`."""
        self.rest()
        with anyio.move_on_after(seconds):
            await self._news.wait()

    async def progress(self) -> None:
        if self._delivery:
            await self._delivery.progress()

    async def leave(self, *, is_over: bool, is_too_new: bool = False) -> None:
        """Acknowledge the delivery if all work is done; else return it, with a delay if it needs a later version."""
        if self._delivery and is_too_new:
            await refuse_delivery(self._delivery)
        elif self._delivery:
            await (self._delivery.ack() if is_over else self._delivery.nak())


async def refuse_delivery(delivery: Delivery) -> None:
    """Return a delivery that only a later version can read, with growing pauses.

    The pauses grow slowly, because a gateway of this version may take the delivery again a few times.
    """
    await delivery.nak(TOO_NEW_BACKOFF.pause_after((delivery.attempt + 1) // 2))


class KeyedWorker(Protocol):
    """A worker for one key. `run` ends when no work is left (`is_over`) or after a call of `finish`."""

    wakeup: Wakeup
    is_over: bool

    async def run(self) -> None:
        """Work until no work of the key is left.

        Await nothing between the last read of the journal, which found no work and no news, and the return.

        Raises:
            EngineTooNew: a later version of the gateway has written records of this key.
        """

    def finish(self) -> None:
        """Let `run` end after the current piece of work, or at once if the worker waits."""


WorkerT = TypeVar("WorkerT", bound=KeyedWorker)


class WorkerBacklog(msgspec.Struct, eq=False):
    """The keys whose workers have not started, in groups that take turns.

    `left` counts the deliveries of the backlog that are still to come.
    """

    left: int = 0
    _groups: OrderedDict[str, deque[str]] = msgspec.field(default_factory=OrderedDict)
    _group_of: dict[str, str] = {}
    _begun: set[str] = set()

    def __len__(self) -> int:
        return len(self._group_of)

    def add(self, key: str, group: str) -> None:
        self._groups.setdefault(group, deque()).append(key)
        self._group_of[key] = group

    def take(self, key: str) -> bool:
        """Remove a key whose worker starts now; return False if the key was not in the backlog."""
        group = self._group_of.pop(key, None)
        if group is None:
            return False
        self._groups[group].remove(key)
        if not self._groups[group]:
            del self._groups[group]
        return True

    def take_next(self) -> str | None:
        """Remove and return the next key to start; None if the backlog is empty or BACKLOG_WORKERS run."""
        if len(self._begun) >= BACKLOG_WORKERS or not self._groups:
            return None
        group, keys = next(iter(self._groups.items()))
        key = keys[0]
        self.take(key)
        if group in self._groups:
            self._groups.move_to_end(group)
        self._begun.add(key)
        return key

    def list_keys(self) -> list[str]:
        """List the keys whose workers have not started, in the order of their start."""
        turns = zip_longest(*self._groups.values())
        return [key for turn in turns for key in turn if key is not None]

    def take_any(self) -> str | None:
        """Remove any key whose worker has not started, and return the key; None if the backlog is empty."""
        key = next(iter(self._group_of), None)
        if key is not None:
            self.take(key)
        return key

    def leave(self, key: str) -> bool:
        """Note that a worker ended or rests; return True if the worker came from the backlog."""
        was_begun = key in self._begun
        self._begun.discard(key)
        return was_begun


class KeyedWorkers(msgspec.Struct, Generic[WorkerT], eq=False):
    """The live workers, by key.

    `key_of` returns the key of a record (None: no worker needs the record), and `make` creates a worker. With
    `group_of` at most `BACKLOG_WORKERS` workers of the backlog run at a time, and the groups take turns.
    """

    _key_of: Callable[[Record], str | None]
    _make: Callable[[str], WorkerT]
    _on_delivery: Callable[[WorkerT, Record], None] = lambda _worker, _record: None
    _group_of: Callable[[Record], str] | None = None
    too_new: TooNewRecords = msgspec.field(default_factory=TooNewRecords)
    _backlog: WorkerBacklog = msgspec.field(default_factory=WorkerBacklog)
    _workers: dict[str, WorkerT] = {}
    _ended: anyio.Event = msgspec.field(default_factory=anyio.Event)
    _scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)

    def worker(self, key: str) -> WorkerT | None:
        return self._workers.get(key)

    @property
    def is_closed(self) -> bool:
        """True once no further worker may start."""
        return self._scope.cancel_called

    def begin(self, key: str, tasks: anyio.abc.TaskGroup) -> WorkerT:
        """Start the worker of a key, even without a delivery, and return the worker."""
        worker = self._workers[key] = self._make(key)
        tasks.start_soon(self._live, key, worker, tasks)
        return worker

    def list_live(self) -> list[WorkerT]:
        """List all workers, including workers that have not started."""
        return list(self._workers.values())

    def list_waiting(self) -> list[WorkerT]:
        """List the workers that have not started, in the order of their start."""
        return [self._workers[key] for key in self._backlog.list_keys()]

    @property
    def waiting(self) -> int:
        """The number of workers that have not started."""
        return len(self._backlog)

    async def serve(self, consumer: Consumer, tasks: anyio.abc.TaskGroup, backlog: int = 0) -> None:
        """Take deliveries until `close`; the workers run in the given task group.

        The first `backlog` deliveries are work that waited before the start.
        """
        self._backlog.left = backlog if self._group_of else 0
        with self._scope:
            while True:
                wait = BACKLOG_SECONDS if self._backlog.left else FETCH_SECONDS
                try:
                    deliveries = await consumer.fetch(FETCH_COUNT, wait)
                except EngineError as error:
                    log.warning("nothing comes from the journal now: %s", error)
                    await anyio.sleep(RETRY_SECONDS)
                    continue
                superfluous, too_new = list[Delivery](), list[Delivery]()
                for one in deliveries:
                    try:
                        superfluous += [older] if (older := self._dispatch(one, tasks)) else []
                    except EngineTooNew as error:
                        self.too_new.note(one.record.subject, error)
                        too_new.append(one)
                if len(deliveries) < FETCH_COUNT:
                    self._backlog.left = 0  # the whole backlog has been delivered
                else:
                    await anyio.lowlevel.checkpoint()  # a flood must not block other tasks
                if superfluous:
                    await consumer.ack(superfluous)
                for delivery in too_new:
                    await refuse_delivery(delivery)

    async def close(self) -> None:
        """Take no more deliveries, and wait until all running workers have ended. Waiting workers never start."""
        self._scope.cancel()
        while (key := self._backlog.take_any()) is not None:
            del self._workers[key]  # its delivery comes again at the next start
        while self._workers:
            self._ended = anyio.Event()
            for worker in list(self._workers.values()):
                worker.finish()
            await self._ended.wait()

    async def keep_held(self, ack_wait: float) -> None:
        """Extend the wait again and again, until cancelled; without workers, look half as often."""
        while True:
            await anyio.sleep(find_pause(ack_wait / 3 if self._workers else ack_wait / 1.5))
            if self._workers:
                with suppress(EngineError):  # an ill journal reports itself, and delivers nothing
                    await self.progress()

    async def progress(self) -> None:
        """Extend the acknowledgement wait of all held deliveries, so that the journal does not repeat them."""
        if self._workers:
            async with anyio.create_task_group() as beats:
                for worker in self._workers.values():
                    beats.start_soon(worker.wakeup.progress)

    def _dispatch(self, delivery: Delivery, tasks: anyio.abc.TaskGroup) -> Delivery | None:
        try:
            key = self._key_of(delivery.record)
        except EngineTooNew:
            raise
        except (GatewayError, ValueError) as error:
            # Not acknowledged: the record comes again, and a later version of the gateway may be able to read it.
            log.error("record %d on %s cannot be read: %s", delivery.record.seq, delivery.record.subject, error)
            return None
        if key is None:
            return delivery
        is_backlog = self._backlog.left > 0
        self._backlog.left -= is_backlog
        if (worker := self._workers.get(key)) is None:
            if is_backlog and self._group_of:
                worker = self._workers[key] = self._make(key)
                worker.wakeup.is_backlog = True
                self._backlog.add(key, self._group_of(delivery.record))
                worker.wakeup.rest = partial(self._leave_backlog, key, tasks)
                self._begin_next(tasks)
            else:
                worker = self.begin(key, tasks)
                worker.wakeup.is_backlog = is_backlog
        elif not is_backlog:
            worker.wakeup.is_backlog = False
            if self._backlog.take(key):
                tasks.start_soon(self._live, key, worker, tasks)
        superfluous = worker.wakeup.notify(delivery)
        self._on_delivery(worker, delivery.record)
        return superfluous

    def _begin_next(self, tasks: anyio.abc.TaskGroup) -> None:
        while (key := self._backlog.take_next()) is not None:
            tasks.start_soon(self._live, key, self._workers[key], tasks)

    def _leave_backlog(self, key: str, tasks: anyio.abc.TaskGroup) -> None:
        if self._backlog.leave(key):
            self._begin_next(tasks)

    async def _live(self, key: str, worker: WorkerT, tasks: anyio.abc.TaskGroup) -> None:
        is_too_new = False
        try:
            await worker.run()
        except EngineTooNew as error:
            self.too_new.note(key, error)
            is_too_new = True
        finally:
            # Before anything is awaited: a delivery from here on finds no worker and starts a new one.
            del self._workers[key]
            if not self._scope.cancel_called:
                self._leave_backlog(key, tasks)
            self._ended.set()
            leave = partial(worker.wakeup.leave, is_over=worker.is_over, is_too_new=is_too_new)
            if worker.is_over:
                await leave()  # if the process stops here, the delivery comes again, to a worker that finds nothing
            else:
                with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                    await leave()

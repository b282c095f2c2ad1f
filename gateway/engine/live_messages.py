"""The part of a journal that ends with the process: messages without a record, requests, tails and leases.

All single-process engines share this part. A lease needs no disk: the file lock excludes a second process, so all
leases may end with the process. Only the tokens of leases must grow over restarts; therefore a token begins with an
`epoch` that the engine counts up at each opening.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self
from weakref import ref

import anyio
import anyio.lowlevel
import msgspec

from gateway.engine.interface import ConsumerSpec, Delivery, Record, RequestHandler, StopServing
from gateway.engine.journal_clock import Clock
from gateway.engine.subjects import check_pattern, check_subject, compile_patterns
from gateway.errors import EngineError

LIVE_VERSION = 1  # the newest version of live messages that we can read
TAIL_LENGTH = 1000
MOST_SUBJECTS = 4096  # subjects whose listeners are cached
TOKENS_PER_EPOCH = 1 << 32

log = logging.getLogger(__name__)


class LiveTail:
    """The live records of some patterns, at most TAIL_LENGTH waiting. `TailIndex` forgets unreferenced tails."""

    def __init__(self, *patterns: str) -> None:
        for pattern in patterns:
            check_pattern(pattern)
        self.wants = compile_patterns(patterns)
        ends = {pattern.rpartition(".")[2] for pattern in patterns}
        # Nearly all tails listen to one session, whose token ends every subject: the ends are a fast first check.
        self.ends = None if ends & {"*", ">"} else ends
        self.dropped = 0
        self._waiting: deque[Record] = deque(maxlen=TAIL_LENGTH)
        self._reader: asyncio.Future[None] | None = None  # the future of the reader that waits
        self._ended = False

    def put(self, *records: Record) -> None:
        self.dropped += max(0, len(self._waiting) + len(records) - TAIL_LENGTH)
        self._waiting.extend(records)
        if self._reader:
            reader, self._reader = self._reader, None
            if not reader.done():
                reader.set_result(None)

    def end(self) -> None:
        self._ended = True
        self.put()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._waiting.popleft()


class TailIndex(msgspec.Struct, eq=False):
    """The tails by the ends of their subjects. The index forgets a tail with its last reference."""

    _by_end: dict[str, list[ref[LiveTail]]] = {}
    _others: list[ref[LiveTail]] = []
    _others_at: dict[str, list[ref[LiveTail]]] = {}  # by subject, the matching

    def add(self, tail: LiveTail) -> None:
        if tail.ends is None:
            self._others.append(ref(tail, self._forget))
            self._others_at.clear()
        for end in tail.ends or ():
            self._by_end.setdefault(end, []).append(ref(tail, partial(self._forget_end, end)))

    def find(self, subject: str) -> list[LiveTail]:
        others = self._others_at.get(subject)
        if others is None:
            if len(self._others_at) == MOST_SUBJECTS:
                self._others_at.clear()
            others = [one for one in self._others if (tail := one()) and tail.wants(subject)]
            self._others_at[subject] = others
        refs = others
        if one_session := self._by_end.get(subject.rpartition(".")[2]):
            refs = others + [one for one in one_session if (tail := one()) and tail.wants(subject)]
        return [tail for one in refs if (tail := one())] if refs else []

    def list_all(self) -> list[LiveTail]:
        listed = (one() for refs in (self._others, *self._by_end.values()) for one in tuple(refs))
        return [tail for tail in listed if tail]

    def _forget(self, gone: "ref[LiveTail]") -> None:
        self._others.remove(gone)
        self._others_at.clear()

    def _forget_end(self, end: str, gone: "ref[LiveTail]") -> None:
        left = self._by_end[end]
        left.remove(gone)
        if not left:
            del self._by_end[end]


class LiveLease(msgspec.Struct, eq=False):
    """A lease. The dictionary `leases` names the holder of each key."""

    key: str
    holder: str
    token: int
    ttl: float
    until: float
    leases: "dict[str, LiveLease]"
    steady: Callable[[], float]

    def is_held(self) -> bool:
        return self.leases.get(self.key) is self and self.steady() < self.until

    async def renew(self) -> bool:
        if not self.is_held():
            return False
        self.until = self.steady() + self.ttl
        return True

    async def release(self) -> None:
        if self.leases.get(self.key) is self:
            del self.leases[self.key]


class LiveConsumer(ABC):
    """A durable consumer as its users see it: `fetch` sleeps until a record may be ready, and never polls."""

    def __init__(self, spec: ConsumerSpec) -> None:
        self.spec = spec
        self.signal = Signal()

    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        await anyio.lowlevel.checkpoint_if_cancelled()  # if records always wait, the code below never awaits
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            event = self.signal.event
            taken, pause = await self.take(n)
            left = until - loop.time()
            if taken or n <= 0 or left <= 0 < pause:
                return taken
            if pause > 0:
                timer = loop.call_later(min(left, pause), self.signal.notify)
                try:
                    await event.wait()
                finally:
                    timer.cancel()

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        await self.acknowledge([delivery.record.seq for delivery in deliveries])

    @abstractmethod
    async def take(self, n: int) -> tuple[list[Delivery], float]:
        """Take the ready records; also return how many seconds `fetch` may wait for the signal before the next call."""

    @abstractmethod
    async def acknowledge(self, seqs: Sequence[int]) -> None: ...

    @abstractmethod
    async def postpone(self, delivery: "LiveDelivery", delay: float) -> None: ...


class LiveDelivery(msgspec.Struct, eq=False):
    """One record that a caller has fetched."""

    record: Record
    attempt: int
    consumer: LiveConsumer
    is_given_back: bool = False

    async def ack(self) -> None:
        await self.consumer.acknowledge((self.record.seq,))

    async def nak(self, delay: float = 0) -> None:
        if not self.is_given_back:
            self.is_given_back = True
            await self.consumer.postpone(self, delay)

    async def progress(self) -> None:
        if not self.is_given_back:
            await self.consumer.postpone(self, self.consumer.spec.ack_wait)


class LiveMessages:
    """The part that all single-process engines share: messages, requests, tails and leases leave no record."""

    _consumers: Mapping[str, LiveConsumer]

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tails = TailIndex()
        self._servers: dict[str, RequestHandler] = {}
        self._answering: set[asyncio.Task[bytes]] = set()
        self._leases: dict[str, LiveLease] = {}
        self._token = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        for tail in self._tails.list_all():
            tail.end()
        for task in self._answering:
            task.cancel()
        for consumer in self._consumers.values():
            consumer.signal.notify()

    async def publish(self, subject: str, data: bytes, *, version: int = 1) -> None:  # noqa: ARG002 - no one else listens
        self._check_open()
        check_subject(subject)
        self._spread([Record(0, subject, data, self._clock.wall())])

    async def request(self, subject: str, data: bytes, timeout: float, *, version: int = 1) -> bytes:
        await self.publish(subject, data, version=version)
        answer = self._servers.get(subject)
        if answer is None:
            raise TimeoutError(f"no gateway serves {subject!r}")
        task = asyncio.create_task(_call_handler(subject, answer, data))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        try:
            return await asyncio.wait_for(asyncio.shield(task), timeout)
        except TimeoutError:
            raise TimeoutError(f"no answer on {subject!r} within {timeout:g} s") from None

    async def serve(self, subject: str, answer: RequestHandler) -> StopServing:
        self._check_open()
        check_subject(subject)
        if subject in self._servers:
            raise ValueError(f"{subject!r} is served already; end the other one first")
        self._servers[subject] = answer

        async def unserve() -> None:
            if self._servers.get(subject) is answer:
                del self._servers[subject]

        return unserve

    async def tail(self, *patterns: str) -> LiveTail:
        self._check_open()
        tail = LiveTail(*patterns)
        self._tails.add(tail)
        return tail

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> LiveLease | None:
        self._check_open()
        if await self.holder(key) not in (None, holder):
            return None
        self._token += 1
        until = self._clock.steady() + ttl
        lease = LiveLease(key, holder, self._token, ttl, until, self._leases, self._clock.steady)
        self._leases[key] = lease
        return lease

    async def holder(self, key: str) -> str | None:
        self._check_open()
        lease = self._leases.get(key)
        return lease.holder if lease is not None and lease.is_held() else None

    async def holders(self, beginning: str) -> dict[str, str]:
        self._check_open()
        return {key: one.holder for key, one in self._leases.items() if key.startswith(beginning) and one.is_held()}

    def _spread(self, records: list[Record]) -> None:
        """Pass records to the tails that match."""
        found: dict[LiveTail, list[Record]] = {}
        for record in records:
            for tail in self._tails.find(record.subject):
                found.setdefault(tail, []).append(record)
        for tail, some in found.items():
            tail.put(*some)

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError("the journal is closed")


async def _call_handler(subject: str, answer: RequestHandler, data: bytes) -> bytes:
    try:
        return await answer(data)
    except asyncio.CancelledError:
        raise EngineError(f"the answer on {subject!r} was broken off: the journal is closed") from None
    except Exception as error:
        # The caller gets an error for any exception of the handler.
        log.warning("the answer on %s failed", subject, exc_info=error)
        raise EngineError(f"the answer on {subject!r} failed: {error!r}") from error


class Signal(msgspec.Struct, eq=False):
    """A signal to all waiting tasks. Take the event, look for work, and wait for the event if you find no work.

    `notify` sets the event and puts a new event in its place. So a call of `notify` before the wait ends the wait at
    once, and no event is ever cleared.
    """

    event: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def notify(self) -> None:
        old, self.event = self.event, asyncio.Event()
        old.set()

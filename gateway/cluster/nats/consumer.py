"""A durable consumer on the server, and its deliveries.

The server holds the consumer. While a caller fetches, this module asks the server for as many messages as the caller
takes, and for no more, because messages on their way to one gateway reach no other gateway.

    fetch(n) ──> ReceivedDeliveries.take(n) ── enough, or time is over ──> return them
      ^             ^  nothing: ask for the missing ones, wait for news
      │             │
      │           _StreamRequests.ask ── batch, expires in 5 s ──> server
      │             │                                               │
      └── news ── _hear <── one of these, to the inbox ─────────────┘

                    record        -> put into ReceivedDeliveries, and counted off the oldest request
                    100           -> heartbeat: the request is still open
                    404, 408      -> the request is over, and was answered
                    another status -> the request is over: pause, and check that the consumer still exists

    ack, nak, progress ──> server. After a nak, or after `ack_wait` seconds, any gateway may get the record again.

A request is void after a reconnect, or after three missed heartbeats: the next fetch asks again. If a caller was
cancelled and no caller fetches within a second, the untaken deliveries go back to the server.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from gateway.backoff import Attempts, Backoff
from gateway.cluster.nats.connection import NO_CONSUMER, Connection, NoAnswer, ServerRefusal
from gateway.cluster.nats.names import consumer_name_of
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.stored_messages import BODY, read_time
from gateway.cluster.nats.streams import NANOSECONDS
from gateway.engine.interface import ConsumerSpec, Delivery, Record
from gateway.engine.live_messages import Signal
from gateway.errors import EngineError

REQUEST_SECONDS = 5.0  # shorter than a lease: when another gateway takes over, the requests of a lost gateway are void
LOOK_SECONDS = 0.1  # after this time the server's consumers know all stored records
DRAIN_SECONDS = 1.0  # for messages that a server has sent already; a server that hangs must not delay the end
HEARTBEAT_SECONDS = 2.0
ACK_SECONDS = 5.0
LEFT_SECONDS = 1.0  # the time in which a cancelled caller may fetch again, even on a slow host
NOTHING_MORE = {"404", "408"}  # no more messages came before the request expired
REFUSED_BACKOFF = Backoff(0.05, 1.0)  # servers without a majority refuse at once, and all gateways ask them

log = logging.getLogger(__name__)


class NatsConsumer:
    """A durable consumer; all callers in this process that fetch under one name share this object."""

    def __init__(self, connection: Connection, reader: RecordReader, spec: ConsumerSpec) -> None:
        self.spec = spec
        self.is_forgotten = False
        self.arrived = ReceivedDeliveries()
        self.news = Signal()
        self._connection = connection
        self._requests = _StreamRequests(connection, reader, self)

    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        with self.arrived.wanted():
            return await self._fetch(n, wait)

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        await asyncio.gather(*(delivery.ack() for delivery in deliveries))

    async def _fetch(self, n: int, wait: float) -> list[Delivery]:
        await asyncio.sleep(0)
        end = time.monotonic() + wait
        if wait <= 0:
            await self._requests.look(n)
        while True:
            self.check()
            news = self.news.event
            left = end - time.monotonic()
            if (taken := self.arrived.take(n)) or left <= 0:
                return [*taken]
            pause = await self._requests.ask(n)
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), min(left, pause))

    def check(self) -> None:
        self._connection.check_open()
        if self.is_forgotten:
            raise EngineError(f"the consumer {self.spec.name!r} was forgotten; make it again")

    async def return_arrived(self) -> None:
        """Return the untaken deliveries to the server, for other gateways, and request no more."""
        await self._requests.stop()
        await self.arrived.give_back()

    def wake(self) -> None:
        self.news.notify()

    async def end(self) -> None:
        """End this gateway's side of a consumer that was removed."""
        self.is_forgotten = True
        self.wake()
        await self._requests.end()


class _StreamRequests:
    """A consumer's open requests to the stream, and the messages that answer them."""

    def __init__(self, connection: Connection, reader: RecordReader, consumer: NatsConsumer) -> None:
        self._connection = connection
        self._names = reader.names
        self._reader = reader
        self._consumer = consumer
        self._latest: WeakValueDictionary[int, NatsDelivery] = WeakValueDictionary()  # by the record's sequence
        self._inbox = connection.client.new_inbox()
        self._subscription: Subscription | None = None
        self._number = 0
        self._open: dict[str, int] = {}  # how many messages may still come, by request
        self._heard = 0.0
        self._is_answered = False  # whether the server answered the last request that ended
        self._refusals = Attempts(REFUSED_BACKOFF)
        self._ask_after = 0.0  # by the steady clock: until then the server would refuse
        connection.on_return.append(self._forget_requests)

    def _forget_requests(self) -> None:
        """Drop all open requests."""
        self._open.clear()
        self._consumer.wake()

    async def look(self, n: int) -> None:
        """Receive the messages that are ready now."""
        arrived = self._consumer.arrived
        end = time.monotonic() + ACK_SECONDS
        self._is_answered = False
        while not self._is_answered and len(arrived) < n and time.monotonic() < end:
            await asyncio.sleep(max(self._ask_after - time.monotonic(), 0))
            request = await self._request(n - len(arrived), LOOK_SECONDS)
            while request in self._open and len(arrived) < n and time.monotonic() < end:
                self._consumer.check()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._consumer.news.event.wait(), LOOK_SECONDS)
            self._open.pop(request, None)

    async def ask(self, n: int) -> float:
        """Ask for the missing messages, and return the seconds until the next call.

        The server serves all open requests in turn, and takes 512 of them: with one request for each message, a gateway
        that needs many messages would get more than the other gateways.
        """
        if (pause := self._ask_after - time.monotonic()) > 0:
            return min(pause, HEARTBEAT_SECONDS)
        if self._open and time.monotonic() - self._heard > 3 * HEARTBEAT_SECONDS:
            self._open.clear()
            await self._see_whether_it_is_there()
            self._consumer.check()
        coming = sum(self._open.values())
        if coming <= n // 2:
            await self._request(n - coming, REQUEST_SECONDS, HEARTBEAT_SECONDS)
        return HEARTBEAT_SECONDS

    async def _request(self, count: int, seconds: float, heartbeat: float = 0.0) -> str:
        if self._subscription is None:
            self._subscription = await self._connection.listen(f"{self._inbox}.*", self._hear)
        self._number += 1
        request = f"{self._inbox}.{self._number}"
        asked = {"batch": count, "expires": int(seconds * NANOSECONDS)}
        if heartbeat:
            asked["idle_heartbeat"] = int(heartbeat * NANOSECONDS)
        where = f"$JS.API.CONSUMER.MSG.NEXT.{self._names.stream}.{consumer_name_of(self._consumer.spec.name)}"
        self._open[request], self._heard = count, time.monotonic()
        try:
            await self._connection.publish(where, json.dumps(asked).encode(), reply=request)
        except NoAnswer:
            self._open.pop(request, None)
            await asyncio.sleep(LOOK_SECONDS)
        return request

    async def _hear(self, message: Msg) -> None:
        """Handle a record, the end of a request, or a heartbeat."""
        self._heard = time.monotonic()
        headers = message.headers or {}
        status = headers.get("Status")
        if status is None:
            self._refusals.reset()
            self._count_off()
            await self._receive(message, headers)
        elif status == "100":
            self._refusals.reset()
            return
        else:
            await self._note_end(message.subject, is_answered=status in NOTHING_MORE)
        self._consumer.wake()

    async def _note_end(self, request: str, *, is_answered: bool) -> None:
        self._open.pop(request, None)
        self._is_answered = is_answered
        if is_answered:
            self._refusals.reset()
            return
        if time.monotonic() >= self._ask_after:  # the server refuses together requests that were sent together
            self._ask_after = time.monotonic() + self._refusals.pause()
        await self._see_whether_it_is_there()

    async def _receive(self, message: Msg, headers: Mapping[str, str]) -> None:
        meta = message.metadata
        self._reader.known.note(meta.sequence.stream)
        subject = self._names.subject_of_stored(message.subject)
        record = Record(meta.sequence.stream, subject, message.data, read_time(headers, meta.timestamp.timestamp()))
        try:
            whole = await self._reader.complete(record, message.subject, headers.get(BODY))
        except EngineError as error:
            log.warning("%s comes again: %s", subject, error)
            return
        if whole is None:
            return
        delivery = NatsDelivery(self._consumer, whole, message, self._connection)
        if earlier := self._latest.get(whole.seq):
            earlier.is_repeated = True
        self._latest[whole.seq] = delivery
        self._consumer.arrived.put(delivery)

    def _count_off(self) -> None:
        """Count a message off the oldest request: the server answers requests in order."""
        if request := next(iter(self._open), None):
            self._open[request] -= 1
            if self._open[request] <= 0:
                del self._open[request]

    async def _see_whether_it_is_there(self) -> None:
        """Check that no gateway has removed the consumer."""
        try:
            where = f"$JS.API.CONSUMER.INFO.{self._names.stream}.{consumer_name_of(self._consumer.spec.name)}"
            await self._connection.ask_stored(where, b"")
        except ServerRefusal as refusal:
            self._consumer.is_forgotten |= refusal.number == NO_CONSUMER
        except NoAnswer:
            return

    async def stop(self) -> None:
        """Cancel all requests, and wait for all messages that the server has sent so far."""
        self._open.clear()
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            with suppress(NatsError, TimeoutError):  # the connection and the subscription are gone, or the server hangs
                async with asyncio.timeout(DRAIN_SECONDS):
                    await subscription.drain()  # type: ignore[no-untyped-call]

    async def end(self) -> None:
        self._connection.on_return.remove(self._forget_requests)
        await self.stop()


class ReceivedDeliveries:
    """The deliveries that have arrived and that no caller has taken yet.

    If a cancelled caller does not come back, the deliveries are returned, so that other gateways get them at once.
    """

    def __init__(self) -> None:
        self._waiting: deque[NatsDelivery] = deque()
        self._takers = 0
        self._left_at: float | None = None  # by the steady clock: no caller since then
        self._returning: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Count the caller as a taker of deliveries inside the block."""
        self._left_at = None
        self._takers += 1
        is_cut_off = False
        try:
            yield
        except asyncio.CancelledError:
            is_cut_off = True
            raise
        finally:
            self._takers -= 1
            if self._takers == 0 and is_cut_off:
                self._left_at = time.monotonic()
                self._begin_return()

    def put(self, delivery: "NatsDelivery") -> None:
        self._waiting.append(delivery)
        self._begin_return()

    def take(self, n: int) -> "list[NatsDelivery]":
        taken: list[NatsDelivery] = []
        while self._waiting and len(taken) < n:
            delivery = self._waiting.popleft()
            if not delivery.is_late:
                taken.append(delivery)
        return taken

    async def give_back(self) -> None:
        await asyncio.gather(*(delivery.nak() for delivery in self.take(len(self))))

    def _begin_return(self) -> None:
        if self._left_at is not None and self._waiting and (self._returning is None or self._returning.done()):
            self._returning = asyncio.create_task(self._return_later())

    async def _return_later(self) -> None:
        """Return the deliveries if no caller fetches for LEFT_SECONDS."""
        while self._left_at is not None and self._waiting:
            if (left := self._left_at + LEFT_SECONDS - time.monotonic()) > 0:
                await asyncio.sleep(left)
            else:
                await self.give_back()


class NatsDelivery:
    """One record that a caller has fetched."""

    def __init__(self, consumer: NatsConsumer, record: Record, message: Msg, connection: Connection) -> None:
        self.record = record
        self.attempt = message.metadata.num_delivered or 1
        self.is_repeated = False
        self._is_given_back = False
        self._reply = message.reply
        self._consumer = consumer
        self._connection = connection
        self._since = time.monotonic()

    @property
    def is_late(self) -> bool:
        """True if the record was delivered again, or may have been."""
        return self.is_repeated or time.monotonic() - self._since > self._consumer.spec.ack_wait

    async def ack(self) -> None:
        await self._answer(b"+ACK")

    async def nak(self, delay: float = 0) -> None:
        is_first, self._is_given_back = not self._is_given_back, True
        if is_first and not self.is_late:
            await self._answer(
                b"-NAK " + json.dumps({"delay": int(delay * NANOSECONDS)}).encode() if delay else b"-NAK"
            )

    async def progress(self) -> None:
        if not self._is_given_back and not self.is_late:
            self._since = time.monotonic()
            await self._answer(b"+WPI")

    async def _answer(self, word: bytes) -> None:
        with suppress(NoAnswer):
            await self._connection.ask(self._reply, word, seconds=ACK_SECONDS)

"""Live messages between all gateways, on the server's own subjects, and the tails that listen to them.

Tails get the messages of several subscriptions in the order of their arrival. The server shows each new record once, to
the clients that are connected: one subscription receives the records for the view (`known_records`) and for all tails.
After a lost connection, or a change of servers, `run` reads the missed records from the journal.
"""

import asyncio
import itertools
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from heapq import heappop, heappush
from typing import TypeAlias

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from gateway.cluster.nats.connection import Connection, NoAnswer, sequence_of
from gateway.cluster.nats.known_records import KnownRecords
from gateway.cluster.nats.names import Names, merge_patterns
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.stored_messages import BODY
from gateway.engine.interface import Record, RequestHandler, StopServing
from gateway.engine.keyed_workers import TooNewRecords
from gateway.engine.live_messages import LIVE_VERSION, LiveTail
from gateway.engine.subjects import SubjectMatcher, check_subject, compile_patterns, matches
from gateway.errors import EngineError, EngineTooNew

FAILED, SEEN, VERSION = "Failed", "Seen", "Version"
LONGEST_VERSION = 20
PAGE = 1000
LOOK_SECONDS = 1.0
FLUSH_SECONDS = 5

_Arrived: TypeAlias = "tuple[int, int, Msg, _Listener, list[str]]"

log = logging.getLogger(__name__)


class _Listener(msgspec.Struct, eq=False):
    """A tail that receives the server's messages.

    `reached` is the last record that the tail has received. Records up to `caught_up` are older than the tail or were
    read from the journal; the server may still show them.
    """

    tail: "weakref.ref[LiveTail]"
    patterns: list[str]
    wants_subject: SubjectMatcher
    reached: int
    caught_up: int

    def wants(self, record: Record) -> bool:
        return self.tail() is not None and not 0 < record.seq <= self.caught_up

    def put(self, record: Record) -> None:
        self.reached = max(self.reached, record.seq)
        if tail := self.tail():
            tail.put(record)

    async def catch_up(self, reader: RecordReader) -> None:
        """Read the records after the last received record, in the order of the stream."""
        while self.tail() is not None:
            after = self.reached
            pages = [await reader.read(pattern, after, PAGE, fresh=True) for pattern in self.patterns]
            upto = min((page[-1].seq for page in pages if len(page) == PAGE), default=None)
            found = {one.seq: one for page in pages for one in page if upto is None or one.seq <= upto}
            for seq in sorted(found):
                self.put(found[seq])
            self.caught_up = self.reached
            if upto is None:
                return


class LiveSubjects:
    """The live messages of one gateway: publish, request, serve and listen."""

    def __init__(self, connection: Connection, names: Names, reader: RecordReader, now: Callable[[], float]) -> None:
        self._connection = connection
        self._names = names
        self._reader = reader
        self._known = reader.known
        self._now = now
        self.too_new = TooNewRecords()
        self._tails: weakref.WeakSet[LiveTail] = weakref.WeakSet()
        self._served: set[str] = set()
        self._asking: set[asyncio.Future[Msg]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[_Listener] = []
        self._arrived: list[_Arrived] = []
        self._has_missed = False  # messages may have been lost
        self._count = itertools.count()
        self._news = asyncio.Event()

    async def start(self) -> None:
        self._connection.on_return.append(self._note_gap)
        await self._connection.listen(self._names.shown, self._hear_shown)
        await self._connection.listen(self._names.purged, self._known.hear_purge)
        self._known.begin(await self._reader.read_end())

        async def hear(_message: Msg) -> None:
            self._note_gap()

        if self._reader.copies > 1:
            where = f"$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.{self._names.stream}"
            await self._connection.listen(where, hear)

    def _note_gap(self) -> None:
        self._known.forget()
        self._has_missed = True
        self._news.set()

    async def publish(self, subject: str, data: bytes, version: int) -> None:
        check_subject(subject)
        headers = _describe_known(self._known) | _describe_version(version)
        try:
            await self._connection.publish(self._names.live(subject), data, headers)
        except NoAnswer as error:
            raise EngineError(f"the NATS server at {self._connection.url} is not there: {error}") from error

    async def tail(self, *patterns: str) -> LiveTail:
        tail = LiveTail(*patterns)
        wanted, subscriptions = merge_patterns(patterns), []
        since = self._known.seen
        listener = _Listener(weakref.ref(tail), wanted, compile_patterns(wanted), since, since)
        self._tails.add(tail)
        self._listeners.append(listener)
        for place, pattern in enumerate(wanted):
            hear = self._listen(listener, wanted[:place])
            subscriptions.append(await self._connection.listen(self._names.live(pattern), hear))
        with suppress(NatsError, OSError, TimeoutError):  # a server that is away gets the subscriptions when it is back
            await self._connection.client.flush(FLUSH_SECONDS)
        weakref.finalize(tail, self._end_soon, asyncio.get_running_loop(), listener, subscriptions)
        return tail

    def _listen(self, listener: "_Listener", earlier: list[str]) -> Callable[[Msg], Awaitable[None]]:
        async def hear(message: Msg) -> None:
            heappush(self._arrived, (sequence_of(message), next(self._count), message, listener, earlier))
            self._news.set()

        return hear

    async def _hear_shown(self, message: Msg) -> None:
        await self._known.hear(message)
        subject = self._names.subject_of_stored(message.subject)
        for listener in self._listeners:
            if listener.wants_subject(subject):
                heappush(self._arrived, (sequence_of(message), next(self._count), message, listener, []))
                self._news.set()

    async def run(self) -> None:
        """Pass messages on to the tails, until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(0)  # after this, other subscriptions have queued what arrived at the same time
            self._news.clear()
            try:
                await self._catch_up()
            except EngineError as error:
                log.info("who listens waits for what was missed: %s", error)
                await asyncio.sleep(LOOK_SECONDS)
                self._news.set()
                continue
            while self._arrived:
                _, _, message, listener, earlier = heappop(self._arrived)
                try:
                    await self._tell(message, listener, earlier)
                except EngineError as error:
                    log.warning("who listens does not hear %s: %s", message.subject, error)

    async def _catch_up(self) -> None:
        while self._has_missed:
            self._has_missed = False
            try:
                self._known.begin(await self._reader.read_end())
                for listener in list(self._listeners):
                    await listener.catch_up(self._reader)
            except EngineError:
                self._has_missed = True
                raise

    async def _tell(self, message: Msg, listener: "_Listener", earlier: list[str]) -> None:
        """Pass a message to the tail of its listener.

        A message that matches two patterns arrives twice, and only counts for the first pattern.
        """
        if error := _find_too_new(message):
            self.too_new.note(self._names.subject_of_live(message.subject), error)
            return
        _note_known(self._known, message)
        record = _decode_message(message, self._names, self._now())
        self._known.note(record.seq)
        if not listener.wants(record) or any(matches(one, record.subject) for one in earlier):
            return
        body = (message.headers or {}).get(BODY)
        if whole := await self._reader.complete(record, self._names.stored_of_shown(message.subject), body):
            listener.put(whole)

    def _end_soon(
        self, loop: asyncio.AbstractEventLoop, listener: "_Listener", subscriptions: list[Subscription]
    ) -> None:
        self._listeners.remove(listener)
        if not loop.is_closed() and not self._connection.client.is_closed:
            loop.call_soon_threadsafe(lambda: self._begin(_end_all(subscriptions)))

    def _begin(self, work: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def request(self, subject: str, data: bytes, timeout: float, version: int) -> bytes:
        check_subject(subject)
        headers = _describe_known(self._known) | _describe_version(version)
        asking = asyncio.ensure_future(
            self._connection.client.request(self._names.live(subject), data, timeout, headers=headers)
        )
        self._asking.add(asking)
        try:
            answer = await asyncio.shield(asking)
        except NoRespondersError:
            raise TimeoutError(f"no gateway serves {subject!r}") from None
        except (NatsTimeout, TimeoutError):
            raise TimeoutError(f"no answer on {subject!r} within {timeout:g} s") from None
        except asyncio.CancelledError:
            if asking.cancelled() and self._connection.client.is_closed:
                raise EngineError(f"the answer on {subject!r} was broken off: the journal is closed") from None
            asking.cancel()
            raise
        except (NatsError, OSError) as error:
            raise EngineError(f"the NATS server at {self._connection.url} is not there: {error}") from error
        finally:
            self._asking.discard(asking)
        _note_known(self._known, answer)
        if failed := (answer.headers or {}).get(FAILED):
            raise EngineError(f"the answer on {subject!r} failed: {failed}")
        return answer.data

    async def serve(self, subject: str, answer: RequestHandler) -> StopServing:
        check_subject(subject)
        if subject in self._served:
            raise ValueError(f"{subject!r} is served already; end the other one first")

        async def hear(message: Msg) -> None:
            if message.reply:
                self._begin(self._answer(subject, answer, message))

        subscription = await self._connection.listen(self._names.live(subject), hear)
        self._served.add(subject)

        async def unserve() -> None:
            if subject in self._served:
                self._served.discard(subject)
                await _end_all([subscription])

        try:
            await self._reader.read_end()  # the answer proves that the server has the subscription
        except BaseException:
            self._served.discard(subject)
            self._begin(_end_all([subscription]))
            raise
        return unserve

    async def _answer(self, subject: str, answer: RequestHandler, message: Msg) -> None:
        _note_known(self._known, message)
        failed: dict[str, str] = {}
        try:
            if too_new := _find_too_new(message):
                self.too_new.note(subject, too_new)
                data, failed = b"", {FAILED: str(too_new)}
            else:
                data = await answer(message.data)
        except Exception as error:  # the caller gets an error for any exception of the handler
            log.warning("the answer on %s failed", subject, exc_info=error)
            data, failed = b"", {FAILED: repr(error).replace("\n", " ")}
        try:
            await self._connection.publish(message.reply, data, _describe_known(self._known) | failed)
        except NoAnswer as error:
            log.warning("the answer on %s was not heard: %s", subject, error)

    def end(self) -> None:
        """End all tails and requests, because the journal is closed."""
        for tail in list(self._tails):
            tail.end()
        for asking in self._asking:
            asking.cancel()
        for task in self._tasks:
            task.cancel()


def _describe_known(known: KnownRecords) -> dict[str, str]:
    """Return the header with the last sequence that we know of, so that the receiver reads at least as far."""
    return {SEEN: str(known.seen)}


def _describe_version(version: int) -> dict[str, str]:
    """Return the header with the version; version 1 has no header, because the first gateways knew no versions."""
    return {VERSION: str(version)} if version > 1 else {}


def _find_too_new(message: Msg) -> EngineTooNew | None:
    """Return the error if the message needs a later version of the gateway; otherwise None."""
    version = (message.headers or {}).get(VERSION, "1")
    if version.isdecimal() and int(version) <= LIVE_VERSION:
        return None
    return EngineTooNew(
        f"a message of version {version[:LONGEST_VERSION]!r} came; this gateway reads up to {LIVE_VERSION}: "
        "upgrade hermes-gateway"
    )


def _note_known(known: KnownRecords, message: Msg) -> None:
    if seen := (message.headers or {}).get(SEEN):
        known.note(int(seen))


def _decode_message(message: Msg, names: Names, now: float) -> Record:
    """Decode a published message, or a record that the server shows."""
    if message.subject.startswith(names.live("")):
        return Record(0, names.subject_of_live(message.subject), message.data, now)
    seq = int((message.headers or {}).get("Nats-Sequence", 0))
    return Record(seq, names.subject_of_stored(message.subject), message.data, now)


async def _end_all(subscriptions: list[Subscription]) -> None:
    for subscription in subscriptions:
        try:
            await subscription.unsubscribe()
        except NatsError:
            continue  # the connection is gone, and the subscription with it

"""A journal on the server, read whole and written whole, to be taken to another engine or from one.

Records keep their sequences. The server counts by itself; so where one is missing, something is written in its place
and removed at the end. The pieces of what is too large for a message lie behind all the rest. Where there are several
streams, each record comes into the one that its sequence says, and what is appended later into others behind them.

Nobody else works on the journal meanwhile, and a mark keeps everybody from opening what is not whole.
"""

import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from gateway.engine.interface import ConsumerSpec
from gateway.engine.journal_position import SHARD_BITS, JournalPosition, load_position
from gateway.engine.nats.connection import Connection, ServerRefusal, time_of
from gateway.engine.nats.consumer import NatsConsumer
from gateway.engine.nats.names import TAKEN, Names, consumer_name_of, digest_of
from gateway.engine.nats.record_writer import MOST
from gateway.engine.nats.removals import list_removals
from gateway.engine.nats.shards import RecordStream, Shards
from gateway.engine.nats.stored_consumers import describe_consumer, list_patterns, read_consumer
from gateway.engine.nats.stored_messages import (
    BODY,
    ID,
    LIFETIME,
    MESSAGE_ID,
    ROOM,
    WRITTEN,
    StoredMessage,
    split_body,
)
from gateway.engine.nats.streams import MARK, NANOSECONDS, JournalState, Layout, replace_stream, set_mark
from gateway.engine.stored_journal import StoredConsumer, StoredRecord
from gateway.errors import EngineError

EXPECTED_END = "Nats-Expected-Last-Sequence"
PAGE = 500
BATCH_BYTES = 4_000_000
HOLD_SECONDS = 3600.0  # what is in somebody's hands stays there until the gateway takes it back
FETCH_SECONDS = 2.0
TRIES = 5

ReportCount: TypeAlias = Callable[[int], None]


@dataclass(slots=True)
class _Pieces:
    """Of one record, to be written behind all others."""

    where: str
    data: bytes
    limit: Mapping[str, str]


class NatsJournal:
    """Made by `NatsEngine.get_journal`."""

    def __init__(self, connection: Connection, names: Names, state: JournalState, window: float) -> None:
        self._connection = connection
        self._names = names
        self._state = state
        self._window = window
        self._streams = Shards(connection, names, state).streams

    async def set_mark(self, mark: str) -> None:
        await set_mark(self._connection, self._names, mark)

    async def is_empty(self) -> bool:
        """Asks whether nothing was ever written."""
        return await self.read_last_seq() == 0

    async def read_last_seq(self) -> int:
        """The highest that there ever was."""
        ends = await self.read_ends()
        return max((end for end, _ in ends.list_ranges() if end not in ends.shards), default=0)

    async def read_ends(self) -> JournalPosition:
        """How far each stream is written."""
        begins = [stream.names.begin for stream in self._streams]
        return load_position(begins).advance(*[await stream.reader.read_end() for stream in self._streams])

    async def read(self, behind: JournalPosition | None = None) -> AsyncIterator[StoredRecord]:
        """All records, or those behind a position, with the limits that they got later."""
        later = await list_removals(self._connection, self._names)
        reached = behind.reached if behind else [0] * len(self._streams)
        for stream, after in zip(self._streams, reached, strict=True):
            async for record in self._read_stream(stream, after, later):
                yield record

    async def _read_stream(
        self, stream: RecordStream, after: int, later: Mapping[str, list[tuple[int, int]]]
    ) -> AsyncIterator[StoredRecord]:
        while True:
            page = await stream.reader.read_page(stream.names.stored_filter(">"), after, PAGE)
            for record in page.records:
                if whole := await stream.reader.complete_of(page, record):
                    headers = page.headers[record.seq]
                    due = [at for at, upto in later.get(record.subject, ()) if record.seq <= upto]
                    until = _find_end(headers) if LIFETIME in headers else min(due, default=None)
                    msg_id = json.loads(headers[ID]) if ID in headers else None
                    yield StoredRecord(record.seq, record.subject, whole.data, record.ts, msg_id, until)
            if not page.records or page.left == 0:
                return
            after = page.records[-1].seq

    async def fill(self, records: Iterable[StoredRecord], last_seq: int, mark: str, report: ReportCount) -> None:
        """Make the streams anew, with a mark, and put the records into them.

        Raises:
            EngineError: it could not be done; the mark says so.
        """
        await self.set_mark(mark)
        shards, last = self._state.layout.count, last_seq >> SHARD_BITS
        is_one = shards == 1 and last == 0
        layout = Layout(shards, 0 if is_one or last_seq == 0 else last + 1)
        self._state = JournalState(self._state.copies, mark, layout)
        self._streams = Shards(self._connection, self._names, self._state).streams
        made = _StreamMaker(self._connection, self._streams, self._window, layout.describe() | {MARK: mark})
        for number, one in enumerate(records, 1):
            if one.is_over():
                continue
            filler = await made.find_filler(one.seq)
            await filler.fill_gap(one.seq - 1)
            await filler.add(one)
            report(number)
        filler = await made.find_filler(last_seq, last_seq + 1)
        await filler.fill_gap(last_seq)
        await made.end()
        await self._connection.call(f"STREAM.PURGE.{self._names.keys}", filter=self._names.removal("*", "*"))

    async def add_consumer(self, one: StoredConsumer) -> None:
        """Make it where it is, and have it deliver again what it is owed, and only that.

        Raises:
            EngineError: the server does not deliver what it must.
        """
        for stream in self._streams:
            owed = {seq: tries for seq, tries in one.owed.items() if seq >> SHARD_BITS == stream.names.shard}
            floor = min(max(one.floor, stream.names.begin), await stream.reader.read_end())
            await self._add_to_stream(stream, StoredConsumer(one.name, one.patterns, floor, owed))

    async def _add_to_stream(self, stream: RecordStream, one: StoredConsumer) -> None:
        spec = ConsumerSpec(one.name, one.patterns, ack_wait=HOLD_SECONDS, max_inflight=MOST + len(one.owed))
        begin = min(one.owed, default=one.floor + 1)
        config = describe_consumer(stream.names, spec) | {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(1, begin),
        }
        where = f"CONSUMER.CREATE.{stream.names.stream}.{consumer_name_of(one.name)}"
        await self._connection.call(where, stream_name=stream.names.stream, config=config)
        left = await _list_between(stream, config["filter_subjects"], begin - 1, one.floor)
        consumer, empty = NatsConsumer(self._connection, [stream], spec), 0
        while left:
            found = await consumer.fetch(min(PAGE, len(left)), FETCH_SECONDS)
            empty = 0 if found else empty + 1
            if empty == TRIES:
                raise EngineError(f"the NATS server does not deliver to {one.name!r} what it is owed")
            for delivery in found:
                if delivery.record.seq not in one.owed:
                    await delivery.ack()
                elif delivery.attempt < one.owed[delivery.record.seq]:
                    await delivery.nak()
                    continue
                left.discard(delivery.record.seq)
        await consumer.end()

    async def read_consumers(self, names: Iterable[str]) -> list[StoredConsumer]:
        """How far they are. What they are owed the server says to nobody, but delivers; so it is in our hands then."""
        return [
            await self._merge([await self._read_consumer(stream, name) for stream in self._streams]) for name in names
        ]

    async def read_floors(self, names: Iterable[str]) -> list[StoredConsumer]:
        """Up to where all is done, while somebody works on: what is behind that, they are owed."""
        return [await self._merge([await self._read_floor(stream, name) for stream in self._streams]) for name in names]

    async def _merge(self, parts: Sequence[StoredConsumer]) -> StoredConsumer:
        """What was not handed out in one stream is owed where something was in a later one."""
        begins = {stream.names.begin for stream in self._streams}
        floor, owed = max((one.floor for one in parts if one.floor not in begins), default=0), dict[int, int]()
        for stream, one in zip(self._streams, parts, strict=True):
            if stream.names.shard < floor >> SHARD_BITS:
                filters = [stream.names.stored_filter(pattern) for pattern in one.patterns]
                end = await stream.reader.read_end()
                owed |= dict.fromkeys(await _list_between(stream, filters, one.floor, end), 0)
            owed |= one.owed
        return StoredConsumer(parts[0].name, parts[0].patterns, floor, dict(sorted(owed.items())))

    async def _read_floor(self, stream: RecordStream, name: str) -> StoredConsumer:
        found = await self._read_state(stream, name)
        return StoredConsumer(name, list_patterns(stream, found), int(found["ack_floor"]["stream_seq"]), {})

    async def _read_consumer(self, stream: RecordStream, name: str) -> StoredConsumer:
        found = await self._read_state(stream, name)
        patterns = list_patterns(stream, found)
        floor, owed = int(found["delivered"]["stream_seq"]), dict[int, int]()
        hold = found["config"]["ack_wait"] / NANOSECONDS
        consumer = NatsConsumer(self._connection, [stream], ConsumerSpec(name, patterns, hold))
        empty = 0
        while (count := int(found["num_ack_pending"]) - len(owed)) > 0:
            taken = await consumer.fetch(min(PAGE, count), FETCH_SECONDS)
            empty = 0 if taken else empty + 1
            if empty == TRIES:
                raise EngineError(f"the NATS server does not deliver to {name!r} what it is owed; try again")
            for delivery in taken:
                owed.setdefault(delivery.record.seq, max(1, delivery.attempt - 1))
            found = await self._read_state(stream, name)
        await consumer.end()
        return StoredConsumer(name, patterns, max(floor, *owed, 0), owed)

    async def _read_state(self, stream: RecordStream, name: str) -> dict[str, Any]:
        found = await read_consumer(self._connection, stream, name)
        if found is None:
            raise EngineError(f"the consumer {name!r} was there and is gone")
        return found


async def _list_between(stream: RecordStream, filters: Iterable[str], after: int, upto: int) -> set[int]:
    found: set[int] = set()
    for where in filters:
        reached = after
        while page := (await stream.reader.read_page(where, reached, PAGE)).records:
            found.update(record.seq for record in page if record.seq <= upto)
            reached = page[-1].seq
            if reached > upto:
                break
    return found


class _StreamMaker:
    """Makes the streams of a journal anew, one after the other, each as it is filled; `metadata` is for the first."""

    def __init__(
        self, connection: Connection, streams: Sequence[RecordStream], window: float, metadata: dict[str, str]
    ) -> None:
        self._connection = connection
        self._streams = streams
        self._window = window
        self._metadata = metadata
        self._made = 0
        self._filler: _StreamFiller | None = None

    async def find_filler(self, seq: int, first_seq: int = 0) -> "_StreamFiller":
        """Of the stream of this sequence; `first_seq`: where it begins, if not with that."""
        shard = seq >> SHARD_BITS
        if self._filler is None or shard >= self._made:
            await self._end_filler()
            while self._made < shard:
                await self._make(self._streams[self._made].names.begin + 1)
            stream = await self._make(first_seq or seq)
            self._filler = _StreamFiller(self._connection, stream, (first_seq or seq) - 1)
        return self._filler

    async def _make(self, first_seq: int) -> RecordStream:
        stream = self._streams[self._made]
        metadata = {} if self._made else self._metadata
        await replace_stream(self._connection, stream.names, self._window, first_seq, metadata)
        self._made += 1
        return stream

    async def _end_filler(self) -> None:
        if self._filler:
            await self._filler.end()

    async def end(self) -> None:
        """Those that are left are empty."""
        await self._end_filler()
        while self._made < len(self._streams):
            await self._make(self._streams[self._made].names.begin + 1)


def _find_end(headers: Mapping[str, str]) -> float:
    """When the server removes a record."""
    return time_of(headers["Nats-Time-Stamp"]) + float(headers[LIFETIME].removesuffix("s"))


class _StreamFiller:
    """Puts records into a stream that is empty, one right behind the other. `end`: of what is stored."""

    def __init__(self, connection: Connection, stream: RecordStream, end: int) -> None:
        self._connection = connection
        self._names = stream.names
        self._reader = stream.reader
        self._writer = stream.writer
        self._end = end
        self._waiting: list[StoredMessage] = []
        self._bytes = 0
        self._large: list[_Pieces] = []

    async def fill_gap(self, upto: int) -> None:
        while self._end + len(self._waiting) < upto:
            await self._put(StoredMessage(self._names.gap, b"", {}))

    async def add(self, one: StoredRecord) -> None:
        await self._put(self._encode(one))

    @property
    def _room(self) -> int:
        return self._connection.client.max_payload - ROOM

    def _encode(self, one: StoredRecord) -> StoredMessage:
        headers = {WRITTEN: repr(one.ts)}
        if one.msg_id is not None:
            headers |= {MESSAGE_ID: digest_of(one.msg_id), ID: json.dumps(one.msg_id)}
        limit = {} if one.until is None else {LIFETIME: str(max(1, math.ceil(one.until - time.time())))}
        stored = self._names.stored(one.subject, one.msg_id)
        if len(one.data) <= self._room:
            return StoredMessage(stored, one.data, headers | limit)
        piece_id = f"{TAKEN}{one.seq}"
        self._large.append(_Pieces(self._names.piece(stored, piece_id), one.data, limit))
        count = math.ceil(len(one.data) / self._room)
        return StoredMessage(stored, b"", headers | limit | {BODY: f"{piece_id} {count}"})

    async def _put(self, message: StoredMessage) -> None:
        self._waiting.append(message)
        self._bytes += len(message.data)
        if len(self._waiting) == MOST or self._bytes > BATCH_BYTES:
            await self._write()

    async def end(self) -> None:
        """The pieces of what is large, and what waits; what stands for records that are no more goes."""
        for pieces in self._large:
            for message in split_body(pieces.where, pieces.data, self._room, pieces.limit):
                await self._put(message)
        await self._write()
        await self._connection.call(f"STREAM.PURGE.{self._names.stream}", filter=self._names.gap)

    async def _write(self) -> None:
        """What waits, as one batch, exactly behind what is stored: whether a lost answer was a yes, the end says."""
        if not self._waiting:
            return
        self._waiting[0].headers[EXPECTED_END] = str(self._end)
        end, why = self._end + len(self._waiting), "it counts otherwise"
        try:
            await self._connection.insist(partial(self._writer.send, self._waiting))
        except ServerRefusal as refusal:
            why = str(refusal)
        if await self._reader.read_end() != end:
            raise EngineError(f"the NATS server does not take the records along: {why}")
        self._end, self._waiting, self._bytes = end, [], 0

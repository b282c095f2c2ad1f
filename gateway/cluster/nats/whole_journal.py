"""Read or write a whole journal on the server, for a migration to or from another engine.

Records keep their sequences. The server counts without gaps, so each missing record gets a placeholder, which is
removed at the end. The pieces of large records are behind all records.

No other gateway uses the journal during a migration, and a mark prevents that a gateway opens an incomplete journal.
"""

import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from gateway.cluster.nats.connection import Connection, ServerRefusal, time_of
from gateway.cluster.nats.consumer import NatsConsumer
from gateway.cluster.nats.known_records import KnownRecords
from gateway.cluster.nats.names import TAKEN, Names, consumer_name_of, digest_of
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.record_writer import MOST, RecordWriter, WriteRights
from gateway.cluster.nats.removals import list_removals
from gateway.cluster.nats.stored_consumers import describe_consumer, list_patterns, read_consumer
from gateway.cluster.nats.stored_messages import (
    BODY,
    ID,
    LIFETIME,
    MESSAGE_ID,
    ROOM,
    WRITTEN,
    StoredMessage,
    split_body,
)
from gateway.cluster.nats.streams import NANOSECONDS, replace_stream, set_mark
from gateway.cluster.stored_journal import StoredConsumer, StoredRecord
from gateway.engine.interface import ConsumerSpec
from gateway.errors import EngineError

EXPECTED_END = "Nats-Expected-Last-Sequence"
PAGE = 500
BATCH_BYTES = 4_000_000
HOLD_SECONDS = 3600.0  # how long deliveries stay open, unless the gateway takes them back
FETCH_SECONDS = 2.0
TRIES = 5

ReportCount: TypeAlias = Callable[[int], None]


class _Pieces(msgspec.Struct):
    """The pieces of one record, to be written behind all records."""

    where: str
    data: bytes
    limit: Mapping[str, str]


class NatsJournal:
    """A journal for a migration. Create it by `NatsEngine.get_journal`."""

    def __init__(self, connection: Connection, names: Names, copies: int, window: float) -> None:
        self._connection = connection
        self._names = names
        self._window = window
        self._reader = RecordReader(connection, names, KnownRecords(names), copies)

    async def set_mark(self, mark: str) -> None:
        await set_mark(self._connection, self._names, mark)

    async def is_empty(self) -> bool:
        """Return True if the journal never had a record."""
        return await self.read_last_seq() == 0

    async def read_last_seq(self) -> int:
        """Return the highest sequence that was ever used."""
        return await self._reader.read_end()

    async def read(self, after: int = 0) -> AsyncIterator[StoredRecord]:
        """Read all records behind a sequence, with the expiry that they got when they were settled."""
        later = await list_removals(self._connection, self._names)
        while True:
            page = await self._reader.read_page(self._names.stored_filter(">"), after, PAGE)
            for record in page.records:
                if whole := await self._reader.complete_of(page, record):
                    headers = page.headers[record.seq]
                    due = [at for at, upto in later.get(record.subject, ()) if record.seq <= upto]
                    until = _find_end(headers) if LIFETIME in headers else min(due, default=None)
                    msg_id = json.loads(headers[ID]) if ID in headers else None
                    yield StoredRecord(record.seq, record.subject, whole.data, record.ts, msg_id, until)
            if not page.records or page.left == 0:
                return
            after = page.records[-1].seq

    async def fill(self, records: Iterable[StoredRecord], last_seq: int, mark: str, report: ReportCount) -> None:
        """Recreate the stream with a mark, and write the records into it.

        Raises:
            EngineError: the journal is incomplete, and keeps the mark.
        """
        await self.set_mark(mark)
        filler: _StreamFiller | None = None
        for number, one in enumerate(records, 1):
            if one.is_over():
                continue
            filler = filler or await self._make_anew(one.seq, mark)
            await filler.fill_gap(one.seq - 1)
            await filler.add(one)
            report(number)
        filler = filler or await self._make_anew(last_seq + 1, mark)
        await filler.fill_gap(last_seq)
        await filler.end()
        await self._connection.call(f"STREAM.PURGE.{self._names.keys}", filter=self._names.removal("*", "*"))

    async def _make_anew(self, first_seq: int, mark: str) -> "_StreamFiller":
        await replace_stream(self._connection, self._names, self._window, first_seq, mark)
        return _StreamFiller(self._connection, self._reader, first_seq - 1)

    async def add_consumer(self, one: StoredConsumer) -> None:
        """Create the consumer with its progress, and leave exactly its pending records unacknowledged.

        Raises:
            EngineError: the server does not deliver the pending records.
        """
        floor = min(one.floor, await self._reader.read_end())
        spec = ConsumerSpec(one.name, one.patterns, ack_wait=HOLD_SECONDS, max_inflight=MOST + len(one.owed))
        begin = min(one.owed, default=floor + 1)
        config = describe_consumer(self._names, spec) | {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(1, begin),
        }
        where = f"CONSUMER.CREATE.{self._names.stream}.{consumer_name_of(one.name)}"
        await self._connection.call(where, stream_name=self._names.stream, config=config)
        left = await self._list_between(config["filter_subjects"], begin - 1, floor)
        consumer, empty = NatsConsumer(self._connection, self._reader, spec), 0
        while left:
            found = await consumer.fetch(min(PAGE, len(left)), FETCH_SECONDS)
            empty = 0 if found else empty + 1
            if empty == TRIES:
                raise EngineError(f"the NATS server does not deliver the pending records of {one.name!r}")
            for delivery in found:
                if delivery.record.seq not in one.owed:
                    await delivery.ack()
                elif delivery.attempt < one.owed[delivery.record.seq]:
                    await delivery.nak()
                    continue
                left.discard(delivery.record.seq)
        await consumer.end()

    async def read_consumers(self, names: Iterable[str]) -> list[StoredConsumer]:
        """Read the consumers with their progress.

        Only a delivery shows a pending record, so all pending deliveries are open afterwards.
        """
        return [await self._read_consumer(name) for name in names]

    async def read_floors(self, names: Iterable[str]) -> list[StoredConsumer]:
        """Read each consumer's acknowledgement floor, while gateways work; records behind it count as pending."""
        return [await self._read_floor(name) for name in names]

    async def _read_floor(self, name: str) -> StoredConsumer:
        found = await self._read_state(name)
        return StoredConsumer(name, list_patterns(self._names, found), int(found["ack_floor"]["stream_seq"]), {})

    async def _read_consumer(self, name: str) -> StoredConsumer:
        found = await self._read_state(name)
        patterns = list_patterns(self._names, found)
        floor, owed = int(found["delivered"]["stream_seq"]), dict[int, int]()
        hold = found["config"]["ack_wait"] / NANOSECONDS
        consumer = NatsConsumer(self._connection, self._reader, ConsumerSpec(name, patterns, hold))
        empty = 0
        while (count := int(found["num_ack_pending"]) - len(owed)) > 0:
            taken = await consumer.fetch(min(PAGE, count), FETCH_SECONDS)
            empty = 0 if taken else empty + 1
            if empty == TRIES:
                raise EngineError(f"the NATS server does not deliver the pending records of {name!r}; try again")
            for delivery in taken:
                owed.setdefault(delivery.record.seq, max(1, delivery.attempt - 1))
            found = await self._read_state(name)
        await consumer.end()
        return StoredConsumer(name, patterns, max(floor, *owed, 0), dict(sorted(owed.items())))

    async def _read_state(self, name: str) -> dict[str, Any]:
        found = await read_consumer(self._connection, self._reader, name)
        if found is None:
            raise EngineError(f"the consumer {name!r} was there and is gone")
        return found

    async def _list_between(self, filters: Iterable[str], after: int, upto: int) -> set[int]:
        found: set[int] = set()
        for where in filters:
            reached = after
            while page := (await self._reader.read_page(where, reached, PAGE)).records:
                found.update(record.seq for record in page if record.seq <= upto)
                reached = page[-1].seq
                if reached > upto:
                    break
        return found


def _find_end(headers: Mapping[str, str]) -> float:
    """Return when the server removes a record."""
    return time_of(headers["Nats-Time-Stamp"]) + float(headers[LIFETIME].removesuffix("s"))


class _StreamFiller:
    """Fill an empty stream with records, without a gap. `end` is the last stored sequence."""

    def __init__(self, connection: Connection, reader: RecordReader, end: int) -> None:
        self._connection = connection
        self._names = reader.names
        self._reader = reader
        self._writer = RecordWriter(connection, reader.names, reader, WriteRights())
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
        """Write the pieces of large records and all waiting messages, and remove the placeholders."""
        for pieces in self._large:
            for message in split_body(pieces.where, pieces.data, self._room, pieces.limit):
                await self._put(message)
        await self._write()
        await self._connection.call(f"STREAM.PURGE.{self._names.stream}", filter=self._names.gap)

    async def _write(self) -> None:
        """Write the waiting messages as one batch at the end of the stream.

        If the server's answer is lost, the new end of the stream shows whether the batch was written.
        """
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

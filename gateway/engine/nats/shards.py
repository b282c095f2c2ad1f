"""The streams on which a journal's records stand, and which of them is asked for what.

Theory of operation. A large journal has shards, so that several servers lead and write beside each other. A record
stands in the shard of the last token in its subject (24 hexadecimal digits: a conversation, a place, a bot), and what
has no token in the stream before the shards. Sequences of each stream begin at a number of its own, so that none is
given twice, and a sequence says where its record stands. Between two streams there is no order, and no append is whole.

Where a journal was brought along from another one, its records keep their sequences: they stand in streams before all
that are written to, by their sequences alone. So whoever asks for a subject asks its own stream, and then those; and
what is expected to be the last record may stand there. They only ever lose records.
"""

import asyncio
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gateway.engine.interface import NewRecord, Record
from gateway.engine.journal_position import SHARD_BITS, ShardRead, read_shards
from gateway.engine.nats.connection import Connection
from gateway.engine.nats.known_records import KnownRecords
from gateway.engine.nats.names import Names
from gateway.engine.nats.purges import Purges
from gateway.engine.nats.record_reader import RecordReader
from gateway.engine.nats.record_writer import RecordWriter, WriteRights
from gateway.engine.nats.streams import JournalState
from gateway.engine.subjects import find_token
from gateway.errors import Conflict, Duplicate


class RecordStream:
    """One of them: reading, writing and removing there, by who has these `rights`; `copies`: on so many servers."""

    def __init__(self, connection: Connection, names: Names, rights: WriteRights, copies: int) -> None:
        self.names = names
        self.known = KnownRecords(names)
        self.reader = RecordReader(connection, names, self.known, copies)
        self.writer = RecordWriter(connection, names, self.reader, rights)
        self.purges = Purges(connection, names, self.reader, rights)


class Shards:
    """All streams of one journal. Where it has but one, it is asked without further ado."""

    def __init__(self, connection: Connection, names: Names, state: JournalState) -> None:
        layout, self.rights = state.layout, WriteRights()
        self.streams = [
            RecordStream(connection, Names(names.journal, number), self.rights, state.copies)
            for number in layout.numbers
        ]
        self.main = self.streams[layout.since]
        self._layout = layout
        self._older = self.streams[: layout.since]

    def find_stream(self, subject: str) -> RecordStream:
        """In which new records of a subject stand."""
        return self.streams[self._layout.find_number(find_token(subject) or "")]

    def list_streams(self, pattern: str) -> list[RecordStream]:
        """In which something under a pattern may stand, in the order of their sequences."""
        token = find_token(pattern)
        return self.streams if token is None else [*self._older, self.streams[self._layout.find_number(token)]]

    async def append(self, puts: Sequence[NewRecord]) -> list[int]:
        """What concerns one shard is written as a whole; one shard after the other, in the order of the puts."""
        if len(self.streams) == 1:
            return await self.main.writer.append(puts)
        _check_ids(puts)
        places: dict[int, list[int]] = {}
        for place, put in enumerate(puts):
            places.setdefault(self.find_stream(put.subject).names.shard, []).append(place)
        sequences: dict[int, int] = {}
        for number, some in places.items():
            found = await self._append(self.streams[number], [puts[place] for place in some])
            sequences |= zip(some, found, strict=True)
        return [sequences[place] for place in range(len(puts))]

    async def _append(self, stream: RecordStream, puts: Sequence[NewRecord]) -> list[int]:
        if self._older:
            await self._check_older_ids(puts)
            await stream.writer.check_ids(puts)
            puts = [await self._expect_here(put) for put in puts]
        return await stream.writer.append(puts)

    async def _check_older_ids(self, puts: Sequence[NewRecord]) -> None:
        asked = [(put, stream) for put in puts if put.msg_id is not None for stream in self._older]
        found = await asyncio.gather(*(stream.writer.has_id(put.subject, put.msg_id or "") for put, stream in asked))
        for (put, _), is_there in zip(asked, found, strict=True):
            if is_there:
                raise Duplicate(f"{put.msg_id!r} is in the journal already")

    async def _expect_here(self, put: NewRecord) -> NewRecord:
        """Where the last record is expected to be one that was brought along, there is to be none in its own stream."""
        if put.expect is None or put.expect > self.main.names.begin:
            return put
        older = await self._find_older(put.subject, fresh=True)
        if put.expect != (older.seq if older else 0):
            for stream in self.list_streams(put.subject):
                stream.known.doubt()
            raise Conflict(f"not as expected: {put.subject} at {put.expect}")
        return replace(put, expect=0)

    async def last(self, subject: str, *, fresh: bool) -> Record | None:
        own = await self.find_stream(subject).reader.last(subject, fresh=fresh)
        return own or await self._find_older(subject, fresh=fresh)

    async def _find_older(self, subject: str, *, fresh: bool) -> Record | None:
        for stream in reversed(self._older):
            if found := await stream.reader.last(subject, fresh=fresh):
                return found
        return None

    async def read(self, pattern: str, after: int, limit: int, upto: int | None, *, fresh: bool) -> list[Record]:
        def read_one(stream: RecordStream) -> ShardRead:
            return lambda some: stream.reader.read(pattern, max(after, stream.names.begin), some, fresh=fresh)

        found = await read_shards([read_one(one) for one in _within(self.list_streams(pattern), after, upto)], limit)
        return found if upto is None else [record for record in found if record.seq <= upto]

    async def purge(self, pattern: str, upto: int | None, after: int) -> int:
        purged = 0
        for stream in _within(self.list_streams(pattern), after, upto):
            ends_here = upto is not None and upto >> SHARD_BITS == stream.names.shard
            begins_here = after > stream.names.begin
            purged += await stream.purges.purge(pattern, upto if ends_here else None, after if begins_here else 0)
        return purged

    async def purge_subject(self, subject: str, upto: int) -> None:
        await self.purge(subject, upto, 0)

    async def look_ahead(self) -> None:
        """What stands there now has been heard of."""
        ends = await asyncio.gather(*(stream.reader.read_end() for stream in self.streams))
        for stream, end in zip(self.streams, ends, strict=True):
            stream.known.note(end)


def _within(streams: Iterable[RecordStream], after: int, upto: int | None) -> list[RecordStream]:
    """Those in which something stands behind one sequence, and up to another."""
    return [
        stream
        for stream in streams
        if stream.names.shard >= after >> SHARD_BITS and (upto is None or stream.names.begin < upto)
    ]


def _check_ids(puts: Sequence[NewRecord]) -> None:
    ids = [put.msg_id for put in puts if put.msg_id is not None]
    if len(set(ids)) < len(ids):
        raise Duplicate(f"one of {ids} is twice in one append")

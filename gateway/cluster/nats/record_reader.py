"""Reads of the log on a stream of the server.

If our own view (`known_records`) is enough, the reader asks no server. Otherwise, reads of a single message go to the
leader of the stream. Reads of a page go to any server, and a server that is behind lacks the newest records. So the
reader first asks the leader for the end, and repeats a page read whose answer does not reach this end. A single server
is its own leader.
"""

import asyncio
import base64
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from nats.aio.msg import Msg

from gateway.backoff import Attempts, Backoff
from gateway.cluster.nats.connection import (
    ANSWER_SECONDS,
    PATIENCE,
    UNAVAILABLE,
    Connection,
    NoAnswer,
    ServerRefusal,
    decode_headers,
    time_of,
)
from gateway.cluster.nats.known_records import KnownRecords
from gateway.cluster.nats.names import Names
from gateway.cluster.nats.stored_messages import BODY, read_time
from gateway.cluster.nats.streams import read_message
from gateway.engine.interface import Record
from gateway.errors import EngineError

BEHIND = Backoff(0.002, 0.1)
AGAIN = Backoff(0.05, 1.0)
SILENCE = 0.5


class RecordReader(msgspec.Struct, eq=False):
    """The reader of one stream. `copies` is the number of servers that keep the stream."""

    _connection: Connection
    names: Names
    known: KnownRecords
    copies: int

    async def last(self, subject: str, *, fresh: bool) -> Record | None:
        if not fresh:
            await self.known.catch_up()
            if known := self.known.last(subject):
                return known
        while True:
            found = await self.get({"last_by_subj": self.names.stored_filter(subject)})
            if found is None:
                return None
            headers = decode_headers(found.get("hdrs", ""))
            ts = read_time(headers, time_of(found["time"]))
            record = Record(int(found["seq"]), subject, base64.b64decode(found.get("data", "")), ts)
            if whole := await self.complete(record, found["subject"], headers.get(BODY)):
                return whole

    async def complete(self, record: Record, stored: str, body: str | None) -> Record | None:
        """Add the pieces of a large record; None if the record was removed in the meantime."""
        if not body:
            return record
        piece_id, _, count = body.partition(" ")
        pieces = await self.read_stored(f"{self.names.piece(stored, piece_id)}.*", 0, int(count))
        if len(pieces) < int(count):
            return None
        return Record(record.seq, record.subject, b"".join(piece.data for piece in pieces), record.ts)

    async def get(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Read one message from the leader."""
        message = await read_message(self._connection, self.names.stream, **asked)
        if message:
            self.known.note(int(message["seq"]))
        return message

    async def read_end(self) -> int:
        """Return the sequence of the last append, even if that record was removed."""
        try:
            answer = await self._connection.call(f"STREAM.INFO.{self.names.stream}")
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server cannot read: {refusal}") from refusal
        return int(answer["state"]["last_seq"])

    async def read(self, pattern: str, after: int, limit: int, *, fresh: bool) -> list[Record]:
        if not fresh:
            await self.known.catch_up()
            if (known := self.known.read(pattern, after, limit)) is not None:
                return known
        end = self.known.end
        found = await self.read_stored(self.names.stored_filter(pattern), after, limit)
        if len(found) < limit:
            self.known.note_empty_range(pattern, found[-1].seq if found else after, end)
        return found

    async def read_stored(self, where: str, after: int, limit: int) -> list[Record]:
        """Read the records that match the filter `where` of the server."""
        if limit <= 0:
            return []
        attempts = Attempts(BEHIND)
        end = await self._find_end(where) if self.copies > 1 else math.inf
        if end <= after:
            return []
        while True:
            found, reached = await self._read_some(where, after, limit)
            if len(found) >= limit or reached >= end or self.copies == 1:
                return found
            await asyncio.sleep(attempts.pause())
            end = await self._find_end(where)

    async def _find_end(self, where: str) -> int:
        found = await self.get({"last_by_subj": where})
        return int(found["seq"]) if found else 0

    async def _read_some(self, where: str, after: int, limit: int) -> tuple[list[Record], int]:
        """Read records, skip removed records, and return the rest with the last sequence that was read."""
        found: list[Record] = []
        while len(found) < limit:
            page = await self.read_page(where, after, limit - len(found))
            if page.records:
                after = page.records[-1].seq
                self.known.note(after)
            found += await self._complete_all(page)
            if page.left == 0 or not page.records:
                break
        return found, after

    async def _complete_all(self, page: "RecordPage") -> list[Record]:
        whole = [await self.complete_of(page, record) for record in page.records]
        return [record for record in whole if record is not None]

    async def complete_of(self, page: "RecordPage", record: Record) -> Record | None:
        headers = page.headers[record.seq]
        return await self.complete(record, headers["Nats-Subject"], headers.get(BODY))

    async def read_page(self, where: str, after: int, limit: int) -> "RecordPage":
        attempts, end = Attempts(AGAIN), time.monotonic() + PATIENCE
        patience = SILENCE  # one of several servers may hang: then ask another server
        while True:
            page = RecordPage(self.names)
            inbox = self._connection.open_inbox(page)
            try:
                asked = {"seq": after + 1, "next_by_subj": where, "batch": limit}
                where_to = f"$JS.API.DIRECT.GET.{self.names.stream}"
                await self._connection.publish(where_to, json.dumps(asked).encode(), reply=inbox)
                await page.wait(patience)
                if not page.is_unanswered:
                    return page
            except (NoAnswer, TimeoutError):
                patience = min(2 * patience, ANSWER_SECONDS)
            finally:
                self._connection.close_inbox(inbox)
            self._connection.check_open()
            if time.monotonic() > end:
                raise EngineError(f"the NATS server at {self._connection.url} does not answer")
            await asyncio.sleep(attempts.pause())


class RecordPage(msgspec.Struct, eq=False):
    """The answer to one page read, message by message."""

    _names: Names
    records: list[Record] = []
    headers: dict[int, Mapping[str, str]] = {}  # by the record's sequence
    left: int = 0
    is_unanswered: bool = False
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def wait(self, patience: float) -> None:
        """Wait for the end of the page; raises TimeoutError if no message came for `patience` seconds."""
        while not self.ended.is_set():
            before = len(self.records)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), patience)
            if not self.ended.is_set() and len(self.records) == before:
                raise TimeoutError

    def note(self, message: Msg) -> None:
        headers = message.headers or {}
        if status := headers.get("Status"):
            self.left = int(headers.get("Nats-Num-Pending", 0))
            self.is_unanswered = status == str(UNAVAILABLE)
            self.ended.set()
            return
        seq, stored = int(headers["Nats-Sequence"]), headers["Nats-Subject"]
        ts = read_time(headers, time_of(headers["Nats-Time-Stamp"]))
        self.records.append(Record(seq, self._names.subject_of_stored(stored), message.data, ts))
        self.headers[seq] = headers

"""Writing the log on a stream of the server.

An append is one message, or one batch that the server takes as a whole. Each carries a name of its own (`APPEND`), so
that who asks again after a lost answer finds out whether it was done the first time.
"""

import asyncio
import math
import time
import uuid
from collections.abc import Sequence
from typing import Any

from gateway.backoff import Attempts, Backoff
from gateway.engine.interface import NewRecord, Record
from gateway.engine.nats.connection import (
    PATIENCE,
    UNAVAILABLE,
    Connection,
    NoAnswer,
    NotSent,
    ServerRefusal,
    decode_headers,
)
from gateway.engine.nats.names import Names
from gateway.engine.nats.record_reader import RecordReader
from gateway.engine.nats.stored_messages import APPEND, MESSAGE_ID, ROOM, StoredMessage, encode_records
from gateway.errors import Conflict, Duplicate, EngineError

WRONG_SEQUENCE = {10071, 10164}
KNOWN_ID = 10201
BATCHES = 40  # at a time; the server takes 50 for a stream
LOOK_BACK = 1000
MOST = 1000  # messages of a batch
AGAIN = Backoff(0.05, 1.0)


class RecordWriter:
    """Made for one journal."""

    def __init__(self, connection: Connection, names: Names, reader: RecordReader) -> None:
        self._connection = connection
        self._names = names
        self._reader = reader
        self._seen = 0  # the highest sequence that we know of
        self._batches = asyncio.Semaphore(BATCHES)

    async def append(self, puts: Sequence[NewRecord]) -> list[int]:
        """It goes on until the answer is known; raises EngineError only where nothing was written."""
        append_id = uuid.uuid4().hex
        messages = encode_records(self._names, puts, append_id, self._connection.client.max_payload)
        if len(messages) > MOST:
            raise EngineError(f"an append of {len(messages)} messages: a NATS server takes at most {MOST} at once")
        since, attempts, end, is_in_doubt = self._seen, Attempts(AGAIN), time.monotonic() + PATIENCE, False
        while True:
            try:
                last = await self._send(messages)
                self._seen = max(self._seen, last)
                return _count_back(messages, last)
            except ServerRefusal as refusal:
                if refusal.number in WRONG_SEQUENCE or refusal.number == KNOWN_ID:
                    if is_in_doubt and (first := await self._find_own(messages[0].subject, append_id, since)):
                        return _count_back(messages, first + len(messages) - 1)
                    return await self._tell_refusal(puts, messages, refusal)
                if refusal.status != UNAVAILABLE:
                    raise EngineError(f"the NATS server refuses to write: {refusal}") from refusal
                why: Exception = refusal
            except NoAnswer as error:
                is_in_doubt = is_in_doubt or not isinstance(error, NotSent)
                why = error
            self._connection.check_open()
            if time.monotonic() > end and not is_in_doubt:
                raise EngineError(f"the NATS server at {self._connection.url} does not answer: {why}") from why
            await asyncio.sleep(attempts.pause())

    async def _send(self, messages: list[StoredMessage]) -> int:
        """Returns the sequence of the last."""
        if len(messages) == 1:
            (message,) = messages
            answer = await self._connection.ask_stored(message.subject, message.data, message.headers)
            if answer.get("duplicate"):
                raise ServerRefusal(
                    {"description": "the message id is known", "err_code": KNOWN_ID}, int(answer["seq"])
                )
            return int(answer["seq"])
        async with self._batches:
            return await self._send_batch(messages)

    async def _send_batch(self, messages: list[StoredMessage]) -> int:
        """The first is asked about, since it says at once whether a batch may be begun; the last says how it ended."""
        batch = uuid.uuid4().hex
        for place, message in enumerate(messages, 1):
            headers = {**message.headers, "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(place)}
            if place == len(messages):
                headers["Nats-Batch-Commit"] = "1"
                return int((await self._connection.ask_stored(message.subject, message.data, headers))["seq"])
            if place == 1:
                await self._connection.ask_stored(message.subject, message.data, headers)
            else:
                await self._connection.publish(message.subject, message.data, headers)
        raise AssertionError("a batch has a last message")

    async def _tell_refusal(
        self, puts: Sequence[NewRecord], messages: list[StoredMessage], refusal: ServerRefusal
    ) -> list[int]:
        """What it means: an id that is there, or a record where none was expected; or an id whose record is gone."""
        ids = [put.msg_id for put in puts if put.msg_id is not None]
        is_known = refusal.number == KNOWN_ID or len(set(ids)) < len(ids)
        for put in puts:
            if not is_known and put.msg_id is not None:
                is_known = (
                    await self._reader.get({"last_by_subj": self._names.stored(put.subject, put.msg_id)}) is not None
                )
        if refusal.seq and await self._reader.get({"seq": refusal.seq}) is None:
            # The server remembers an id for a while after its record was removed.
            messages[0].headers[MESSAGE_ID] = messages[0].headers[APPEND]
            return [await self._send(messages)]
        if is_known:
            raise Duplicate(f"one of {ids} is in the journal already, or twice in one append")
        fences = ", ".join(f"{put.subject} at {put.expect}" for put in puts if put.expect is not None)
        raise Conflict(f"not as expected: {fences}: {refusal}")

    async def _find_own(self, stored: str, append_id: str, since: int) -> int | None:
        """The sequence of the first record of an append, behind what was there before it."""
        after = since
        for _ in range(LOOK_BACK):
            found = await self._reader.get({"seq": after + 1, "next_by_subj": stored})
            if found is None:
                return None
            if decode_headers(found.get("hdrs", "")).get(APPEND) == append_id:
                return int(found["seq"])
            after = int(found["seq"])
        return None

    async def purge(self, pattern: str, upto: int | None, after: int) -> int:
        if after > 0:
            return await self._purge_each(pattern, upto, after)
        if upto is not None and upto < 1:
            return 0
        limit = {} if upto is None else {"seq": upto + 1}
        verb = f"STREAM.PURGE.{self._names.stream}"
        purged = int((await self._call(verb, filter=self._names.stored_filter(pattern), **limit))["purged"])
        await self._call(verb, filter=self._names.piece_filter(pattern), **limit)
        return purged

    async def _purge_each(self, pattern: str, upto: int | None, after: int) -> int:
        """The server removes what is before a sequence; what lies between two goes one by one."""
        count = 0
        while page := await self._reader.read(pattern, after, 100):
            for record in page:
                if upto is not None and record.seq > upto:
                    return count
                count += await self._delete(record)
            after = page[-1].seq
        return count

    async def _delete(self, record: Record) -> bool:
        try:
            await self._connection.call(f"STREAM.MSG.DELETE.{self._names.stream}", seq=record.seq, no_erase=True)
        except ServerRefusal:
            return False  # it is gone
        room = self._connection.client.max_payload - ROOM
        if len(record.data) > room:
            for piece in range(1, math.ceil(len(record.data) / room) + 1):
                await self._delete(Record(record.seq - piece, record.subject, b"", record.ts))
        return True

    async def _call(self, verb: str, **body: Any) -> dict[str, Any]:
        try:
            return await self._connection.call(verb, **body)
        except ServerRefusal as refusal:
            raise EngineError(f"the NATS server refuses {verb.partition('.')[0].lower()}: {refusal}") from refusal


def _count_back(messages: Sequence[StoredMessage], last: int) -> list[int]:
    """The sequences of the records, from that of the last message."""
    first = last - len(messages) + 1
    return [first + place for place, message in enumerate(messages) if message.is_record]

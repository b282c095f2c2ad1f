"""Writes to the log on a stream of the server.

An append is one message, or one batch that the server takes as a whole. Each append has an id of its own (`APPEND`), so
that a writer that lost the answer can find out whether its append was stored.
"""

import asyncio
import json
import re
import time
import uuid
from collections.abc import Sequence
from typing import Protocol

import msgspec
from nats.aio.msg import Msg

from gateway.backoff import Attempts, Backoff
from gateway.cluster.nats.connection import (
    PATIENCE,
    Connection,
    NoAnswer,
    NotSent,
    ServerRefusal,
    decode_headers,
    describe_failure,
)
from gateway.cluster.nats.names import Names, digest_of
from gateway.cluster.nats.record_reader import RecordReader
from gateway.cluster.nats.stored_messages import (
    APPEND,
    BATCH,
    BATCH_END,
    EXPECTED,
    MESSAGE_ID,
    StoredMessage,
    encode_records,
)
from gateway.engine.interface import NewRecord
from gateway.errors import Conflict, Duplicate, EngineError

WRONG_SEQUENCE = {10071, 10164}
LAST_SEQUENCE = re.compile(r"wrong last sequence: (\d+)")
KNOWN_ID = 10201
IN_PROCESS = 10158  # another append of the same id is in progress
NEVER = str(2**62)  # a sequence that no record has
BATCHES = 40  # batches at a time; the server takes 50 for a stream
MOST = 1000  # messages of a batch
AGAIN = Backoff(0.05, 1.0)


class _Doubt(msgspec.Struct):
    """An append whose answer may be lost: its id, and the sequence after which to search for its records."""

    stored: str
    append_id: str
    since: int
    is_open: bool = False


class _Beginning:
    """The server's answer to the first message of a batch: empty, or the reason for a refusal."""

    refusal: ServerRefusal | None = None

    def note(self, message: Msg) -> None:
        if message.data and (error := json.loads(message.data).get("error")):
            self.refusal = ServerRefusal(error)


class WriteRight(Protocol):
    """The right to write. `failure` is the servers' reason why the right is uncertain now, or ""."""

    @property
    def failure(self) -> str: ...

    async def wait(self) -> None:
        """Wait until the right is certain; raises EngineError if it stays uncertain for too long."""


class WriteRights(list[WriteRight]):
    """All rights that a write needs; if the list is empty, every gateway may write."""

    async def wait(self) -> None:
        """Wait until all rights are certain; raises EngineError."""
        for right in self:
            await right.wait()

    @property
    def failure(self) -> str:
        return next((right.failure for right in self if right.failure), "")

    async def wait_to_send(self) -> None:
        """Wait until all rights are certain; raises NotSent."""
        try:
            await self.wait()
        except EngineError as error:
            raise NotSent(str(error)) from error


class RecordWriter:
    """The writer of one stream. Each try waits for the `rights`, since a right may have ended since the last try."""

    def __init__(self, connection: Connection, names: Names, reader: RecordReader, rights: WriteRights) -> None:
        self._connection = connection
        self._names = names
        self._reader = reader
        self._known = reader.known
        self._batches = asyncio.Semaphore(BATCHES)
        self._rights = rights

    async def append(self, puts: Sequence[NewRecord]) -> list[int]:
        """Append, and retry until the answer is known; EngineError means that nothing was written."""
        await self.check_ids(puts)
        append_id = uuid.uuid4().hex
        messages = encode_records(self._names, puts, append_id, self._connection.client.max_payload)
        if len(messages) > MOST:
            raise EngineError(f"an append of {len(messages)} messages: a NATS server takes at most {MOST} at once")
        last = await self._write(puts, messages, _Doubt(messages[0].subject, append_id, self._known.seen))
        self._known.note(last)
        first = last - len(messages) + 1
        return [first + place for place, message in enumerate(messages) if message.is_record]

    async def _write(self, puts: Sequence[NewRecord], messages: list[StoredMessage], doubt: "_Doubt") -> int:
        """Send the messages until the result is known, and return the sequence of the last message."""
        attempts, end = Attempts(AGAIN), time.monotonic() + PATIENCE
        while True:
            try:
                if last := await self._find_own(doubt, len(messages)):
                    return last
                await self._rights.wait_to_send()
                return await self.send(messages)
            except ServerRefusal as refusal:
                why: Exception = refusal
                if refusal.number in WRONG_SEQUENCE or refusal.number == KNOWN_ID:
                    if last := await self._find_own(doubt, len(messages)):
                        return last
                    await self._check_refusal(puts, messages, refusal)
                elif not (refusal.number == IN_PROCESS or refusal.is_passing or (refusal.is_full and doubt.is_open)):
                    raise refusal.make_error("the NATS server refuses to write", self._names.stream) from refusal
            except NoAnswer as error:
                why, doubt.is_open = error, doubt.is_open or not isinstance(error, NotSent)
            self._connection.check_open()
            if time.monotonic() > end and not doubt.is_open:
                raise EngineError(describe_failure(self._connection.url, why)) from why
            await asyncio.sleep(attempts.pause())

    async def check_ids(self, puts: Sequence[NewRecord]) -> None:
        """Check the ids of puts that name their expected last sequence: the server ignores these ids."""
        ids = [put.msg_id for put in puts if put.msg_id is not None]
        if len(set(ids)) < len(ids):
            raise Duplicate(f"one of {ids} is twice in one append")
        for put in puts:
            if put.msg_id is not None and put.expect is not None and await self.has_id(put.subject, put.msg_id):
                raise Duplicate(f"{put.msg_id!r} is in the journal already")

    async def send(self, messages: list[StoredMessage]) -> int:
        """Send one append, and return the sequence of its last message."""
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
        """Send a batch. The last answer is the result; if the batch could not start, the first answer is the reason."""
        batch, beginning = uuid.uuid4().hex, _Beginning()
        inbox = self._connection.open_inbox(beginning)
        try:
            for place, message in enumerate(messages[:-1], 1):
                headers = {**message.headers, BATCH: batch, "Nats-Batch-Sequence": str(place)}
                where = inbox if place == 1 else ""
                await self._connection.publish(message.subject, message.data, headers, reply=where)
            headers = {**messages[-1].headers, BATCH: batch, "Nats-Batch-Sequence": str(len(messages))}
            headers[BATCH_END] = "1"
            answer = await self._connection.ask_stored(messages[-1].subject, messages[-1].data, headers)
        except ServerRefusal as refusal:
            raise beginning.refusal or refusal from None
        finally:
            self._connection.close_inbox(inbox)
        return int(answer["seq"])

    async def _check_refusal(
        self, puts: Sequence[NewRecord], messages: list[StoredMessage], refusal: ServerRefusal
    ) -> None:
        """Return only if a retry may succeed: the server remembers the id of a removed record for a while.

        Raises:
            Duplicate: a record of this id exists.
            Conflict: a subject does not end with the expected record.
        """
        remembered: set[str] = set()
        for put in puts:
            if put.msg_id is None:
                continue
            if await self.has_id(put.subject, put.msg_id):
                raise Duplicate(f"{put.msg_id!r} is in the journal already")
            if seq := await self._find_remembered(messages[0].subject, digest_of(put.msg_id)):
                if await self._reader.get({"seq": seq}) is not None:
                    raise Duplicate(f"{put.msg_id!r} is in the journal already, under another subject")
                remembered.add(digest_of(put.msg_id))
        if refusal.number != KNOWN_ID:
            fences = ", ".join(f"{put.subject} at {put.expect}" for put in puts if put.expect is not None)
            await self._note_conflict(puts, refusal)
            raise Conflict(f"not as expected: {fences}: {refusal}")
        for place, message in enumerate(messages):
            if message.headers.get(MESSAGE_ID) in remembered:
                message.headers[MESSAGE_ID] = f"{message.headers[APPEND]}-{place}"

    async def _note_conflict(self, puts: Sequence[NewRecord], refusal: ServerRefusal) -> None:
        """Note the record behind a conflict, or that the expected record is gone, for the next read."""
        found = LAST_SEQUENCE.search(str(refusal))
        last = int(found[1]) if found else 0
        self._known.note(last or await self._reader.read_end())
        if last < max(put.expect or 0 for put in puts):
            self._known.doubt()

    async def has_id(self, subject: str, msg_id: str) -> bool:
        return await self._reader.get({"last_by_subj": self._names.stored(subject, msg_id)}) is not None

    async def _find_remembered(self, subject: str, digest: str) -> int:
        """Return the sequence for which the server remembers an id, or 0, by an append that can never succeed.

        A single server checks the expected sequence before the message's id, and the expected id last. A cluster checks
        the message's id first, and an expected id would block this check.
        """
        never = {EXPECTED: NEVER} if self._reader.copies > 1 else {"Nats-Expected-Last-Msg-Id": "none"}
        headers = {MESSAGE_ID: digest, **never}
        try:
            answer = await self._connection.insist(lambda: self._connection.ask_stored(subject, b"", headers))
        except ServerRefusal:
            return 0
        return int(answer["seq"])

    async def _find_own(self, doubt: "_Doubt", count: int) -> int | None:
        """Return the last sequence of our append if it was stored although its answer was lost."""
        after = doubt.since
        while doubt.is_open:
            try:
                found = await self._reader.get({"seq": after + 1, "next_by_subj": doubt.stored})
            except EngineError as error:
                raise NotSent(str(error)) from error
            if found is None:
                return None
            if decode_headers(found.get("hdrs", "")).get(APPEND) == doubt.append_id:
                return int(found["seq"]) + count - 1
            after = int(found["seq"])
        return None

"""What is to be removed later: records that were kept until somebody was done with them, and for a while from then on.

The server cannot give a record a limit after the fact. So a note says until which sequence a subject is to be removed,
and when; notes of one subject that fall due at nearly the same time are one. Every gateway looks for those that are
due, and it does no harm when two do.
"""

import asyncio
import base64
import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress

from gateway.engine.interface import SettledRecords
from gateway.engine.nats.connection import NO_MESSAGE, Connection, NoAnswer, ServerRefusal
from gateway.engine.nats.names import Names
from gateway.engine.nats.record_writer import RecordWriter
from gateway.errors import EngineError

STEPS = 14  # in which the time of a note is counted
LOOK_SECONDS = 60.0
PAGE = 100
MOST_KNOWN = 10_000

log = logging.getLogger(__name__)


class Removals:
    """Those of one journal."""

    def __init__(self, connection: Connection, names: Names, writer: RecordWriter) -> None:
        self._connection = connection
        self._names = names
        self._writer = writer
        self._noted = math.inf  # when the first is due of those that came since we looked
        self._woken = asyncio.Event()
        self._written: dict[str, int] = {}
        connection.on_return.append(self._written.clear)

    async def note(self, settled: Sequence[SettledRecords]) -> None:
        """One that is lost here is made good by the next of its subject."""
        for one in settled:
            step = max(1, int(one.ttl / STEPS))
            due = math.ceil((time.time() + one.ttl) / step) * step
            await self._write_down(self._names.removal(due, one.subject), one.upto)
            if due < self._noted:
                self._noted = due
                self._woken.set()

    async def _write_down(self, where: str, upto: int) -> None:
        """Once; what is known to be written is forgotten with the connection, and when it has become much."""
        if self._written.get(where) == upto:
            return
        if len(self._written) >= MOST_KNOWN:
            self._written.clear()
        with suppress(NoAnswer):
            await self._connection.publish(where, str(upto).encode())
            self._written[where] = upto

    async def run(self) -> None:
        """Until cancelled."""
        found = 0.0
        while True:
            self._woken.clear()
            due = min(found, self._noted)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), max(0.0, due - time.time()))
                continue
            self._noted = math.inf
            try:
                found = await self._remove_due()
            except EngineError as error:
                log.info("what is over is removed later: %s", error)
                found = time.time() + LOOK_SECONDS

    async def _remove_due(self) -> float:
        """Returns when to look again."""
        seq, later, soonest = 0, 0, time.time() + LOOK_SECONDS
        while later < PAGE and (found := await _read_next(self._connection, self._names, seq)):
            seq, due, subject, upto = found
            if due > time.time():
                later += 1
                soonest = min(soonest, due)
                continue
            await self._writer.purge(subject, upto, 0)
            with suppress(ServerRefusal):
                await self._connection.call(f"STREAM.MSG.DELETE.{self._names.keys}", seq=seq, no_erase=True)
        return soonest


async def list_removals(connection: Connection, names: Names) -> dict[str, list[tuple[int, int]]]:
    """By the subject: when it is to be removed, up to which sequence."""
    notes: dict[str, list[tuple[int, int]]] = {}
    seq = 0
    while found := await _read_next(connection, names, seq):
        seq, due, subject, upto = found
        notes.setdefault(subject, []).append((due, upto))
    return notes


async def _read_next(connection: Connection, names: Names, after: int) -> tuple[int, int, str, int] | None:
    where = names.removal("*", ">")
    try:
        answer = await connection.call(f"STREAM.MSG.GET.{names.keys}", seq=after + 1, next_by_subj=where)
    except ServerRefusal as refusal:
        if refusal.number == NO_MESSAGE:
            return None
        raise EngineError(f"the NATS server cannot read: {refusal}") from refusal
    message = answer["message"]
    due, subject = names.due_of_removal(message["subject"])
    return int(message["seq"]), due, subject, int(base64.b64decode(message["data"]))

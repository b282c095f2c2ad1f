"""Later removals: settled records without an expiry are removed by notes in the journal.

The server cannot set the expiry of an existing record. So a note says up to which sequence a subject must be removed,
and when. Each message costs the servers memory, so one message holds many notes of a gateway that are due at nearly the
same time. The gateway rewrites this message every few seconds until it is full. If a killed gateway had not written a
note, the subject's next note replaces it. A gateway that finds a message due removes the records of its notes; only one
gateway does this at a time.
"""

import asyncio
import base64
import json
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from gateway.cluster.nats.connection import Connection, NoAnswer, ServerRefusal
from gateway.cluster.nats.leases import Leases
from gateway.cluster.nats.names import Names
from gateway.cluster.nats.streams import list_subjects, read_message
from gateway.engine.interface import SettledRecords
from gateway.errors import EngineError

KEPT_SECONDS = 172_800.0  # the longest expiry of settled records: each record costs the servers memory
STEPS = 14  # the due time of a note is rounded up to a multiple of this part of the ttl
LOOK_SECONDS = 60.0
GATHER_SECONDS = 2.0  # how long a note waits for other notes before it is written
MOST_NOTES = 2000  # notes in one message
LEASE, LEASE_SECONDS = "removals", 10.0

PurgeSubject: TypeAlias = Callable[[str, int], Awaitable[int]]

log = logging.getLogger(__name__)


class _Notes(msgspec.Struct):
    """The notes of one message, which share a due time: the sequence up to which each subject is removed."""

    where: str
    upto: dict[str, int] = {}
    is_written: bool = False


class Removals:
    """The later removals of one journal."""

    def __init__(self, connection: Connection, names: Names, purge: PurgeSubject, leases: Leases) -> None:
        self._connection = connection
        self._names = names
        self._purge = purge
        self._leases = leases
        self._id = uuid.uuid4().hex
        self._notes: dict[int, _Notes] = {}  # by their due time
        self._full: list[_Notes] = []
        self._woken = asyncio.Event()
        connection.on_return.append(self._doubt)

    def limit(self, one: SettledRecords, last: int) -> SettledRecords:
        """Return the limit as servers can keep it: up to the sequence `last`, for KEPT_SECONDS at most."""
        return SettledRecords(one.subject, min(one.upto, last), min(one.ttl, KEPT_SECONDS))

    def note(self, one: SettledRecords) -> None:
        """Add a note of a later removal, which `run` writes."""
        step = max(1, int(one.ttl / STEPS))
        notes = self._find_notes(math.ceil((time.time() + one.ttl) / step) * step)
        if one.upto > notes.upto.get(one.subject, 0):
            notes.upto[one.subject] = one.upto
            notes.is_written = False
            self._woken.set()

    def _find_notes(self, due: int) -> _Notes:
        notes = self._notes.get(due)
        if notes and len(notes.upto) >= MOST_NOTES:
            self._full.append(notes)
            notes = None
        if notes is None:
            notes = self._notes[due] = _Notes(self._names.removal(due, uuid.uuid4().hex))
        return notes

    def _doubt(self) -> None:
        """Write all notes again: notes that were sent before the connection was lost may be missing."""
        for notes in self._notes.values():
            notes.is_written = False

    async def run(self) -> None:
        """Write notes and remove due records, until cancelled."""
        look, is_told = 0.0, False
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), max(0.0, look - time.time()))
                await asyncio.sleep(max(0.0, min(GATHER_SECONDS, min(self._notes, default=math.inf) - time.time())))
            self._woken.clear()
            try:
                look = min([look, *self._notes])
                await self.write()
                if look <= time.time():
                    look = await self._remove_due()
                is_told = False
            except EngineError as error:
                log.log(logging.DEBUG if is_told else logging.INFO, "what is over is removed later: %s", error)
                look, is_told = time.time() + LOOK_SECONDS, True

    async def write(self) -> None:
        """Write all notes that are not written."""
        for notes in [*self._full, *self._notes.values()]:
            if not notes.is_written:
                notes.is_written = True
                try:
                    await self._connection.ask_stored(notes.where, json.dumps(notes.upto).encode())
                except (NoAnswer, ServerRefusal) as error:
                    notes.is_written = False
                    raise EngineError(f"the NATS server does not store a note of it: {error}") from error
        self._full.clear()
        over = [due for due in self._notes if due <= time.time()]
        for due in over:
            del self._notes[due]

    async def _remove_due(self) -> float:
        """Remove due records, and return the time of the next check."""
        now = time.time()
        notes = {where: self._names.due_of_removal(where) for where in await _list_notes(self._connection, self._names)}
        soonest = min((due for due in notes.values() if due > now), default=math.inf)
        if over := [where for where, due in notes.items() if due <= now]:
            lease = await self._leases.take(LEASE, self._id, LEASE_SECONDS)
            for where in over if lease else ():
                await self._remove(where)
                if lease and not await lease.renew():
                    break
            if lease:
                await lease.release()
        return min(soonest, now + LOOK_SECONDS)

    async def _remove(self, where: str) -> None:
        if (found := await _read_notes(self._connection, self._names, where)) is None:
            return
        seq, notes = found
        for subject, upto in notes.items():
            await self._purge(subject, upto)
        with suppress(ServerRefusal):
            await self._connection.call(f"STREAM.MSG.DELETE.{self._names.keys}", seq=seq, no_erase=True)


async def list_removals(connection: Connection, names: Names) -> dict[str, list[tuple[int, int]]]:
    """Return, by subject, the due times with the last sequence to remove."""
    removals: dict[str, list[tuple[int, int]]] = {}
    for where in await _list_notes(connection, names):
        if found := await _read_notes(connection, names, where):
            for subject, upto in found[1].items():
                removals.setdefault(subject, []).append((names.due_of_removal(where), upto))
    return removals


async def _list_notes(connection: Connection, names: Names) -> list[str]:
    return await list_subjects(connection, names.keys, names.removal("*", "*"))


async def _read_notes(connection: Connection, names: Names, where: str) -> tuple[int, dict[str, int]] | None:
    message = await read_message(connection, names.keys, last_by_subj=where)
    if message is None:
        return None  # another gateway was faster
    notes: dict[str, int] = json.loads(base64.b64decode(message["data"]))
    return int(message["seq"]), notes

"""Copies of journal records in memory, which follow the appends of every gateway.

One tail brings the records of all copies, in the order of the journal, including our own; a copy knows what it has
seen, so that nothing counts twice. If too many records came at once, or the journal was unavailable, the copy is loaded
again.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.abc
import msgspec

from gateway.backoff import Attempts
from gateway.engine.interface import ILL_JOURNAL_BACKOFF, Engine, Record, Tail
from gateway.engine.subjects import compile_patterns
from gateway.errors import Conflict, EngineError, EngineTooNew
from gateway.records import records

RecordT = TypeVar("RecordT", bound=records.JournalRecord)

log = logging.getLogger(__name__)


class RecordCopy(Protocol):
    """A copy of the records under some patterns."""

    @property
    def patterns(self) -> Sequence[str]: ...

    async def load(self) -> None:
        """Load the present records, whatever was known before."""

    async def take(self, record: Record) -> None:
        """Take in an appended record; it may be known already."""


class JournalFollower:
    """A task that keeps copies up to date: call `load` first, then `run`."""

    def __init__(self, engine: Engine, *copies: RecordCopy) -> None:
        self._engine = engine
        self._copies = [(copy, compile_patterns(copy.patterns)) for copy in copies]
        self._behind = dict.fromkeys(copies)  # those to be loaded
        self._dropped = 0
        self._tail: Tail | None = None

    async def load(self) -> None:
        """Load all copies, and start to listen to new records."""
        self._tail = await self._engine.tail(*(pattern for copy, _ in self._copies for pattern in copy.patterns))
        await self._catch_up()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the journal until cancelled, or until the journal is closed."""
        if self._tail is None:
            await self.load()
        assert self._tail is not None
        task_status.started()
        async for record in self._tail:
            if self._tail.dropped > self._dropped:
                self._dropped = self._tail.dropped
                self._behind = dict.fromkeys(copy for copy, _ in self._copies)
            await self._spread(record)
            await self._catch_up_patiently()

    async def _spread(self, record: Record) -> None:
        for copy, wants in self._copies:
            if copy in self._behind or not wants(record.subject):
                continue
            try:
                await copy.take(record)
            except EngineTooNew as error:
                log.error("what another gateway changed under %s does not count here: %s", record.subject, error)
            except EngineError:
                self._behind[copy] = None

    async def _catch_up_patiently(self) -> None:
        attempts = Attempts(ILL_JOURNAL_BACKOFF)
        while self._behind:
            try:
                await self._catch_up()
            except EngineError as error:
                log.warning("what other gateways changed is not known yet: %s", error)
                await anyio.sleep(attempts.pause())

    async def _catch_up(self) -> None:
        for copy in list(self._behind):
            await copy.load()
            del self._behind[copy]


class LastRecord(msgspec.Struct, Generic[RecordT], eq=False):
    """The last record of a subject, if only that one counts; changed by compare-and-set.

    `on_change` gets the old and the new value, once for each change by any gateway.
    """

    _engine: Engine
    _subject: str
    value: RecordT  # at first an empty one
    _on_change: Callable[[RecordT, RecordT], None] = lambda _before, _now: None
    _seq: int = 0

    @property
    def patterns(self) -> Sequence[str]:
        return (self._subject,)

    async def load(self) -> None:
        self._note(*await records.read_last(self._engine, self._subject, type(self.value)))

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        self._note(record.seq, kept if isinstance(kept, type(self.value)) else None)

    async def replace(self, value: RecordT) -> None:
        """Write a new value.

        Raises:
            Conflict: another process has changed it; the copy now has that change.
        """
        try:
            seq = await records.replace_last(self._engine, self._subject, value, self._seq)
        except Conflict:
            await self.load()
            raise
        self._note(seq, value)

    def _note(self, seq: int, value: RecordT | None) -> None:
        if seq > self._seq:  # otherwise known: the tail may bring it before the append is answered
            self._seq = seq
            if value is not None:
                before, self.value = self.value, value
                self._on_change(before, value)

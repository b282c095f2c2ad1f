"""The journal in one SQLite file: its interface on the event loop. The module `writer` explains how it is written."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection

import anyio

from gateway.engine.interface import ConsumerSpec, EngineHealth, NewRecord, Record, SettledRecords
from gateway.engine.journal_clock import Clock, JournalClock
from gateway.engine.live_messages import TOKENS_PER_EPOCH, LiveMessages
from gateway.engine.record_cache import RecordCache
from gateway.engine.sqlite import backlog, log_table
from gateway.engine.sqlite.consumer import SqliteConsumer
from gateway.engine.sqlite.faults import FaultState
from gateway.engine.sqlite.job_thread import JobThread
from gateway.engine.sqlite.log_table import Transaction
from gateway.engine.sqlite.schema import get_last_seq, get_used_bytes
from gateway.engine.sqlite.subject_memory import MAX_SEQ
from gateway.engine.sqlite.wakeup_consumer import WakeupConsumer, WakeupConsumers
from gateway.engine.sqlite.writer import JournalReader, JournalWriter
from gateway.engine.subjects import check_consumer_spec, check_pattern, check_subject
from gateway.errors import EngineError

SLOW_DISK_SECONDS = 5.0
LASTING_SECONDS = 3.0  # a shorter fault may pass without help
LOOK_SECONDS = 1.0

log = logging.getLogger(__name__)


async def open_sqlite(path: Path, *, max_bytes: int | None = None, clock: Clock | None = None) -> "SqliteEngine":
    """Open the journal, or create it; the caller closes the engine, or uses it as a context manager.

    `max_bytes` bounds the file: a journal at its limit counts as a full disk.

    Raises:
        HomeBusy: another process has the journal open.
        EngineTooNew: a later version of the gateway wrote the journal.
        EngineError: the file cannot be used. A damaged journal is set aside instead, and `health` reports that.
    """
    engine = SqliteEngine(path, max_bytes, clock or Clock())
    try:
        await engine.start()
    except BaseException:
        await engine.close()
        raise
    return engine


class SqliteEngine(LiveMessages):
    """The SQLite journal. Create it by `open_sqlite`."""

    def __init__(self, path: Path, max_bytes: int | None, clock: Clock) -> None:
        self.clock = JournalClock(clock)
        super().__init__(Clock(self.clock.read, clock.steady))
        self.files = None
        self._path, self._bound = path, max_bytes or 0
        self._condition = FaultState(path)
        self._writer = JournalWriter(path, self.clock, clock.steady, self._condition, max_bytes, self._announce)
        self._writing = JobThread("journal-writer", self._writer)
        self._reading = JobThread("journal-reader", JournalReader(path, self._condition))
        self._recent = RecordCache(self.clock.read)
        self._consumers: dict[str, SqliteConsumer | WakeupConsumer] = {}
        self._wakeups = WakeupConsumers(
            self._writer, self._writing, self._reading, self._recent, self._condition, self._clock
        )

    async def start(self) -> None:
        await self._writing.start()
        await self._reading.start()
        self._token = self._writer.facts.epoch * TOKENS_PER_EPOCH

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        self._wakeups.keep_sometimes()
        return await self._writing.submit(partial(log_table.append, puts=puts, settled=settled))

    async def append_numbered(self, make: Callable[[int], Sequence[NewRecord]]) -> list[int]:
        self._wakeups.keep_sometimes()
        return await self._writing.submit(lambda tx: log_table.append(tx, make(get_last_seq(tx.db) + 1)))

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:  # noqa: ARG002 - every read is fresh
        check_subject(subject)
        self._check_open()
        known = self._recent.last(subject)
        return known or await self._reading.submit(lambda db: log_table.read_last(db, subject, self._clock.wall()))

    async def read(
        self,
        pattern: str,
        after: int = 0,
        limit: int = 100,
        *,
        fresh: bool = True,  # noqa: ARG002 - every read is fresh
    ) -> list[Record]:
        check_pattern(pattern)
        self._check_open()
        found = self._recent.read(pattern, after, limit)
        if found is None:
            end = self._recent.end
            found = await self._reading.submit(lambda db: log_table.read(db, pattern, after, limit, self._clock.wall()))
            if not found and end > after and limit > 0:
                self._recent.note_empty_range(pattern, after, end)
        return found

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        check_pattern(pattern)
        end = MAX_SEQ if upto is None else upto
        purged = 0
        seen: int | None = after
        while seen is not None:
            some, seen = await self._writing.submit(partial(log_table.purge, pattern=pattern, after=seen, upto=end))
            purged += some
        return purged

    async def consumer(self, spec: ConsumerSpec) -> SqliteConsumer | WakeupConsumer:
        check_consumer_spec(spec)
        if spec.only_wakes:
            self._consumers[spec.name] = wakeup = await self._wakeups.open(spec)
            return wakeup
        await self._writing.submit(lambda tx: self._writer.backlog.add(tx, spec))
        made = SqliteConsumer(spec, self._writer.backlog, self._writing, self._condition, self._clock)
        consumer = self._consumers.setdefault(spec.name, made)
        consumer.spec = spec
        consumer.signal.notify()
        return consumer

    async def consumers(self) -> list[str]:
        self._check_open()
        return list(self._writer.backlog.positions)

    async def forget_consumer(self, name: str) -> None:
        self._wakeups.forget(name)
        await self._writing.submit(lambda tx: self._writer.backlog.forget(tx, name))

    async def depth(self, name: str) -> int:
        self._check_open()
        if wakeup := self._wakeups.by_name.get(name):
            return len(wakeup.waiting)
        while (position := self._writer.backlog.positions.get(name)) is not None:
            if position.depth is not None or self.failure():
                return position.depth or 0
            await self._writing.submit(lambda tx: tx.depths_wanted.add(name))
        return 0

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        self._check_open()
        if name in self._wakeups.by_name:
            self._wakeups.keep()
            with suppress(EngineError):  # an ill journal lists some acknowledged records too
                await self._writing.submit(lambda _tx: None)
        # A consumer's progress is saved whenever it takes records, and the records it passed since do not match.
        return await self._reading.submit(lambda db: backlog.list_owed(db, name, until, after, limit))

    async def health(self) -> EngineHealth:
        self._check_open()
        size = 0 if self._delay > LOOK_SECONDS else await _measure(self._writing, self._reading)
        slow = self._delay
        words = [
            self._condition.fault,
            self._writer.facts.note,
            self._writer.facts.loss and "its newest records are missing",
        ]
        if slow > SLOW_DISK_SECONDS:
            words.append(f"the disk has not answered for {slow:.0f} s")
        is_ok = not self._condition.fault and slow <= SLOW_DISK_SECONDS
        warnings = (
            *filter(None, [self._condition.warning, self._writer.facts.loss]),
            *self._condition.damaged.values(),
        )
        detail = "; ".join(filter(None, words)) or "well"
        commits = (self._writer.facts.commits, self._writer.facts.commit_seconds)
        return EngineHealth(is_ok, detail, self._writer.facts.records, size, self._bound, warnings, "", *commits)

    def failure(self) -> str:
        condition, delay = self._condition, self._delay
        if delay > SLOW_DISK_SECONDS:
            return f"the disk has not answered for {delay:.0f} s"
        is_lasting = time.monotonic() - condition.since > LASTING_SECONDS and not condition.wants_room
        return condition.fault if condition.fault and (condition.is_damaged or is_lasting) else ""

    @property
    def _delay(self) -> float:
        """The seconds that the current write has taken so far."""
        since = self._writer.facts.busy_since
        return 0.0 if since is None else self._clock.steady() - since

    async def close(self) -> None:
        """Write all pending work, then close the journal; a cancelled caller waits for the end of both too."""
        with anyio.CancelScope(shield=True):
            await self._reading.stop()
            if not self._writing.is_closed:
                self._wakeups.keep()
            await self._writing.stop()
            await super().close()

    def _announce(self, done: list[Transaction]) -> None:
        """Pass the committed records to cache, consumers and tails, on the event loop, before the callers go on."""
        for tx in done:
            self._recent.follow(tx.appended, tx.expiries, tx.removed)
            self._wakeups.follow(tx)
            self._spread(tx.appended)
            for name in tx.consumers_to_wake & self._consumers.keys():
                self._consumers[name].signal.notify()


async def _measure(writing: JobThread[Transaction], reading: JobThread[Connection]) -> int:
    """Check the files, and return the bytes in use; 0 if the disk does not answer at once."""
    with suppress(EngineError), anyio.move_on_after(LOOK_SECONDS):
        await writing.submit(lambda _tx: None)
        return await reading.submit(get_used_bytes)
    return 0

"""The one thread that writes the journal, and the reasons for only one thread.

SQLite lets one connection write at a time, and a commit that survives a power cut waits for the disk, for 0.1 to
several ms. One wait serves any number of operations. So a caller puts a job into the queue and awaits it; the queue
fills while the thread waits for the disk; then the thread takes up to MAX_BATCH jobs into one transaction. A single
caller waits for the disk at each append, and a hundred callers at once share one wait. No event loop ever waits for the
disk, and no lock is held across an await. Since one thread makes all writes in one order, compare-and-set needs no more
than a query before the write.

Callers share a commit but not their errors. An operation makes all its checks before its first write, so a refused
operation (a conflict, a duplicate) has changed nothing and the other operations go on. If an operation fails after a
write, the thread rolls back the whole batch and tries each operation alone: only the faulty operation gets the error,
or all operations if the disk fails. A caller learns of success after COMMIT returned, never before.

Two rules follow for every operation. An operation may run twice, so it must be repeatable. And its transaction may be
rolled back, so it changes nothing but the database and the Transaction: it puts its changes to memory, as functions,
into `tx.committed`, and the writer calls them after COMMIT. The writer follows the second rule too: `records` and the
next expiry change only after COMMIT.

Each transaction first removes expired records, so that their message ids are free for the operations that follow, but
only for some milliseconds, so that no caller waits behind a large removal. The next transactions and the pauses remove
the rest, and every query filters expired records out (see `log_table`).

Between its jobs the thread saves the progress of consumers, returns free space to the file system, and checks whether a
failed disk has recovered. On a full disk the callers get errors, and `health` reports the full disk until the journal
can be written again.
"""

import math
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gateway.engine.journal_clock import JournalClock
from gateway.engine.sqlite import journal_file, log_table
from gateway.engine.sqlite.backlog import Backlog
from gateway.engine.sqlite.damage_check import JournalDamage, make_disk_error, verify_damage
from gateway.engine.sqlite.faults import FaultState, JournalFiles, describe_error, get_free_bytes
from gateway.engine.sqlite.job_thread import ThreadJob
from gateway.engine.sqlite.journal_end import JournalEnd, read_fault
from gateway.engine.sqlite.log_table import Transaction
from gateway.engine.sqlite.schema import read_clock, read_pragma, write_clock
from gateway.engine.sqlite.subject_memory import SubjectMemory
from gateway.errors import EngineError

SWEEP_SECONDS = 60.0
CLOCK_SECONDS = 1800.0  # between two saves of the journal's clock
SHRINK_PAGES = 256
SHRINK_SHARE = 8
SHRINK_AFTER = 5.0
PROBE_SECONDS = 1.0
# So much must be free before a full journal counts as recovered; otherwise each small record would change its state.
MIN_FREE_BYTES = 1 << 20


@dataclass(slots=True)
class WriterFacts:
    """Facts that the event loop may read."""

    busy_since: float | None = None
    commits: int = 0
    commit_seconds: float = 0.0
    note: str = ""
    loss: str = ""
    records: int = 0
    epoch: int = 0


@dataclass(slots=True)
class WriterTimes:
    """When the next expiry, sweep and probe are due, and when the journal's clock was last written."""

    expiry: float = math.inf
    sweep: float = 0.0
    probe: float = 0.0
    clock: float = -math.inf


@dataclass(slots=True, eq=False)
class JournalWriter:
    """The handler of the writing thread. The event loop may read the public attributes."""

    _path: Path
    _clock: JournalClock
    _steady: Callable[[], float]
    _condition: FaultState
    _max_bytes: int | None
    _announce: Callable[[list[Transaction]], None]
    _closing: ExitStack = field(default_factory=ExitStack)
    facts: WriterFacts = field(default_factory=WriterFacts)
    _due: WriterTimes = field(default_factory=WriterTimes)
    _subjects: SubjectMemory = field(default_factory=SubjectMemory)
    _db: sqlite3.Connection = field(init=False)
    _end: JournalEnd = field(init=False)
    _files: JournalFiles = field(init=False)
    _is_shrinking: bool = False
    backlog: Backlog = field(init=False)

    def open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with ExitStack() as stack:
                stack.enter_context(closing(journal_file.FileLock(self._path)))
                self._db, self.facts.note = journal_file.open_writer(self._path, self._max_bytes, stack)
                self._end = stack.enter_context(closing(JournalEnd(self._path)))
                self.facts.loss = read_fault(self._path)
                self._begin_epoch()
                self._closing = stack.pop_all()
        except sqlite3.Error as error:
            raise EngineError(describe_error(verify_damage(error, self._path), self._path)) from error
        except OSError as error:
            raise EngineError(f"the journal {self._path} cannot be opened: {error}") from error

    def _begin_epoch(self) -> None:
        """Make deliveries in flight due again, and start a new epoch."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("UPDATE pending SET due = 0")
        self._db.execute("UPDATE counter SET value = value + 1 WHERE name = 'epoch'")
        self._db.execute("COMMIT")
        (self.facts.epoch,) = self._db.execute("SELECT value FROM counter WHERE name = 'epoch'").fetchone()
        self._due.expiry = log_table.read_next_expiry(self._db)
        (self.facts.records,) = self._db.execute("SELECT count(*) FROM log").fetchone()
        self.backlog = Backlog(self._db, self._condition.note_damage)
        self._files = JournalFiles(self._path)
        self._clock.resume(*read_clock(self._db))
        self._due.clock = -math.inf
        self._due.sweep = self._due.probe = self._steady()

    def serve(self, jobs: list[ThreadJob[Transaction, Any]]) -> Callable[[], None]:
        self.facts.busy_since = self._steady()
        done = self._commit(jobs)
        self.facts.commits += len(done)
        self.facts.commit_seconds += self._steady() - self.facts.busy_since
        self.facts.busy_since = None
        return partial(self._announce, done)

    def _commit(self, jobs: list[ThreadJob[Transaction, Any]]) -> list[Transaction]:
        """Do the jobs in one transaction, or each job in its own if the first fails; return the committed transactions.

        The recursion is one level deep: a single job is not divided further.
        """
        tx = Transaction(self._db, self._clock.read(), self._steady(), self._subjects)
        before = self._db.total_changes
        try:
            self._begin()
        except (sqlite3.Error, OSError) as error:
            self._fail(jobs, error if isinstance(error, sqlite3.Error) else make_disk_error(error))
            return []
        try:
            if tx.wall >= self._due.expiry and not self._clock.is_held:
                log_table.expire(tx)
            for job in jobs:
                self._attempt(job, tx)
            if tx.depths_wanted:
                self.backlog.count_depths(tx)
            next_expiry = min([self._due.expiry, *tx.expiries.values()])
            if tx.removed:
                next_expiry = log_table.read_next_expiry(self._db)
            self._db.execute("COMMIT")
            if tx.appended:
                self._end.note(tx.appended[-1].seq, tx.wall)
            self._end.is_in_log |= self._db.total_changes > before
            self._files.note_size()
        except Exception as error:  # noqa: BLE001 - no error of a job may end the thread
            with suppress(sqlite3.Error):
                self._db.rollback()  # does nothing if the error has rolled back already
            self._subjects.clear()
            if len(jobs) > 1:
                return [tx for job in jobs for tx in self._commit([job])]
            self._fail(jobs, error)
            return []
        self._due.expiry = next_expiry
        if tx.removed:
            self._due.sweep = min(self._due.sweep, tx.steady + SHRINK_AFTER)
        self.facts.records += len(tx.appended) - len(tx.removed)
        self.backlog.apply_commit(tx)
        return [tx]

    def _begin(self) -> None:
        if self._condition.is_damaged:
            # Further writes into a damaged file would damage more of the file.
            raise JournalDamage("found earlier")
        if why := self._files.find_damage():
            raise JournalDamage(why)
        self._condition.warning = self._files.find_warning()
        self._db.execute("BEGIN IMMEDIATE")

    def _attempt(self, job: ThreadJob[Transaction, Any], tx: Transaction) -> None:
        """Do one job; its error affects no other job if the failed job has written nothing."""
        # The number of all rows that this connection ever changed: it shows whether the job has written.
        before = self._db.total_changes
        job.error = None  # an earlier try, in a batch that was rolled back, may have set it
        try:
            job.value = job.work(tx)
        except Exception as error:
            # A job may raise any error; only the error of a job that has written spoils the batch.
            if isinstance(error, sqlite3.Error) or self._db.total_changes != before:
                raise
            self._condition.note_damage(error)
            job.error = error

    def _fail(self, jobs: list[ThreadJob[Transaction, Any]], error: Exception) -> None:
        for job in jobs:
            job.error = self._condition.record_error(error) if isinstance(error, sqlite3.Error) else error

    def rest(self) -> float:
        """Do a small piece of due work, and return the seconds until the next piece is due."""
        now = self._steady()
        if self._condition.is_damaged:
            return SWEEP_SECONDS
        if self._condition.fault:
            if now >= self._due.probe:
                self._due.probe = now + PROBE_SECONDS
                self._probe()
            return PROBE_SECONDS
        if now >= self._due.sweep:
            has_more = self._alone(self._tidy) or self._shrink()
            self._end.move_log(self._db)
            self.facts.loss = self.facts.loss and read_fault(self._path)
            self._due.sweep = now if has_more else now + SWEEP_SECONDS
        return max(0.0, self._due.sweep - now)

    def _probe(self) -> None:
        """End the fault if the disk has room again and a write succeeds."""
        with suppress(sqlite3.Error, OSError):
            if get_free_bytes(self._db, self._path) >= MIN_FREE_BYTES and self._alone(_write_probe):
                self._condition.recover()

    def _shrink(self) -> bool:
        """Give free pages to the file system if an eighth of the file is free; return True if pages are left."""
        try:
            free = read_pragma(self._db, "freelist_count")
            if free < SHRINK_PAGES or free * SHRINK_SHARE < read_pragma(self._db, "page_count"):
                return self._is_shrinking and self._settle()
            if not self._is_shrinking:
                self._is_shrinking = True
                self._files.unsettle()
            # As a script: the pragma frees one page a step, and a cursor makes one step if it expects no rows.
            self._db.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
        except sqlite3.Error as error:
            self._condition.record_error(error)
            return False
        return True

    def _settle(self) -> bool:
        """Cut the freed pages off the file, by moving the write-ahead log into it; return False: no work is left.

        A reader in the middle of a query delays the cut until the next call.
        """
        _, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages == moved:
            self._is_shrinking = False
            self._files.settle()
        return False

    def _tidy(self, tx: Transaction) -> bool:
        """Save the consumers' progress and the clock; return True if more records have expired."""
        self.backlog.write_floors(tx)
        self._clock.look()
        if self._clock.is_changed or tx.steady >= self._due.clock + CLOCK_SECONDS:
            write_clock(tx.db, self._clock.get_state())
            tx.committed.append(lambda: setattr(self._due, "clock", tx.steady))
        return tx.wall >= log_table.read_next_expiry(tx.db) and not self._clock.is_held

    def _alone(self, work: Callable[[Transaction], bool]) -> bool | None:
        """Do a job of the writer itself; return its result, or None if the job failed."""
        job: ThreadJob[Transaction, bool] = ThreadJob(work)
        self._commit([job])
        return job.value if job.error is None else None

    def close(self) -> None:
        self._due.clock = -math.inf
        self._alone(self._tidy)
        self._closing.close()


def _write_probe(tx: Transaction) -> bool:
    tx.db.execute("UPDATE counter SET value = value + 1 WHERE name = 'probe'")
    return True


class JournalReader:
    """The handler of the reading thread: it sees committed data, and never waits for the writer (WAL)."""

    def __init__(self, path: Path, condition: FaultState) -> None:
        self._path = path
        self._condition = condition

    def open(self) -> None:
        self._db = journal_file.open_reader(self._path)

    def serve(self, jobs: list[ThreadJob[sqlite3.Connection, Any]]) -> None:
        for job in jobs:
            try:
                job.value = job.work(self._db)
            except Exception as error:  # noqa: BLE001 - it goes to the caller, and the thread lives on
                self._condition.note_damage(error)
                job.error = self._condition.record_error(error) if isinstance(error, sqlite3.Error) else error

    def rest(self) -> None:
        return None

    def close(self) -> None:
        self._db.close()

"""The one thread that writes, and why there is one.

SQLite lets one connection write at a time, and a commit that survives a power cut costs a wait for the disk: 0.1 ms
here, several ms elsewhere. The same wait serves any number of operations. So whoever wants to write puts a job into
the queue and awaits it; while the thread waits for the disk the queue fills; then it takes all there is, up to
MAX_BATCH, into one transaction. One caller alone pays one wait for each append, a hundred at once share one.
Nobody's event loop ever waits for the disk, no lock is held across an await, and since every write goes through one
place in one order, compare-and-set needs no more than a look before the write.

Callers share a commit but not each other's fate. An operation makes all its checks before its first write, so one
that is refused (a conflict, a duplicate) has changed nothing and the others go on. If something fails after a write,
the whole batch is rolled back and each operation is tried alone: only the culprit, or all if it is the disk, gets the
error. A caller hears of success after COMMIT returned, never before.

Two rules follow for whatever is submitted. It may run twice, so it must be repeatable. And it may run in vain, so it
changes nothing but the database and the Transaction: what is to be remembered in memory goes into `tx.committed`, which
is called after COMMIT. The writer keeps to that itself: `records` and `_next_expiry` change after COMMIT alone.

Records whose time is over are removed first in each transaction, so that a message id of theirs is free for the
operations that follow, but only for a slice of some milliseconds, so that no caller waits behind a large removal. The
rest goes with the next transactions or in the pauses, and every question leaves it out besides (see `log_table`).

Between its jobs the thread writes down how far consumers are, gives space back, and sees a disk recover: a full one
fails the callers, and `health` says so until there is room again.
"""

import math
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from gateway.engine.journal_clock import JournalClock
from gateway.engine.sqlite import journal_file, log_table, subject_index
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
CLOCK_SECONDS = 1800.0  # between two notes of where the journal's clock is
SHRINK_PAGES = 256
SHRINK_SHARE = 8
SHRINK_AFTER = 5.0
PROBE_SECONDS = 1.0
# So much must be free again before a full journal is called well: not to flutter with every small record.
MIN_FREE_BYTES = 1 << 20


class JournalWriter:
    """Does the jobs of the writing thread. What has no underscore may be looked at from the loop."""

    def __init__(
        self,
        path: Path,
        clock: JournalClock,
        steady: Callable[[], float],
        condition: FaultState,
        max_bytes: int | None,
        announce: Callable[[list[Transaction]], None],
    ) -> None:
        self._path = path
        self._clock = clock
        self._steady = steady
        self._condition = condition
        self._max_bytes = max_bytes
        self._announce = announce
        self._closing = ExitStack()
        self.busy_since: float | None = None
        self.commits, self.commit_seconds = 0, 0.0
        self.note, self.loss = "", ""
        self.records = 0
        self._subjects = SubjectMemory()
        self.building: int | None = None  # subjects of an older journal that are in the index by now
        self.epoch = 0

    def open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with ExitStack() as stack:
                stack.enter_context(closing(journal_file.FileLock(self._path)))
                self._db, self.note = journal_file.open_writer(self._path, self._max_bytes, stack)
                self._end = stack.enter_context(closing(JournalEnd(self._path)))
                self.loss = read_fault(self._path)
                self._begin_epoch()
                self._closing = stack.pop_all()
        except sqlite3.Error as error:
            raise EngineError(describe_error(verify_damage(error, self._path), self._path)) from error
        except OSError as error:
            raise EngineError(f"the journal {self._path} cannot be opened: {error}") from error

    def _begin_epoch(self) -> None:
        """Makes what was in flight due again, and counts a new epoch."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("UPDATE pending SET due = 0")
        self._db.execute("UPDATE counter SET value = value + 1 WHERE name = 'epoch'")
        self._db.execute("COMMIT")
        (self.epoch,) = self._db.execute("SELECT value FROM counter WHERE name = 'epoch'").fetchone()
        self._next_expiry = log_table.read_next_expiry(self._db)
        (self.records,) = self._db.execute("SELECT count(*) FROM log").fetchone()
        self.backlog = Backlog(self._db, self._condition.note_damage)
        self.building = subject_index.read_progress(self._db)
        self._files = JournalFiles(self._path)
        self._is_shrinking = False
        self._clock.resume(*read_clock(self._db))
        self._clock_kept_at = -math.inf
        self._sweep_at = self._probe_at = self._steady()

    def serve(self, jobs: list[ThreadJob[Transaction, Any]]) -> Callable[[], None]:
        self.busy_since = self._steady()
        done = self._commit(jobs)
        self.commits += len(done)
        self.commit_seconds += self._steady() - self.busy_since
        self.busy_since = None
        return partial(self._announce, done)

    def _commit(self, jobs: list[ThreadJob[Transaction, Any]]) -> list[Transaction]:
        """Do the jobs in one transaction, or if that fails each in its own; the transactions that stand.

        The recursion is one level deep: a job that fails by itself is not divided further.
        """
        tx = Transaction(self._db, self._clock.read(), self._steady(), self._subjects)
        before = self._db.total_changes
        try:
            self._begin()
        except (sqlite3.Error, OSError) as error:
            self._fail(jobs, error if isinstance(error, sqlite3.Error) else make_disk_error(error))
            return []
        try:
            if tx.wall >= self._next_expiry and not self._clock.is_held:
                log_table.expire(tx)
            for job in jobs:
                self._attempt(job, tx)
            if tx.depths_wanted:
                self.backlog.count_depths(tx)
            next_expiry = min([self._next_expiry, *tx.expiries.values()])
            if tx.removed:
                next_expiry = log_table.read_next_expiry(self._db)
            self._db.execute("COMMIT")
            if tx.appended:
                self._end.note(tx.appended[-1].seq, tx.wall)
            self._end.is_in_log |= self._db.total_changes > before
            self._files.note_size()
        except Exception as error:  # noqa: BLE001 - whatever one job does wrong must not end the thread
            with suppress(sqlite3.Error):
                self._db.rollback()  # does nothing where the error has rolled back already
            self._subjects.clear()
            if len(jobs) > 1:
                return [tx for job in jobs for tx in self._commit([job])]
            self._fail(jobs, error)
            return []
        self._next_expiry = next_expiry
        if tx.removed:
            self._sweep_at = min(self._sweep_at, tx.steady + SHRINK_AFTER)
        self.records += len(tx.appended) - len(tx.removed)
        self.backlog.apply_commit(tx)
        return [tx]

    def _begin(self) -> None:
        if self._condition.is_damaged:
            # To go on writing into a damaged file would damage more of it.
            raise JournalDamage("found earlier")
        if why := self._files.find_damage():
            raise JournalDamage(why)
        self._condition.warning = self._files.find_warning()
        self._db.execute("BEGIN IMMEDIATE")

    def _attempt(self, job: ThreadJob[Transaction, Any], tx: Transaction) -> None:
        """Do one job; an error is its own affair as long as it has written nothing."""
        # Counts every row that this connection ever changed, so it tells whether the job has written.
        before = self._db.total_changes
        job.error = None  # of an earlier try, in a batch that was rolled back
        try:
            job.value = job.work(tx)
        except Exception as error:
            # A job may raise whatever it likes; what matters is whether it has written.
            if isinstance(error, sqlite3.Error) or self._db.total_changes != before:
                raise
            self._condition.note_damage(error)
            job.error = error

    def _fail(self, jobs: list[ThreadJob[Transaction, Any]], error: Exception) -> None:
        for job in jobs:
            job.error = self._condition.record_error(error) if isinstance(error, sqlite3.Error) else error

    def rest(self) -> float:
        """Do a small piece of what is due, and say for how long nothing else will be."""
        now = self._steady()
        if self._condition.is_damaged:
            return SWEEP_SECONDS
        if self._condition.fault:
            if now >= self._probe_at:
                self._probe_at = now + PROBE_SECONDS
                self._probe()
            return PROBE_SECONDS
        if self.building is not None:
            self._alone(self._build)
            return 0.0
        if now >= self._sweep_at:
            has_more = self._alone(self._tidy) or self._shrink()
            self._end.move_log(self._db)
            self.loss = self.loss and read_fault(self._path)
            self._sweep_at = now if has_more else now + SWEEP_SECONDS
        return max(0.0, self._sweep_at - now)

    def _probe(self) -> None:
        """Recovers where there is room again and a write succeeds."""
        with suppress(sqlite3.Error, OSError):
            if get_free_bytes(self._db, self._path) >= MIN_FREE_BYTES and self._alone(_write_probe):
                self._condition.recover()

    def _shrink(self) -> bool:
        """Gives some of a file that is empty to an eighth back to the file system; true where there is more."""
        try:
            free = read_pragma(self._db, "freelist_count")
            if free < SHRINK_PAGES or free * SHRINK_SHARE < read_pragma(self._db, "page_count"):
                return self._is_shrinking and self._settle()
            if not self._is_shrinking:
                self._is_shrinking = True
                self._files.unsettle()
            # As a script: the pragma frees a page a step, and a cursor makes one step where it expects no rows.
            self._db.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
        except sqlite3.Error as error:
            self._condition.record_error(error)
            return False
        return True

    def _settle(self) -> bool:
        """Takes what was given back off the file; it stands in the write-ahead log till then. False: nothing is left.

        A reader in the middle of something holds that up; then the next look does it.
        """
        _, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages == moved:
            self._is_shrinking = False
            self._files.settle()
        return False

    def _tidy(self, tx: Transaction) -> bool:
        """Beside what each transaction removes first: write down how far the consumers are; whether more is over."""
        self.backlog.write_floors(tx)
        self._clock.look()
        if self._clock.is_changed or tx.steady >= self._clock_kept_at + CLOCK_SECONDS:
            write_clock(tx.db, self._clock.get_state())
            tx.committed.append(lambda: setattr(self, "_clock_kept_at", tx.steady))
        return tx.wall >= log_table.read_next_expiry(tx.db) and not self._clock.is_held

    def _build(self, tx: Transaction) -> bool:
        """What of an older journal is not in the index yet is added, for a slice."""
        has_more = subject_index.build_piece(tx.db, log_table.SLICE_SECONDS)
        done = subject_index.read_progress(tx.db)
        tx.committed.append(lambda: setattr(self, "building", done))
        return has_more

    def _alone(self, work: Callable[[Transaction], bool]) -> bool | None:
        """A job of our own: what it returned, or None where it failed."""
        job: ThreadJob[Transaction, bool] = ThreadJob(work)
        self._commit([job])
        return job.value if job.error is None else None

    def close(self) -> None:
        self._clock_kept_at = -math.inf
        self._alone(self._tidy)
        self._closing.close()


def _write_probe(tx: Transaction) -> bool:
    tx.db.execute("UPDATE counter SET value = value + 1 WHERE name = 'probe'")
    return True


class JournalReader:
    """Does the jobs of the reading thread: it sees what is committed, and never waits for the writer (WAL)."""

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

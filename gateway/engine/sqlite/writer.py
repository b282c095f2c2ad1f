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

A full disk fails the callers, and `health` says so until there is room again, which the thread looks for by itself.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from gateway.engine.clock import Clock
from gateway.engine.sqlite import file
from gateway.engine.sqlite import log as records
from gateway.engine.sqlite.ailments import explain, is_ailment, is_damage, room
from gateway.engine.sqlite.backlog import Backlog
from gateway.engine.sqlite.schema import pragma
from gateway.engine.sqlite.threads import Job
from gateway.engine.sqlite.transaction import Transaction
from gateway.errors import EngineError

SWEEP_SECONDS = 60.0
SWEPT_AT_ONCE = 500
PROBE_SECONDS = 1.0
# So much must be free again before a full journal is called well: not to flutter with every small record.
ROOM_WANTED = 1 << 20
PAGES_FREED_AT_ONCE = 256

log = logging.getLogger(__name__)


class Writer:
    """The duty of the writing thread. What has no underscore may be looked at from the loop."""

    def __init__(
        self, path: Path, clock: Clock, max_bytes: int | None, announce: Callable[[Transaction], None]
    ) -> None:
        self._path = path
        self._clock = clock
        self._max_bytes = max_bytes
        self._announce = announce
        self._closing = ExitStack()
        self._sweep_at = self._probe_at = clock.steady()
        self._is_damaged = False
        self.busy_since: float | None = None
        self.ailment = ""
        self.note = ""
        self.records = 0
        self.epoch = 0

    def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with ExitStack() as stack:
                stack.callback(file.FileLock(self._path).release)
                self._db, self.note = file.open_writer(self._path, self._max_bytes)
                stack.callback(self._db.close)
                self._begin_life()
                self._closing = stack.pop_all()
        except sqlite3.Error as error:
            raise EngineError(explain(error, self._path)) from error
        except OSError as error:
            raise EngineError(f"the journal {self._path} cannot be opened: {error}") from error

    def _begin_life(self) -> None:
        """What was in flight is due again; a new epoch begins."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("UPDATE pending SET due = 0")
        query = "UPDATE counter SET value = value + 1 WHERE name = 'epoch' RETURNING value"
        ((self.epoch,),) = self._db.execute(query).fetchall()
        self._db.execute("COMMIT")
        (self.records,) = self._db.execute("SELECT count(*) FROM log").fetchone()
        self.backlog = Backlog(self._db)

    def serve(self, jobs: list[Job[Transaction, Any]]) -> Callable[[], None]:
        self.busy_since = self._clock.steady()
        done = self._commit(jobs)
        self.busy_since = None
        return partial(self._announce_all, done)

    def _announce_all(self, done: list[Transaction]) -> None:
        for tx in done:
            self._announce(tx)

    def _commit(self, jobs: list[Job[Transaction, Any]]) -> list[Transaction]:
        """Do the jobs in one transaction, or if that fails each in its own."""
        tx = Transaction(self._db, self._clock.wall(), self._clock.steady())
        try:
            self._begin()
        except sqlite3.Error as error:
            self._fail(jobs, error)
            return []
        try:
            for job in jobs:
                self._attempt(job, tx)
            self._db.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever one job does wrong must not end the thread
            self._roll_back()
            if len(jobs) > 1:
                return [tx for job in jobs for tx in self._commit([job])]
            self._fail(jobs, error)
            return []
        self.records += len(tx.appended) - len(tx.removed)
        self.backlog.settle(tx)
        return [tx]

    def _begin(self) -> None:
        if self._is_damaged:
            damage = sqlite3.DatabaseError("found earlier")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage
        self._db.execute("BEGIN IMMEDIATE")

    def _attempt(self, job: Job[Transaction, Any], tx: Transaction) -> None:
        """Do one job; an error is its own affair as long as it has written nothing."""
        before = self._db.total_changes
        job.error = None
        try:
            job.value = job.work(tx)
        except sqlite3.Error:
            raise
        except Exception as error:
            if self._db.total_changes != before:
                raise
            job.error = error

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def _fail(self, jobs: list[Job[Transaction, Any]], error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            self.suffer(error)
        for job in jobs:
            job.error = EngineError(explain(error, self._path)) if isinstance(error, sqlite3.Error) else error

    def suffer(self, error: sqlite3.Error) -> None:
        """Remember what ails the journal, and say so once; the reading thread tells us too."""
        if not is_ailment(error):
            return
        self._is_damaged = self._is_damaged or is_damage(error)
        words = explain(error, self._path)
        if not self.ailment:
            log.error("%s", words)
        self.ailment = words

    def rest(self) -> float:
        now = self._clock.steady()
        if self.ailment and not self._is_damaged:
            if now >= self._probe_at:
                self._probe()
                self._probe_at = now + PROBE_SECONDS
            return PROBE_SECONDS
        if now >= self._sweep_at:
            self._sweep_at = now if self._sweep() else now + SWEEP_SECONDS
        return max(0.0, self._sweep_at - now)

    def _probe(self) -> None:
        """Is there room again, and does a write succeed?"""
        with suppress(sqlite3.Error, OSError):
            if room(self._db, self._path) < ROOM_WANTED:
                return
        if self._alone(_touch) is not None:
            log.warning("the journal %s can be written again", self._path)
            self.ailment = ""

    def _sweep(self) -> bool:
        """Remove what is over, write down how far the consumers are, give space back; whether there is more."""
        more = self._alone(self._tidy)
        with suppress(sqlite3.Error):
            return bool(more) or self._shrink()
        return False

    def _tidy(self, tx: Transaction) -> bool:
        self.backlog.write_floors(tx)
        return records.expire(tx, SWEPT_AT_ONCE)

    def _shrink(self) -> bool:
        """Where a quarter of the file is empty, give some of it back to the file system."""
        free = pragma(self._db, "freelist_count")
        if free < PAGES_FREED_AT_ONCE or free * 4 < pragma(self._db, "page_count"):
            return False
        self._db.execute(f"PRAGMA incremental_vacuum({PAGES_FREED_AT_ONCE})").fetchall()
        return True

    def _alone(self, work: Callable[[Transaction], bool]) -> bool | None:
        """A job of our own: what it returned, or None where it failed."""
        job: Job[Transaction, bool] = Job(work)
        self._commit([job])
        return job.value if job.error is None else None

    def close(self) -> None:
        self._alone(self._tidy)
        self._closing.close()


def _touch(tx: Transaction) -> bool:
    tx.db.execute("UPDATE counter SET value = value + 1 WHERE name = 'probe'")
    return True

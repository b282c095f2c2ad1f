"""The writing thread's work between its jobs: write down how far consumers are, give space back, see a disk recover."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gateway.engine.interface import Clock
from gateway.engine.sqlite.faults import FaultState, get_free_bytes
from gateway.engine.sqlite.log_table import Transaction
from gateway.engine.sqlite.schema import read_pragma

SWEEP_SECONDS = 60.0
SHRINK_PAGES = 256
PROBE_SECONDS = 1.0
# So much must be free again before a full journal is called well: not to flutter with every small record.
MIN_FREE_BYTES = 1 << 20

# Commits a piece of work by itself: what it returned, or None where it failed.
CommitAlone = Callable[[Callable[[Transaction], bool]], bool | None]


class Maintenance:
    """Small pieces of work, so that no caller ever waits long behind them."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Clock, condition: FaultState) -> None:
        self._db = db
        self._path = path
        self._clock = clock
        self._condition = condition
        self._sweep_at = self._probe_at = clock.steady()

    def attend(self, tidy: Callable[[Transaction], bool], alone: CommitAlone) -> float:
        """Do what is due, and say for how long nothing else will be; `tidy` returns whether it has more to do."""
        now = self._clock.steady()
        if self._condition.is_damaged:
            return SWEEP_SECONDS
        if self._condition.fault:
            if now >= self._probe_at:
                self._probe_at = now + PROBE_SECONDS
                self._probe(alone)
            return PROBE_SECONDS
        if now >= self._sweep_at:
            has_more = alone(tidy) or self._shrink()
            self._sweep_at = now if has_more else now + SWEEP_SECONDS
        return max(0.0, self._sweep_at - now)

    def _probe(self, alone: CommitAlone) -> None:
        """Recovers where there is room again and a write succeeds."""
        with suppress(sqlite3.Error, OSError):
            if get_free_bytes(self._db, self._path) >= MIN_FREE_BYTES and alone(_write_probe):
                self._condition.recover()

    def _shrink(self) -> bool:
        """Gives some of a file that is empty to a quarter back to the file system; true where there is more."""
        try:
            free = read_pragma(self._db, "freelist_count")
            if free < SHRINK_PAGES or free * 4 < read_pragma(self._db, "page_count"):
                return False
            # As a script: the pragma frees a page a step, and a cursor makes one step where it expects no rows.
            self._db.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
        except sqlite3.Error as error:
            self._condition.record_error(error)
            return False
        return True


def _write_probe(tx: Transaction) -> bool:
    tx.db.execute("UPDATE counter SET value = value + 1 WHERE name = 'probe'")
    return True

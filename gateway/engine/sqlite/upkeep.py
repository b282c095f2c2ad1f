"""What the writing thread does between its jobs: write down how far consumers are, give space back, find room."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gateway.engine.clock import Clock
from gateway.engine.sqlite.ailments import Condition, room
from gateway.engine.sqlite.schema import pragma
from gateway.engine.sqlite.transaction import Transaction

SWEEP_SECONDS = 60.0
PAGES_FREED_AT_ONCE = 256
PROBE_SECONDS = 1.0
# So much must be free again before a full journal is called well: not to flutter with every small record.
ROOM_WANTED = 1 << 20

# Commits a piece of work by itself: what it returned, or None where it failed.
Alone = Callable[[Callable[[Transaction], bool]], bool | None]


class Upkeep:
    """Small pieces of work, so that no caller ever waits long behind them."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Clock, condition: Condition) -> None:
        self._db = db
        self._path = path
        self._clock = clock
        self._condition = condition
        self._sweep_at = self._probe_at = clock.steady()

    def attend(self, tidy: Callable[[Transaction], bool], alone: Alone) -> float:
        """Do what is due, and say for how long nothing else will be; `tidy` returns whether it has more to do."""
        now = self._clock.steady()
        if self._condition.is_damaged:
            return SWEEP_SECONDS
        if self._condition.ailment:
            if now >= self._probe_at:
                self._probe_at = now + PROBE_SECONDS
                self._probe(alone)
            return PROBE_SECONDS
        if now >= self._sweep_at:
            has_more = alone(tidy) or self._shrink()
            self._sweep_at = now if has_more else now + SWEEP_SECONDS
        return max(0.0, self._sweep_at - now)

    def _probe(self, alone: Alone) -> None:
        """Is there room again, and does a write succeed?"""
        with suppress(sqlite3.Error, OSError):
            if room(self._db, self._path) >= ROOM_WANTED and alone(_touch):
                self._condition.recover()

    def _shrink(self) -> bool:
        """Where a quarter of the file is empty, give some of it back to the file system; whether there is more."""
        try:
            free = pragma(self._db, "freelist_count")
            if free < PAGES_FREED_AT_ONCE or free * 4 < pragma(self._db, "page_count"):
                return False
            # As a script: the pragma frees a page a step, and a cursor makes one step where it expects no rows.
            self._db.executescript(f"PRAGMA incremental_vacuum({PAGES_FREED_AT_ONCE})")
        except sqlite3.Error as error:
            self._condition.suffer(error)
            return False
        return True


def _touch(tx: Transaction) -> bool:
    tx.db.execute("UPDATE counter SET value = value + 1 WHERE name = 'probe'")
    return True

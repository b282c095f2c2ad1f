"""Faults of a journal, told apart from operations that were wrong, in words that an operator can use."""

import errno
import logging
import math
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from gateway.engine.sqlite.damage_check import DAMAGE_CODES, is_damage, verify_damage
from gateway.engine.sqlite.schema import read_pragma
from gateway.errors import EngineError, RecordDamage
from gateway.yaml_source.units import format_count

FAULT_CODES = (
    *DAMAGE_CODES,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
)

HIDDEN = (errno.EACCES, errno.EPERM, errno.ELOOP)  # who may not look at a file now may write into an open one
MAX_DAMAGED = 20  # records that are named

log = logging.getLogger(__name__)


def get_free_bytes(db: sqlite3.Connection, path: Path) -> int:
    """Returns how many bytes the journal may still grow by: what the disk has, or its own limit."""
    disk = os.statvfs(path)
    pages = read_pragma(db, "max_page_count") - read_pragma(db, "page_count") + read_pragma(db, "freelist_count")
    return min(disk.f_bavail * disk.f_frsize, pages * read_pragma(db, "page_size"))


def describe_error(error: sqlite3.Error, path: Path) -> str:
    """Says what is wrong, and what an operator can do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"no room for the journal {path}: the disk is full, or the journal at its limit; make room"
    if is_damage(error):
        return f"the journal {path} is damaged ({error}): stop the gateway, then restore a backup, or start anew"
    if code == sqlite3.SQLITE_IOERR:
        what = f"the disk does not answer: {error}, under the journal {path}"
        return f"{what}; check the file system; nothing is known to be lost"
    return f"the journal {path} could not do this: {error}"


def _look_at(path: Path, before: os.stat_result | None = None) -> os.stat_result | None:
    """Return the facts of this file, or None if it is missing; the facts of before, if we may not look."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in HIDDEN:
            return before
        raise


class JournalFiles:
    """The files as they were when we last wrote: who deletes, replaces or cuts one meanwhile is noticed.

    SQLite would write on into what has no name any more, or read zeros for what is gone. All of it runs on the thread
    that writes, which alone makes the file smaller.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = Path(f"{path}-wal")
        self._file, self._log = path.stat(), _look_at(self._wal)
        self._size = 0
        self._is_settled = True
        self.note_size()

    def note_size(self) -> None:
        """It grows with what is written; a file that was taken away just now is found before the next writing."""
        with suppress(OSError):  # who may not look at it now can write into it all the same
            facts = self._path.stat()
            if self._is_settled and os.path.samestat(facts, self._file):
                self._file, self._size = facts, max(self._size, facts.st_size)

    def unsettle(self) -> None:
        """Some of it is given back to the disk: it may become smaller with any commit from now on."""
        self._is_settled, self._size = False, 0

    def settle(self) -> None:
        """It is as small as it is to be."""
        self._is_settled = True
        self.note_size()

    def find_damage(self) -> str:
        facts = _look_at(self._path, self._file)
        if facts is None or not os.path.samestat(facts, self._file):
            return "its file was deleted or replaced"
        missing = self._size - facts.st_size
        return f"its file was cut, by {format_count(missing, 'byte')}" if missing > 0 else ""

    def find_warning(self) -> str:
        facts = _look_at(self._wal, self._log)
        if facts and self._log and os.path.samestat(facts, self._log):
            return ""
        return (
            f"{self._wal} was deleted or replaced, and has the newest records: stop the gateway now with "
            "`hermes-gateway stop`, which writes them into the journal, and start it again"
        )


class FaultState:
    """Whether the journal is ill. The writing thread changes it, the reading one may, the loop looks at it."""

    def __init__(self, path: Path) -> None:
        self.fault = ""
        self.warning = ""  # what has happened to its files, though it still works
        self.is_damaged = False
        self.wants_room = False  # a full disk, which is waited for
        self.since = math.inf  # when it became ill, by the steady clock
        self.damaged: dict[int, str] = {}  # records, by sequence
        self._path = path
        self._was_doubted = False  # it looked damaged before, and was found well

    def record_error(self, error: sqlite3.Error) -> EngineError:
        """Makes the error for the callers; a fault of the journal, not of their operation, is remembered and logged."""
        if self.is_damaged:
            return EngineError(self.fault)  # what was seen first says most
        looked_damaged, error = is_damage(error), verify_damage(error, self._path, is_first=not self._was_doubted)
        self._was_doubted |= looked_damaged
        words = describe_error(error, self._path)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in FAULT_CODES:
            self.is_damaged = is_damage(error)
            self.wants_room = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
            if not self.fault:
                log.error("%s", words)
                self.since = time.monotonic()
            self.fault = words
        return EngineError(words)

    def note_damage(self, error: Exception) -> None:
        """A record that is not as it was written is remembered, and logged once; the others go on."""
        if isinstance(error, RecordDamage) and error.seq not in self.damaged and len(self.damaged) < MAX_DAMAGED:
            log.error("the journal %s: %s", self._path, error)
            self.damaged[error.seq] = str(error)

    def recover(self) -> None:
        log.warning("the journal %s can be written again", self._path)
        self.fault = ""

"""Faults of a journal's disk and files, described for an operator. A refused operation is not a fault."""

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

HIDDEN = (errno.EACCES, errno.EPERM, errno.ELOOP)  # a user without access to a path can still write to the open file
MAX_DAMAGED = 20  # records in the report

log = logging.getLogger(__name__)


def get_free_bytes(db: sqlite3.Connection, path: Path) -> int:
    """Return by how many bytes the journal may still grow, limited by the disk and by its own bound."""
    disk = os.statvfs(path)
    pages = read_pragma(db, "max_page_count") - read_pragma(db, "page_count") + read_pragma(db, "freelist_count")
    return min(disk.f_bavail * disk.f_frsize, pages * read_pragma(db, "page_size"))


def describe_error(error: sqlite3.Error, path: Path) -> str:
    """Describe the fault and the remedy for an operator."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"no room for the journal {path}: the disk is full, or the journal at its limit; make room"
    if is_damage(error):
        return f"the journal {path} is damaged ({error}): stop the gateway, then restore a backup, or start without one"
    if code == sqlite3.SQLITE_IOERR:
        what = f"the disk does not answer: {error}, under the journal {path}"
        return f"{what}; check the file system; nothing is known to be lost"
    return f"the journal {path} could not do this: {error}"


def _look_at(path: Path, before: os.stat_result | None = None) -> os.stat_result | None:
    """Return the file's status, None if it is missing, or `before` if we have no access to it."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in HIDDEN:
            return before
        raise


class JournalFiles:
    """The journal's files as of our last write, to notice a file that was deleted, replaced or cut.

    SQLite would continue to write into a file without a name, or read zeros where the file was cut. All methods run on
    the writing thread, the only thread that makes the file smaller.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = Path(f"{path}-wal")
        self._file, self._log = path.stat(), _look_at(self._wal)
        self._size = 0
        self._is_settled = True
        self.note_size()

    def note_size(self) -> None:
        """Note the size, which grows with each write; `find_damage` detects a removed file at the next write."""
        with suppress(OSError):  # without access to the file's name we can still write to the open file
            facts = self._path.stat()
            if self._is_settled and os.path.samestat(facts, self._file):
                self._file, self._size = facts, max(self._size, facts.st_size)

    def unsettle(self) -> None:
        """Expect the file to shrink with any commit from now on, because free space returns to the disk."""
        self._is_settled, self._size = False, 0

    def settle(self) -> None:
        """Stop expecting the file to shrink."""
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
    """The known faults of the journal. The writing and the reading thread change them; the event loop reads them."""

    def __init__(self, path: Path) -> None:
        self.fault = ""
        self.warning = ""  # trouble with the files, though the journal works
        self.is_damaged = False
        self.wants_room = False  # the disk is full, and the journal waits for room
        self.since = math.inf  # the start of the fault, by the steady clock
        self.damaged: dict[int, str] = {}  # damaged records, by sequence
        self._path = path
        self._was_doubted = False  # whether the journal has looked damaged before

    def record_error(self, error: sqlite3.Error) -> EngineError:
        """Make the error for the callers; remember and log it if the journal is at fault, not the operation."""
        if self.is_damaged:
            return EngineError(self.fault)  # the first error says most
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
        """Remember a damaged record and log it once; all other records stay usable."""
        if isinstance(error, RecordDamage) and error.seq not in self.damaged and len(self.damaged) < MAX_DAMAGED:
            log.error("the journal %s: %s", self._path, error)
            self.damaged[error.seq] = str(error)

    def recover(self) -> None:
        log.warning("the journal %s can be written again", self._path)
        self.fault = ""

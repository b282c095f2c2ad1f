"""What is wrong with a journal, if anything: told from an operation that was wrong, in words an operator can use."""

import logging
import os
import sqlite3
from pathlib import Path

from gateway.engine.sqlite.schema import pragma
from gateway.errors import EngineError

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
AILMENTS = (
    *DAMAGE,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
)

log = logging.getLogger(__name__)


def room(db: sqlite3.Connection, path: Path) -> int:
    """How many bytes the journal may still grow by: what the disk has, or its own limit."""
    disk = os.statvfs(path)
    pages = pragma(db, "max_page_count") - pragma(db, "page_count") + pragma(db, "freelist_count")
    return min(disk.f_bavail * disk.f_frsize, pages * pragma(db, "page_size"))


def explain(error: sqlite3.Error, path: Path) -> str:
    """What an operator can do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"no room for the journal {path}: the disk is full, or the journal at its limit; make room"
    if is_damage(error):
        return f"the journal {path} is damaged ({error}): stop the gateway, then restore a backup, or start anew"
    if code == sqlite3.SQLITE_IOERR:
        return f"the disk failed under the journal {path} ({error}): look at the system's log, and make room"
    return f"the journal {path} could not do this: {error}"


def damaged(why: str) -> sqlite3.DatabaseError:
    """What SQLite would raise, had it seen what we have seen."""
    error = sqlite3.DatabaseError(why)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name now; None where none has."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE


class Condition:
    """How the journal is. The writing thread changes it, the reading one may, the loop looks at it."""

    def __init__(self, path: Path) -> None:
        self.ailment = ""
        self.is_damaged = False
        self._path = path

    def suffer(self, error: sqlite3.Error) -> EngineError:
        """What to tell the callers; where it is the journal and not their operation, that is remembered and logged."""
        words = explain(error, self._path)
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in AILMENTS:
            self.is_damaged = self.is_damaged or is_damage(error)
            if not self.ailment:
                log.error("%s", words)
            self.ailment = words
        return EngineError(words)

    def recover(self) -> None:
        log.warning("the journal %s can be written again", self._path)
        self.ailment = ""

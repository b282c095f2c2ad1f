"""What can be wrong with a journal: told from an operation that was wrong, and in words an operator can use."""

import os
import sqlite3
from pathlib import Path

from gateway.engine.sqlite.schema import pragma

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


def is_ailment(error: sqlite3.Error) -> bool:
    """Whether the journal is ill, or only the one operation was wrong."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in AILMENTS


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE

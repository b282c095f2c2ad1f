"""Distinguish a damaged journal from a disk that does not answer: SQLite calls both "malformed".

The gateway checks a file that seems damaged twice, and reads it from end to end without SQLite. A journal on a disk
that does not answer is neither set aside nor overwritten.
"""

import errno
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from gateway.engine.sqlite.schema import check_kind, is_blank

DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
CHECK_TIMEOUT = 1.0
CHUNK = 1 << 20


class JournalDamage(sqlite3.DatabaseError):
    """The error that SQLite would raise for damage that we found ourselves."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE_CODES


def make_disk_error(error: OSError) -> sqlite3.OperationalError:
    """Make the error that SQLite would raise when the disk refuses a read or a write."""
    made = sqlite3.OperationalError(error.strerror or str(error))
    made.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return made


def find_damage(db: sqlite3.Connection, path: Path) -> str | None:
    """Describe the damage in SQLite's words; None if no damage was found. A later version's journal raises an error."""
    try:
        if not is_blank(db):
            check_kind(db, path)
        return _run_quick_check(db)
    except sqlite3.Error as error:
        if is_damage(error):
            return str(error)
        raise


def verify_damage(error: sqlite3.Error, path: Path, *, is_first: bool = True) -> sqlite3.Error:
    """Return `error`, or an error of the disk if the file cannot be read or the first check finds no damage."""
    if not is_damage(error) or isinstance(error, JournalDamage):
        return error
    try:
        read_whole_file(path)
        if is_first:
            with closing(sqlite3.connect(path)) as db:
                return error if find_damage(db, path) else make_disk_error(OSError(errno.EIO, os.strerror(errno.EIO)))
    except sqlite3.Error as other:
        return other
    return error


def read_whole_file(path: Path) -> None:
    """Read a file to its end; raise sqlite3.OperationalError if the disk fails."""
    try:
        with path.open("rb", buffering=0) as file:
            while file.read(CHUNK):
                pass
    except OSError as error:
        raise make_disk_error(error) from error


def _run_quick_check(db: sqlite3.Connection) -> str | None:
    """Run SQLite's quick check, interrupted after a second; `backup.verify_journal` checks thoroughly."""
    alarm = threading.Timer(CHECK_TIMEOUT, db.interrupt)
    alarm.start()
    try:
        found = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return None  # the check took too long
        raise
    finally:
        alarm.cancel()
        alarm.join()
    return None if found == "ok" else found

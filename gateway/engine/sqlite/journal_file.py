"""The journal's file on disk: open in one process at a time, never silently replaced, private to its owner.

`journal.db`, `journal.db-wal` and `journal.db-shm` belong together. `journal.db.lock` carries the lock and the process
id of its holder; this file stays after the lock ends.
"""

import fcntl
import logging
import os
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

from gateway.engine.sqlite import journal_end
from gateway.engine.sqlite.damage_check import find_damage, read_whole_file
from gateway.engine.sqlite.schema import PAGE_SIZE, make_tables, read_pragma
from gateway.errors import HomeBusy

LOOKS = 2  # checks for damage before a journal is set aside
BUSY_TIMEOUT = 5.0
# SQLite moves the write-ahead log into the journal every WAL_PAGES pages, 16 MB. Four times SQLite's default makes a
# loaded journal a quarter faster, and costs a few milliseconds more at the start after a crash.
WAL_PAGES = 4000
COMPANION_SUFFIXES = ("-wal", "-shm", "-end")

log = logging.getLogger(__name__)


class FileLock:
    """The right to write a journal, until the lock is closed or the process dies."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip()
            os.close(self._file)
            who = f"process {holder}" if holder else "another process"
            raise HomeBusy(f"{path} is in use by {who}; stop that one first") from None
        os.truncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        os.truncate(self._file, 0)
        # Unlocked explicitly: closing alone keeps the lock while a forked child has the file open.
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)


def connect(path: Path) -> sqlite3.Connection:
    """Connect without implicit transactions; the connection belongs to the calling thread."""
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)


def open_writer(path: Path, max_bytes: int | None, stack: ExitStack) -> tuple[sqlite3.Connection, str]:
    """Open the writing connection and return it with a note for the operator; the caller must hold the lock.

    The stack closes the connection in every case.
    """
    db, note = _open_undamaged(path, stack)
    lost = journal_end.check_end(db, path)
    make_tables(db)
    if lost:
        journal_end.move_end(db, lost)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    db.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    db.execute(f"PRAGMA journal_size_limit = {WAL_PAGES * PAGE_SIZE}")
    if max_bytes is not None:
        db.execute(f"PRAGMA max_page_count = {max(1, max_bytes // read_pragma(db, 'page_size'))}")
    return db, note


def open_reader(path: Path) -> sqlite3.Connection:
    db = connect(path)
    db.execute("PRAGMA query_only = ON")
    return db


def _open_undamaged(path: Path, stack: ExitStack) -> tuple[sqlite3.Connection, str]:
    """Check and open the journal; set a damaged journal aside, begin a new one, and report both in the note."""
    if not path.exists():
        Path(f"{path}-end").unlink(missing_ok=True)  # a new journal begins, without the old note
        _set_aside_orphan(path)
        _create_file(path)
    elif not path.stat().st_size:
        _set_aside_orphan(path)
    damage: str | None = ""
    for _ in range(LOOKS):
        db = stack.enter_context(closing(connect(path)))
        if (damage := find_damage(db, path)) is None:
            return db, ""
        db.close()
        read_whole_file(path)
    kept = set_aside(path, "damaged")
    _create_file(path)
    note = (
        f"the journal was damaged ({damage}); it was set aside as {kept} and a new one begun: "
        "restore a backup, or keep the file for a repair"
    )
    log.warning("%s", note)
    return stack.enter_context(closing(connect(path))), note


def set_aside(path: Path, why: str) -> Path:
    """Rename a journal, then its companions: SQLite never applies a companion without its journal."""
    kept = find_unused_path(f"{path}.{why}")
    path.rename(kept)
    move_companions(path, kept)
    sync(path.parent)
    return kept


def move_companions(path: Path, kept: Path) -> None:
    for companion in COMPANION_SUFFIXES:
        if Path(f"{path}{companion}").exists():
            Path(f"{path}{companion}").rename(f"{kept}{companion}")


def find_unused_path(name: str) -> Path:
    """Return a path that no file has yet: the name, with the time appended."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (Path(f"{name}-{stamp}{suffix}") for suffix in ("", *(f"-{count}" for count in range(2, 1000))))
    return next(candidate for candidate in names if not candidate.exists())


def _set_aside_orphan(path: Path) -> None:
    """Set aside a write-ahead log whose journal is missing or empty.

    SQLite would delete this log, with the only copy of its records.
    """
    wal = Path(f"{path}-wal")
    if wal.exists() and wal.stat().st_size:
        kept = find_unused_path(f"{wal}.orphan")
        wal.rename(kept)
        log.warning("%s is missing or empty, but not its write-ahead log; that was set aside as %s", path, kept)


def _create_file(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are safely on disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

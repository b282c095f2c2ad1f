"""Copies of a journal: made while it is being written, verified, and put back in its place.

A copy is one file, complete as of one instant, without what was purged. All three functions work on files, from any
process, and take as long as the disk does: on an event loop they belong into a thread.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.engine.sqlite import file
from gateway.engine.sqlite.ailments import explain
from gateway.engine.sqlite.schema import check_kind, used
from gateway.errors import EngineError

FAULTS_TOLD = 20
ACTING = "SELECT quote(name) FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 20"  # a journal has none


@dataclass(frozen=True, slots=True)
class Contents:
    """What a journal holds; `newest` is the wall clock of its last record, None where there is none."""

    records: int
    last_seq: int
    newest: float | None
    size: int


def backup(journal: Path, target: Path) -> Contents:
    """Copy a journal as it is now, whether a gateway has it open or not; the copy is verified before it gets its name.

    Raises:
        EngineError: there is no journal, the target exists already, the disk is full, or the journal is damaged.
    """
    if target.exists():
        raise EngineError(f"{target} exists already; name a file that does not")
    with _copied(journal, target) as copy:
        contents = verify(copy)
        copy.rename(target)
    file.sync_folder(target)
    return contents


def verify(journal: Path) -> Contents:
    """Read a journal or a copy from end to end.

    Raises:
        EngineError: it is damaged, with the places, or it is no journal of ours.
    """
    with _reading(journal) as db:
        faults = [str(fault) for (fault,) in db.execute(f"PRAGMA integrity_check({FAULTS_TOLD})")]
        if faults != ["ok"]:
            raise EngineError(f"{journal} is damaged: {'; '.join(faults)}")
        foreign = [str(name) for (name,) in db.execute(ACTING)]
        if foreign:
            raise EngineError(f"{journal} is not as we write journals: it acts by itself, by {', '.join(foreign)}")
        ((records, last_seq, newest),) = db.execute("SELECT count(*), coalesce(max(seq), 0), max(ts) FROM log")
        return Contents(records, last_seq, newest, used(db))


def restore(copy: Path, journal: Path) -> Path | None:
    """Put a copy in the place of a journal, and say where the old one is now; no gateway may have it open.

    Raises:
        HomeBusy: a gateway has the journal open.
        EngineError: the copy is damaged or cannot be read, or the disk is full; then the journal is as before.
    """
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = file.FileLock(journal)
    try:
        with _copied(copy, journal) as part:
            verify(part)
            kept = _keep(journal) if journal.exists() else None
            part.replace(journal)
        file.sync_folder(journal)
    finally:
        lock.release()
    return kept


def _keep(journal: Path) -> Path:
    """Give the journal a second name, so that there is no instant without one, and make it one file."""
    with suppress(sqlite3.Error), closing(file.connect(journal)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = file.unused(f"{journal}.replaced")
    os.link(journal, kept)
    file.move_companions(journal, kept)
    return kept


@contextmanager
def _copied(source: Path, target: Path) -> Iterator[Path]:
    """A copy beside the target, on the disk for good; removed again unless it was given another name."""
    part = Path(f"{target}.part")
    part.unlink(missing_ok=True)
    try:
        with _reading(source) as db:
            # Ours alone from the beginning: SQLite would let everybody read it.
            os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            db.execute("VACUUM INTO ?", (str(part),))
        _sync(part)
        yield part
    except OSError as error:
        raise EngineError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise EngineError(f"there is no journal at {path}")
    try:
        # Not mode=ro: a connection that may not write leaves its -wal and -shm behind.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as db:
            check_kind(db, path)
            yield db
    except sqlite3.Error as error:
        raise EngineError(explain(error, path)) from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

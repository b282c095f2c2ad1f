"""Backups of a journal: create a copy while a gateway writes, verify it, restore it; also read a journal's file.

A copy is one file, complete as of one instant, without purged records. All functions work on files, from any process,
and wait for the disk: on an event loop, run them in a thread.
"""

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from gateway.engine.interface import Record
from gateway.engine.sqlite import journal_file
from gateway.engine.sqlite.damage_check import is_damage
from gateway.engine.sqlite.faults import describe_error
from gateway.engine.sqlite.log_table import read, read_last, to_record
from gateway.engine.sqlite.schema import check_kind, get_used_bytes
from gateway.errors import EngineError, RecordDamage

MAX_FAULTS = 20
# A journal has neither triggers nor views.
ACTIVE_SCHEMA_QUERY = "SELECT quote(name) FROM sqlite_master WHERE type IN ('trigger', 'view') LIMIT 20"


class JournalContents(msgspec.Struct, frozen=True):
    """The contents of a journal; `newest` is the wall-clock time of its last record, None without records.

    `unchecked` counts the records without a checksum, which an older version wrote; `damaged` describes the records
    whose checksum is wrong.
    """

    records: int
    last_seq: int
    newest: float | None
    size: int
    unchecked: int = 0
    damaged: tuple[str, ...] = ()


def create_backup(journal: Path, target: Path) -> JournalContents:
    """Copy a journal, even while a gateway has it open; the copy is verified before it gets its name.

    Raises:
        EngineError: the journal was not found or is damaged, the target exists already, or the disk is full.
    """
    if target.exists():
        raise EngineError(f"{target} exists already; name a file that does not")
    with _open_copy(journal, target) as copy:
        contents = verify_journal(copy)
        copy.rename(target)
    journal_file.sync(target.parent)
    return contents


def verify_journal(journal: Path) -> JournalContents:
    """Read a journal or a copy from end to end.

    Raises:
        EngineError: the journal is damaged (the message says where), or the file is not a journal of ours.
    """
    with _open_for_reading(journal) as db:
        faults = [str(fault) for (fault,) in db.execute(f"PRAGMA integrity_check({MAX_FAULTS})")]
        if faults != ["ok"]:
            raise EngineError(f"{journal} is damaged: {'; '.join(faults)}")
        foreign = [str(name) for (name,) in db.execute(ACTIVE_SCHEMA_QUERY)]
        if foreign:
            raise EngineError(f"{journal} is not as we write journals: it acts by itself, by {', '.join(foreign)}")
        ((records, last_seq, newest),) = db.execute("SELECT count(*), coalesce(max(seq), 0), max(ts) FROM log")
        return JournalContents(records, last_seq, newest, get_used_bytes(db), *_check_records(db))


def count_bytes(journal: Path) -> Counter[str]:
    """Sum up the bytes of all records by the second segment of their subjects. EngineError: as in `verify_journal`."""
    sizes = Counter[str]()
    with _open_for_reading(journal) as db:
        for subject, size in db.execute("SELECT subject, length(data) FROM log"):
            sizes[subject.split(".")[1]] += size
    return sizes


def read_last_in(journal: Path, subject: str) -> Record | None:
    """Return the last record of a subject, even if a gateway has the journal open.

    None if the record or the journal is missing.

    Raises:
        EngineError: the journal is damaged, or the file is not a journal of ours.
    """
    if not journal.exists():
        return None
    with _open_for_reading(journal) as db:
        return read_last(db, subject, time.time())


def read_in(journal: Path, pattern: str, limit: int) -> list[Record]:
    """Return up to `limit` records that match the pattern; an empty list if the journal is missing.

    Raises:
        EngineError: the journal is damaged, or the file is not a journal of ours.
    """
    if not journal.exists():
        return []
    with _open_for_reading(journal) as db:
        return read(db, pattern, 0, limit, time.time())


def _check_records(db: sqlite3.Connection) -> tuple[int, tuple[str, ...]]:
    """Count the records without a checksum, and describe the records whose checksum is wrong."""
    unchecked, damaged = 0, list[str]()
    for row in db.execute("SELECT seq, subject, data, ts, checksum FROM log ORDER BY seq"):
        unchecked += row[4] is None
        try:
            to_record(row)
        except RecordDamage as damage:
            damaged.append(f"record {damage.seq} on {row[1]}")
    return unchecked, tuple(damaged)


def restore_backup(copy: Path, journal: Path) -> Path | None:
    """Replace a journal by a copy and return the new path of the old journal; no gateway may have it open.

    Raises:
        HomeBusy: a gateway has the journal open.
        EngineError: the copy is damaged or cannot be read, or the disk is full; the journal is unchanged.
    """
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(journal_file.FileLock(journal)):
        with _open_copy(copy, journal) as part:
            verify_journal(part)
            kept = _keep_replaced(journal) if journal.exists() else None
            part.replace(journal)
        journal_file.sync(journal.parent)
    return kept


def _keep_replaced(journal: Path) -> Path:
    """Move the journal's log into its file, and give it a second name, so that a journal exists at every instant."""
    with suppress(sqlite3.Error), closing(journal_file.connect(journal)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = journal_file.find_unused_path(f"{journal}.replaced")
    os.link(journal, kept)
    journal_file.move_companions(journal, kept)
    return kept


@contextmanager
def _open_copy(source: Path, target: Path) -> Iterator[Path]:
    """Make a synced copy beside the target, and remove the copy at the end unless it was renamed."""
    part = Path(f"{target}.part")
    part.unlink(missing_ok=True)
    try:
        with _open_for_reading(source) as db:
            # Created with private permissions: SQLite would make it readable for all users.
            os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            db.execute("VACUUM INTO ?", (str(part),))
        journal_file.sync(part)
        yield part
    except OSError as error:
        raise EngineError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _open_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise EngineError(f"no journal at {path}")
    try:
        # Not mode=ro: a read-only connection leaves its -wal and -shm behind.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as db:
            check_kind(db, path)
            yield db
    except sqlite3.Error as error:
        remedy = "" if is_damage(error) else "\nsee that the disk answers, and that the folder can be written"
        raise EngineError(f"{describe_error(error, path)}{remedy}") from error

"""A note of the journal's end in a file of its own: from it the next start sees whether the newest records are missing.

Up to 16 MB of records are only in the write-ahead log. If this log is missing, or a changed bit cuts it off, SQLite
takes the rest for never written. So the writer notes the last sequence and its time after each commit. The note is not
synced to the disk: after a power cut it may be behind the journal, but never ahead.

The start describes a loss in a file beside the journal, and `health` warns of the loss until a person removes that
file. Before it writes to the journal, the start copies the rest of the log. No new record gets the sequence of a lost
record, so the search index, and every other reader that remembers its position, stays valid.
"""

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from gateway.engine.sqlite.schema import is_blank
from gateway.files.folders import read_plain_file
from gateway.yaml_source.units import format_count

WIDTH = 48  # bytes of a note
LOSS_SUFFIX = ".lost"

log = logging.getLogger(__name__)


class JournalEnd:
    """The note of the journal's end; `is_in_log` is True while the newest records are only in the write-ahead log."""

    def __init__(self, path: Path) -> None:
        self.is_in_log = True
        self._file = os.open(f"{path}-end", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(self, seq: int, at: float) -> None:
        with suppress(OSError):  # the journal itself was written; the next start may miss a loss
            os.pwrite(self._file, f"{seq} {at:.3f}".ljust(WIDTH).encode(), 0)

    def move_log(self, db: sqlite3.Connection) -> None:
        """Copy the write-ahead log into the journal's file, so that the loss of a log loses few records."""
        if self.is_in_log:
            with suppress(sqlite3.Error):
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self.is_in_log = False

    def close(self) -> None:
        os.close(self._file)


def read_end(path: Path) -> tuple[int, float]:
    """Return the last sequence and the time of its write; zeros if unknown."""
    try:
        seq, at = read_plain_file(Path(f"{path}-end")).split()
        return int(seq), float(at)
    except (OSError, ValueError):
        return 0, 0.0


def write_missing_end(path: Path, find_end: Callable[[], tuple[int, float]]) -> None:
    """Write the note of a journal without a note; `find_end` returns the last sequence and its time."""
    if path.exists() and not Path(f"{path}-end").exists():
        with closing(JournalEnd(path)) as end:
            end.note(*find_end())


def check_end(db: sqlite3.Connection, path: Path) -> int:
    """Report the records that are missing at the end of a journal that was just opened, and copy the rest of its log.

    Return the sequence after which new records start; 0 if no record is missing.
    """
    end, until = read_end(path)
    last, since = _read_last(db)
    if last >= end:
        return 0
    wal, kept = Path(f"{path}-wal"), ""
    with suppress(OSError):
        if wal.stat().st_size:
            kept = shutil.copy(wal, f"{wal}{LOSS_SUFFIX}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    count = format_count(end - last, "record")
    begin = f"from {_format_time(since)}" if since else "from its beginning"
    said = f"the journal {path} lost its newest records, up to {count}: {begin} to {_format_time(until)}"
    said += "; a backup of that time has them, and the search still finds the words that it had read"
    said += f"; what is left of the write-ahead log is in {kept}" if kept else ""
    file = Path(f"{path}{LOSS_SUFFIX}")
    file.touch(mode=0o600)
    file.write_text(f"{said}\n")
    log.error("%s", said)
    return end


def read_fault(path: Path) -> str:
    """Describe the loss that a start found; "" if no loss was found or a person has removed its file."""
    file = Path(f"{path}{LOSS_SUFFIX}")
    try:
        return f"{read_plain_file(file).decode('utf-8', 'replace').strip()}; when you have seen to it, remove {file}"
    except OSError:
        return ""


def move_end(db: sqlite3.Connection, end: int) -> None:
    """Make new records start after the lost records."""
    db.execute("DELETE FROM sqlite_sequence WHERE name = 'log'")
    db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('log', ?)", (end,))


def _read_last(db: sqlite3.Connection) -> tuple[int, float]:
    if is_blank(db):
        return 0, 0.0
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    newest = db.execute("SELECT ts FROM log ORDER BY seq DESC LIMIT 1").fetchone()
    return (last[0] if last else 0), (newest[0] if newest else 0.0)


def _format_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))

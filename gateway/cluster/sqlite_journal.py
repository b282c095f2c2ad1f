"""Read or write a whole journal file, to move the journal between engines. No process may have the file open."""

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from gateway.cluster.stored_journal import StoredConsumer, StoredRecord
from gateway.engine.journal_clock import Clock, JournalClock
from gateway.engine.sqlite import journal_file, subject_index
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.sqlite.faults import describe_error
from gateway.engine.sqlite.log_table import checksum_of, to_record
from gateway.engine.sqlite.schema import get_last_seq, make_tables, write_clock
from gateway.errors import EngineError

PAGE = 500


class SqliteJournal(msgspec.Struct, eq=False):
    """An open journal file: see `open_journal_file`. Its clock is `ahead` seconds behind the wall clock."""

    _db: sqlite3.Connection
    _ahead: float

    def read_last_seq(self) -> int:
        """Return the highest sequence that was ever used."""
        return get_last_seq(self._db)

    def count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM log").fetchone()[0])

    def read(self) -> Iterator[StoredRecord]:
        """Read all records; raises RecordDamage if the disk has changed a record."""
        after, query = 0, "SELECT seq, subject, data, ts, checksum, msg_id, expires FROM log"
        while page := self._db.execute(f"{query} WHERE seq > ? ORDER BY seq LIMIT ?", (after, PAGE)).fetchall():
            for *row, msg_id, expires in page:
                record = to_record((row[0], row[1], row[2], row[3], row[4]))
                until = None if expires is None else expires + self._ahead
                yield StoredRecord(record.seq, record.subject, record.data, record.ts, msg_id, until)
            after = page[-1][0]

    def read_consumers(self) -> list[StoredConsumer]:
        found = self._db.execute("SELECT name, patterns, floor FROM consumer ORDER BY name").fetchall()
        return [
            StoredConsumer(name, tuple(json.loads(one)), floor, self._read_owed(name)) for name, one, floor in found
        ]

    def _read_owed(self, name: str) -> dict[int, int]:
        return dict(self._db.execute("SELECT seq, attempt FROM pending WHERE consumer = ? ORDER BY seq", (name,)))

    def add(self, one: StoredRecord) -> None:
        self._db.execute(
            "INSERT INTO log (seq, subject, ts, msg_id, expires, data, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (one.seq, one.subject, one.ts, one.msg_id, one.until, one.data, checksum_of(one.subject, one.data)),
        )
        subject_index.add_subject(self._db, one.subject)

    def add_consumers(self, consumers: Iterable[StoredConsumer]) -> None:
        for one in consumers:
            kept = (one.name, json.dumps(one.patterns), one.floor)
            self._db.execute("INSERT INTO consumer (name, patterns, floor) VALUES (?, ?, ?)", kept)
            self._db.executemany(
                "INSERT INTO pending (seq, consumer, attempt, due)"
                " SELECT seq, ?, ?, 0 FROM log WHERE seq = ?",  # removed records are not pending
                [(one.name, attempts, seq) for seq, attempts in one.owed.items()],
            )

    def end(self, last_seq: int) -> None:
        """Finish the file; the next append gets a sequence after `last_seq`."""
        self._db.execute("DELETE FROM sqlite_sequence WHERE name = 'log'")
        self._db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('log', ?)", (last_seq,))
        write_clock(self._db, JournalClock(Clock()).get_state())
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


async def open_journal_file(path: Path) -> SqliteJournal:
    """Open a journal of any version and update it; the caller holds the home.

    Raises:
        HomeBusy: another process has the journal open.
        EngineError: the journal cannot be read.
    """
    async with await open_sqlite(path) as engine:
        ahead = time.time() - engine.clock.read()
    return SqliteJournal(journal_file.open_reader(path), ahead)


@contextmanager
def make_journal_file(path: Path) -> Iterator[SqliteJournal]:
    """Create a journal for the caller to fill and end; after the block the file is safely on disk.

    Raises:
        EngineError: the journal cannot be written.
    """
    for file in (path, *(Path(f"{path}{suffix}") for suffix in journal_file.COMPANION_SUFFIXES)):
        file.unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        with closing(journal_file.connect(path)) as db:
            make_tables(db)
            db.execute("BEGIN IMMEDIATE")
            yield SqliteJournal(db, 0.0)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise EngineError(describe_error(error, path)) from error
    journal_file.sync(path)

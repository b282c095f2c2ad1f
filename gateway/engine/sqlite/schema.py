"""The tables, their versions, and the check that a file is a journal.

`log` is the journal. A consumer's position is two things: `floor`, up to which every record was delivered or did not
match, and its rows in `pending`, the records delivered and not acknowledged. So an append costs a consumer nothing, and
a backlog of any length is one number. The module `subject_index` describes the table `ending`; `building` is empty, and
0.1.0 reads it.

Nothing here needs an SQLite newer than 3.27, which every supported system has.

`AUTOINCREMENT` keeps a sequence from ever returning after a purge: compare-and-set relies on it.
"""

import sqlite3
from contextlib import suppress

import msgspec

from gateway.engine.interface import make_shards_error
from gateway.engine.journal_clock import ClockState
from gateway.errors import EngineError, EngineTooNew

APPLICATION_ID = 0x68677731
PAGE_SIZE = 4096
SHARD_SIZE = 1 << 40  # 0.1.0 started the sequences of each further shard behind a multiple of this size
# Counters with this prefix hold the state of the journal's clock; an older version ignores them.
CLOCK_PREFIX = "clock_"

VERSION = 2  # 0.1.0 wrote it, too
# The statements that make a journal.
TABLES = (
    """CREATE TABLE log (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        subject TEXT NOT NULL,
        ts REAL NOT NULL,
        msg_id TEXT,
        expires REAL,
        data BLOB NOT NULL CHECK (typeof(data) = 'blob'),
        checksum INTEGER
    )""",
    "CREATE INDEX log_subject ON log (subject)",
    "CREATE UNIQUE INDEX log_msg_id ON log (msg_id) WHERE msg_id IS NOT NULL",
    "CREATE INDEX log_expires ON log (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE consumer (
        name TEXT PRIMARY KEY,
        patterns TEXT NOT NULL,
        floor INTEGER NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE pending (
        seq INTEGER NOT NULL,
        consumer TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        due REAL NOT NULL,
        PRIMARY KEY (seq, consumer)
    ) WITHOUT ROWID""",
    "CREATE INDEX pending_due ON pending (consumer, due)",
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counter VALUES ('epoch', 0), ('probe', 0)",
    """CREATE TABLE ending (
        ending TEXT NOT NULL,
        subject TEXT NOT NULL,
        PRIMARY KEY (ending, subject)
    ) WITHOUT ROWID""",
    "CREATE TABLE building (name TEXT PRIMARY KEY, reached TEXT NOT NULL, done INTEGER NOT NULL) WITHOUT ROWID",
)


def read_pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def get_used_bytes(db: sqlite3.Connection) -> int:
    """Return the bytes of the file that are in use."""
    return (read_pragma(db, "page_count") - read_pragma(db, "freelist_count")) * read_pragma(db, "page_size")


def is_blank(db: sqlite3.Connection) -> bool:
    return read_pragma(db, "schema_version") == 0


def check_kind(db: sqlite3.Connection, path: object) -> None:
    """Refuse a file that is not a journal, a journal of another version, and a journal that was made of shards."""
    if read_pragma(db, "application_id") != APPLICATION_ID:
        raise EngineError(f"{path} is a database, but not a journal of hermes-gateway; name another file")
    version = read_pragma(db, "user_version")
    if version != VERSION:
        error = EngineTooNew if version > VERSION else EngineError
        raise error(
            f"{path} has version {version}, this hermes-gateway knows {VERSION}: "
            "install the version that wrote it, or restore another backup"
        )
    if get_last_seq(db) >= SHARD_SIZE:
        raise make_shards_error(str(path))


def get_last_seq(db: sqlite3.Connection) -> int:
    """Return the highest sequence that was ever used."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    return found[0] if found else 0


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a blank file, in one transaction."""
    if is_new := is_blank(db):
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise EngineError("the file system of the journal has no shared memory (a network share?); use a local disk")
    if not is_new:
        return
    db.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("COMMIT")


def read_clock(db: sqlite3.Connection) -> tuple[ClockState | None, float | None]:
    """Read the saved state of the clock, and the time of the newest record; None for a missing value."""
    rows = db.execute(
        "SELECT name, value FROM counter WHERE name >= ? AND name < ?", (CLOCK_PREFIX, CLOCK_PREFIX + "~")
    )
    kept = {name.removeprefix(CLOCK_PREFIX): value for name, value in rows}
    newest = db.execute("SELECT ts FROM log ORDER BY seq DESC LIMIT 1").fetchone()
    state = None
    with suppress(msgspec.ValidationError):
        state = msgspec.convert(kept, ClockState)
    return state, newest[0] if newest else None


def write_clock(db: sqlite3.Connection, state: ClockState) -> None:
    db.executemany(
        "INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [(CLOCK_PREFIX + name, value) for name, value in msgspec.structs.asdict(state).items()],
    )

"""The log itself: append, last, read, purge, and the expiry of records.

An expired record is invisible to every query. The writer removes expired records first in each transaction, but only a
limited number; therefore every query filters out expired records as well.
"""

import math
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import merge
from itertools import chain, islice, takewhile
from typing import Any, TypeAlias
from zlib import crc32

import msgspec

from gateway.engine.interface import NewRecord, Record, SettledRecords
from gateway.engine.sqlite import subject_index
from gateway.engine.sqlite.subject_memory import MAX_SEQ, SubjectMemory
from gateway.engine.subjects import SubjectMatcher, check_new_records, compile_patterns, get_literal_prefix
from gateway.errors import Conflict, Duplicate, RecordDamage


class Transaction(msgspec.Struct):
    """Operations of many callers, committed together or not at all.

    An operation puts its changes to memory into `committed` and never makes them at once: the transaction may still be
    rolled back, and the operation repeated in another transaction.
    """

    db: sqlite3.Connection
    wall: float
    steady: float
    known: SubjectMemory = msgspec.field(default_factory=SubjectMemory)
    appended: list[Record] = msgspec.field(default_factory=list)
    removed: list[int] = msgspec.field(default_factory=list)
    # The wall-clock time at which each appended record expires.
    expiries: dict[int, float] = msgspec.field(default_factory=dict)
    # Consumers by name: with a removed record; with something to fetch; how far each has read, and whether this is the
    # end of the log; and with a depth that a caller wants.
    consumers_to_recount: set[str] = msgspec.field(default_factory=set)
    consumers_to_wake: set[str] = msgspec.field(default_factory=set)
    positions: dict[str, tuple[int, bool]] = msgspec.field(default_factory=dict)
    depths_wanted: set[str] = msgspec.field(default_factory=set)
    # Changes to memory after the commit. Measured depths replace calculated depths, and so come last.
    committed: list[Callable[[], object]] = msgspec.field(default_factory=list)
    measured: list[Callable[[], None]] = msgspec.field(default_factory=list)


Row: TypeAlias = tuple[int, str, bytes, float, int | None]

# Below RARE_LIMIT index entries under a pattern's prefix, sorting the entries is cheaper than a walk through the log.
# With at most MAX_FOLLOWED subjects, a query for each subject is cheaper.
RARE_LIMIT = 5000
MAX_FOLLOWED = 64
# The writer does work that no caller waits for in slices of SLICE_SECONDS, each in a transaction with all other
# waiting writes: a message waits for one slice at most.
SLICE_SECONDS = 0.01
SLICE_RECORDS = 500
MOST_INSERTED = 16  # records in one statement
INSERT = "INSERT INTO log (subject, ts, msg_id, expires, data, checksum) VALUES "
VALUES = "(?, ?, ?, ?, ?, ?)"
FEWEST_REMOVED = 5  # a removal of fewer records moves no other records together
REACH = 100  # a removal also moves records up to this far before the removed records
MOST_MOVED = 4000  # bytes of a record that is moved
SLICE_ROWS = 5000  # rows of a scan without a match


def append(tx: Transaction, puts: Sequence[NewRecord], settled: Sequence[SettledRecords] = ()) -> list[int]:
    """Append records.

    Every check comes before the first write, so a refused append has changed nothing for its batch.
    """
    over = _find_hindrances(tx, puts)
    while over:
        _, reached = remove(tx, over)  # all of them, even if this takes long: the append needs their ids
        over = [] if reached is None else over[over.index(reached) + 1 :]
    for done in settled:
        _settle(tx, done)
    groups = (puts[at : at + MOST_INSERTED] for at in range(0, len(puts), MOST_INSERTED))
    return [seq for group in groups for seq in _insert(tx, group)]


def _settle(tx: Transaction, done: SettledRecords) -> None:
    """Set the expiry of records. A record that has an expiry was settled before, like all records before it."""
    upto, known = min(done.upto, MAX_SEQ), tx.known.open.get(done.subject)
    if known is None:
        query = "SELECT seq, expires FROM log WHERE subject = ? AND seq <= ? ORDER BY seq DESC"
        rows = tx.db.execute(query, (done.subject, upto))
        seqs = [seq for seq, _ in takewhile(lambda row: row[1] is None, rows)]
    else:
        seqs = [seq for seq in known if seq <= upto]
    if seqs:
        tx.db.executemany("UPDATE log SET expires = ? WHERE seq = ?", [(tx.wall + done.ttl, seq) for seq in seqs])
        tx.expiries.update(dict.fromkeys(seqs, tx.wall + done.ttl))
    tx.known.note_settled(done.subject, upto)


def _find_hindrances(tx: Transaction, puts: Sequence[NewRecord]) -> list[int]:
    """Raise the error of a refused append, or list the expired records that still have its message ids."""
    over: list[int] = []
    ids: set[str] = set()
    check_new_records(puts)
    for put in puts:
        if put.msg_id is not None:
            if put.msg_id in ids:
                raise Duplicate(f"{put.msg_id!r} is twice in one append")
            ids.add(put.msg_id)
            over += _find_msg_id(tx, put.msg_id)
    for put in puts:
        if put.expect is not None and put.expect != (last := _find_last_seq(tx, put.subject)):
            raise Conflict(f"{put.subject}: the last sequence is {last}, not {put.expect}")
    return over


def _find_last_seq(tx: Transaction, subject: str) -> int:
    return tx.known.last.get(subject) or read_last_seq(tx.db, subject, tx.wall)


def _find_msg_id(tx: Transaction, msg_id: str) -> list[int]:
    found = tx.db.execute("SELECT seq, expires FROM log WHERE msg_id = ?", (msg_id,)).fetchone()
    if found is None:
        return []
    seq, expires = found
    if expires is None or expires > tx.wall:
        raise Duplicate(f"{msg_id!r} is in the journal already, at {seq}")
    return [seq]


def _insert(tx: Transaction, puts: Sequence[NewRecord]) -> list[int]:
    """Write records by one statement: each statement lets the other threads run, and waits for its turn again."""
    values: list[Any] = []
    for put in puts:
        expires = None if put.ttl is None else tx.wall + put.ttl
        values += (put.subject, tx.wall, put.msg_id, expires, put.data, checksum_of(put.subject, put.data))
        if put.subject not in tx.known.indexed:
            subject_index.add_subject(tx.db, put.subject)
    last = tx.db.execute(INSERT + ", ".join([VALUES] * len(puts)), values).lastrowid
    assert last is not None
    appended = [Record(seq, put.subject, put.data, tx.wall) for seq, put in enumerate(puts, last - len(puts) + 1)]
    limited = ((one.seq, put.ttl) for one, put in zip(appended, puts, strict=True) if put.ttl is not None)
    tx.expiries.update({seq: tx.wall + ttl for seq, ttl in limited})
    tx.appended += appended
    tx.known.note_appended(appended, tx.expiries)
    return [one.seq for one in appended]


def checksum_of(subject: str, data: bytes) -> int:
    """Return the checksum that shows whether the disk has changed a record."""
    return crc32(data, crc32(subject.encode()))


def to_record(row: Row) -> Record:
    """Make a record of a row and verify its checksum; a record of an older version has no checksum.

    Raises:
        RecordDamage: the checksum is wrong.
    """
    seq, subject, data, ts, checksum = row
    if checksum is not None and checksum != checksum_of(subject, data):
        raise RecordDamage(seq, subject)
    return Record(seq, subject, data, ts)


def read_last(db: sqlite3.Connection, subject: str, wall: float) -> Record | None:
    found = db.execute(
        "SELECT seq, subject, data, ts, checksum FROM log WHERE subject = ? AND (expires IS NULL OR expires > ?)"
        " ORDER BY seq DESC LIMIT 1",
        (subject, wall),
    ).fetchone()
    return to_record(found) if found else None


def read_last_seq(db: sqlite3.Connection, subject: str, wall: float) -> int:
    found = db.execute(
        "SELECT seq FROM log WHERE subject = ? AND (expires IS NULL OR expires > ?) ORDER BY seq DESC LIMIT 1",
        (subject, wall),
    ).fetchone()
    return found[0] if found else 0


def read(db: sqlite3.Connection, pattern: str, after: int, limit: int, wall: float) -> list[Record]:
    """Return up to `limit` records behind `after` that match.

    Raises:
        RecordDamage: one of these records is damaged.
    """
    found: list[Record] = []
    seqs = _find_seqs(db, pattern, after) or _walk(db, pattern, after)
    try:
        while len(found) < limit and (seq := next(seqs, None)) is not None:
            if record := read_record(db, seq, wall):
                found.append(record)
    except RecordDamage as damage:
        damage.before = found
        raise
    finally:
        del seqs  # an error keeps this frame, and an open query would hide all later writes
    return found


def list_seqs(db: sqlite3.Connection, patterns: Sequence[str], after: int, upto: int) -> list[int]:
    """List the sequences that match any pattern, unordered, including some that may have expired."""
    found = chain.from_iterable(_find_seqs(db, one, after) or _walk(db, one, after) for one in patterns)
    return [seq for seq in found if seq <= upto]


def read_record(db: sqlite3.Connection, seq: int, wall: float) -> Record | None:
    row = read_rows(db, (seq,), wall).get(seq)
    return to_record(row) if row else None


def read_rows(db: sqlite3.Connection, seqs: Collection[int], wall: float) -> dict[int, Row]:
    """Read the rows that have not expired, by sequence: with one query if the sequences are close together."""
    if not seqs:
        return {}
    first, last = min(seqs), max(seqs)
    spans = [(first, last)] if last - first < 2 * len(seqs) else [(seq, seq) for seq in seqs]
    query = "SELECT seq, subject, data, ts, checksum FROM log WHERE seq BETWEEN ? AND ?"
    query += " AND (expires IS NULL OR expires > ?)"
    return {row[0]: row for span in spans for row in db.execute(query, (*span, wall)).fetchall()}


def _find_seqs(db: sqlite3.Connection, pattern: str, after: int) -> Iterator[int] | None:
    """Find the matching sequences, in order; None if only a walk through the log can find them."""
    prefix = get_literal_prefix(pattern)
    if prefix == pattern:
        return _follow(db, pattern, after)
    if (subjects := subject_index.find_subjects(db, pattern)) is not None:
        return merge(*(_follow(db, subject, after) for subject in subjects))
    if not prefix:
        return None
    matches = compile_patterns([pattern])
    first, end = _subject_range_of(prefix)
    if _is_rare(db, first, end):
        rows = db.execute("SELECT seq, subject FROM log WHERE subject >= ? AND subject < ?", (first, end))
        return iter(sorted(seq for seq, subject in rows if seq > after and matches(subject)))
    few = list(islice(subject_index.list_subjects(db, first, end), MAX_FOLLOWED + 1))
    if len(few) > MAX_FOLLOWED:
        return None
    return merge(*(_follow(db, subject, after) for subject in few if matches(subject)))


def _follow(db: sqlite3.Connection, subject: str, after: int) -> Iterator[int]:
    query = "SELECT seq FROM log WHERE subject = ? AND seq > ? ORDER BY seq"
    return (seq for (seq,) in db.execute(query, (subject, after)))


def _walk(db: sqlite3.Connection, pattern: str, after: int) -> Iterator[int]:
    matches = compile_patterns([pattern])
    rows = db.execute("SELECT seq, subject FROM log WHERE seq > ? ORDER BY seq", (after,))
    return (seq for seq, subject in rows if matches(subject))


def _subject_range_of(prefix: str) -> tuple[str, str]:
    """Return the bounds of all subjects with this prefix, which ends with a dot; '/' is the character after the dot."""
    return prefix, prefix[:-1] + "/"


def _is_rare(db: sqlite3.Connection, first: str, end: str) -> bool:
    query = "SELECT count(*) FROM (SELECT 1 FROM log WHERE subject >= ? AND subject < ? LIMIT ?)"
    return bool(db.execute(query, (first, end, RARE_LIMIT)).fetchone()[0] < RARE_LIMIT)


def purge(tx: Transaction, pattern: str, after: int, upto: int) -> tuple[int, int | None]:
    """Remove one slice of the oldest matches; return how many were alive, and the last sequence if more may follow."""
    seqs = _find_seqs(tx.db, pattern, after)
    if seqs is not None:
        found = list(islice(takewhile(lambda seq: seq <= upto, seqs), SLICE_RECORDS))
        seen = found[-1] if len(found) == SLICE_RECORDS else None
    else:
        matches = compile_patterns([pattern])
        passed, last, is_end = scan(tx.db, after, matches, SLICE_RECORDS, SLICE_ROWS)
        found = [seq for seq in passed if seq <= upto]
        seen = None if is_end or last >= upto else last
    alive, reached = remove(tx, found)
    return alive, seen if reached is None else reached


def expire(tx: Transaction) -> None:
    """Remove one slice of expired records."""
    query = "SELECT seq FROM log WHERE expires <= ? ORDER BY expires LIMIT ?"
    remove(tx, [seq for (seq,) in tx.db.execute(query, (tx.wall, SLICE_RECORDS))])


def read_next_expiry(db: sqlite3.Connection) -> float:
    """Return when the next record expires; infinity if no record does."""
    (first,) = db.execute("SELECT min(expires) FROM log WHERE expires IS NOT NULL").fetchone()
    return math.inf if first is None else float(first)


def remove(tx: Transaction, seqs: Sequence[int]) -> tuple[int, int | None]:
    """Remove one slice of records; return how many were alive, and the last removed sequence if any are left."""
    until, alive, subjects, reached = time.monotonic() + SLICE_SECONDS, 0, set[str](), None
    before = len(tx.removed)
    for seq in seqs:
        for subject, expires in tx.db.execute("SELECT subject, expires FROM log WHERE seq = ?", (seq,)).fetchall():
            subjects.add(subject)
            alive += expires is None or expires > tx.wall
        tx.consumers_to_recount.update(
            name for (name,) in tx.db.execute("SELECT consumer FROM pending WHERE seq = ?", (seq,))
        )
        tx.db.execute("DELETE FROM pending WHERE seq = ?", (seq,))
        tx.db.execute("DELETE FROM log WHERE seq = ?", (seq,))
        tx.removed.append(seq)
        if time.monotonic() > until and seq != seqs[-1]:
            reached = seq
            break
    _merge_rows(tx, tx.removed[before:])
    subject_index.remove_unused(tx.db, subjects)
    tx.known.forget(subjects)
    return alive, reached


def _merge_rows(tx: Transaction, removed: Sequence[int]) -> None:
    """Delete and insert the small records around the removed records again, if they are few, to pack their pages.

    Otherwise a page that is a third full stays so, and the records left of a busy day take three times their space for
    ever.
    """
    if len(removed) < FEWEST_REMOVED:
        return
    most = len(removed) + REACH
    rows = tx.db.execute(
        "SELECT * FROM log WHERE seq BETWEEN ? AND ? AND length(data) < ? LIMIT ?",
        (min(removed) - REACH, max(removed), MOST_MOVED, most),
    ).fetchall()
    if 0 < len(rows) < most:
        tx.db.executemany("DELETE FROM log WHERE seq = ?", [row[:1] for row in rows])
        tx.db.executemany(f"INSERT INTO log VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608 - signs alone


def scan(
    db: sqlite3.Connection, after: int, matches: SubjectMatcher, wanted: int, limit: int
) -> tuple[list[int], int, bool]:
    """Scan at most `limit` rows; return the matching sequences, the last sequence, and True at the end of the log."""
    found: list[int] = []
    seen = after
    rows = db.execute("SELECT seq, subject FROM log WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
    for count, (seen, subject) in enumerate(rows, start=1):
        if matches(subject):
            found.append(seen)
        if len(found) == wanted or count == limit:
            rows.close()
            return found, seen, False
    return found, seen, True

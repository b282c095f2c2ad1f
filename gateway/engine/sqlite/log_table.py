"""The log itself: append, last, read, purge, and the end of a record's time.

A record whose time is over is gone for every question. The writer removes such records before it does anything else,
but at most so many at once; therefore every question leaves them out besides.
"""

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from gateway.engine.interface import NewRecord, Record
from gateway.engine.subjects import SubjectMatcher, check_new_record, compile_patterns, get_literal_prefix
from gateway.errors import Conflict, Duplicate


@dataclass(slots=True)
class Transaction:
    """Operations of many callers, committed together or not at all.

    What an operation remembers outside of the database it changes in `committed`, never at once: the transaction may
    still be rolled back, and the operation be tried again in another.
    """

    db: sqlite3.Connection
    wall: float
    steady: float
    appended: list[Record] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    # When, by the wall clock, the time of each of the appended is over.
    expiries: dict[int, float] = field(default_factory=dict)
    # Consumers: those that something was taken from, those that may have something to fetch, how far they have come
    # by now and whether that is the end of the log, those whose depth is asked for.
    consumers_to_recount: set[str] = field(default_factory=set)
    consumers_to_wake: set[str] = field(default_factory=set)
    positions: dict[str, tuple[int, bool]] = field(default_factory=dict)
    depths_wanted: set[str] = field(default_factory=set)
    # What to remember once the commit stands; what was measured replaces what was reckoned, and so comes last.
    committed: list[Callable[[], object]] = field(default_factory=list)
    measured: list[Callable[[], None]] = field(default_factory=list)


# Below this many index entries under a pattern's prefix it is cheaper to sort them than to walk the log in order.
RARE_LIMIT = 5000


def append(tx: Transaction, puts: Sequence[NewRecord]) -> list[int]:
    """Every check comes before the first write: so a refusal leaves nothing behind for the neighbours in the batch."""
    if over := _check_new_records(tx, puts):
        remove(tx, over)
    return [_insert(tx, put) for put in puts]


def _check_new_records(tx: Transaction, puts: Sequence[NewRecord]) -> list[int]:
    """Refuse, or tell which records whose time is over still occupy a message id."""
    over: list[int] = []
    ids: set[str] = set()
    for put in puts:
        check_new_record(put)
        if put.msg_id is not None:
            if put.msg_id in ids:
                raise Duplicate(f"{put.msg_id!r} stands twice in one append")
            ids.add(put.msg_id)
            over += _find_msg_id(tx, put.msg_id)
    for put in puts:
        if put.expect is not None and put.expect != (last := read_last_seq(tx.db, put.subject, tx.wall)):
            raise Conflict(f"{put.subject}: the last sequence is {last}, not {put.expect}")
    return over


def _find_msg_id(tx: Transaction, msg_id: str) -> list[int]:
    found = tx.db.execute("SELECT seq, expires FROM log WHERE msg_id = ?", (msg_id,)).fetchone()
    if found is None:
        return []
    seq, expires = found
    if expires is None or expires > tx.wall:
        raise Duplicate(f"{msg_id!r} is in the journal already, at {seq}")
    return [seq]


def _insert(tx: Transaction, put: NewRecord) -> int:
    expires = None if put.ttl is None else tx.wall + put.ttl
    seq = tx.db.execute(
        "INSERT INTO log (subject, ts, msg_id, expires, data) VALUES (?, ?, ?, ?, ?)",
        (put.subject, tx.wall, put.msg_id, expires, put.data),
    ).lastrowid
    assert seq is not None
    if expires is not None:
        tx.expiries[seq] = expires
    tx.appended.append(Record(seq, put.subject, put.data, tx.wall))
    return seq


def read_last(db: sqlite3.Connection, subject: str, wall: float) -> Record | None:
    found = db.execute(
        "SELECT seq, subject, data, ts FROM log WHERE subject = ? AND (expires IS NULL OR expires > ?)"
        " ORDER BY seq DESC LIMIT 1",
        (subject, wall),
    ).fetchone()
    return Record(*found) if found else None


def read_last_seq(db: sqlite3.Connection, subject: str, wall: float) -> int:
    found = db.execute(
        "SELECT seq FROM log WHERE subject = ? AND (expires IS NULL OR expires > ?) ORDER BY seq DESC LIMIT 1",
        (subject, wall),
    ).fetchone()
    return found[0] if found else 0


def read(db: sqlite3.Connection, pattern: str, after: int, limit: int, wall: float) -> list[Record]:
    records = (read_record(db, seq, wall) for seq in _find_seqs(db, pattern, after))
    return list(islice((record for record in records if record is not None), max(0, limit)))


def read_record(db: sqlite3.Connection, seq: int, wall: float) -> Record | None:
    found = db.execute(
        "SELECT seq, subject, data, ts FROM log WHERE seq = ? AND (expires IS NULL OR expires > ?)", (seq, wall)
    ).fetchone()
    return Record(*found) if found else None


def _find_seqs(db: sqlite3.Connection, pattern: str, after: int) -> Iterator[int]:
    """Finds the sequences of what matches, in order; dense patterns by walking the log, rare ones by the index."""
    prefix = get_literal_prefix(pattern)
    if prefix == pattern:
        query = "SELECT seq FROM log WHERE subject = ? AND seq > ? ORDER BY seq"
        return (seq for (seq,) in db.execute(query, (pattern, after)))
    matches = compile_patterns([pattern])
    if prefix and _is_rare(db, prefix):
        query = "SELECT seq, subject FROM log WHERE subject >= ? AND subject < ? AND seq > ?"
        rows = db.execute(query, (*_subject_range_of(prefix), after))
        return iter(sorted(seq for seq, subject in rows if matches(subject)))
    rows = db.execute("SELECT seq, subject FROM log WHERE seq > ? ORDER BY seq", (after,))
    return (seq for seq, subject in rows if matches(subject))


def _subject_range_of(prefix: str) -> tuple[str, str]:
    """Returns the bounds of all subjects with this prefix: it ends with a dot, and '/' is the next character."""
    return prefix, prefix[:-1] + "/"


def _is_rare(db: sqlite3.Connection, prefix: str) -> bool:
    query = "SELECT count(*) FROM (SELECT 1 FROM log WHERE subject >= ? AND subject < ? LIMIT ?)"
    return bool(db.execute(query, (*_subject_range_of(prefix), RARE_LIMIT)).fetchone()[0] < RARE_LIMIT)


def purge(tx: Transaction, pattern: str, after: int, upto: int, limit: int) -> tuple[int, int | None]:
    """Remove the oldest of what matches: how many were alive, and behind which sequence there may be more."""
    found = list(islice(takewhile(lambda seq: seq <= upto, _find_seqs(tx.db, pattern, after)), limit))
    alive = sum(read_record(tx.db, seq, tx.wall) is not None for seq in found)
    remove(tx, found)
    return alive, found[-1] if len(found) == limit else None


def expire(tx: Transaction, limit: int) -> None:
    """Remove records whose time is over."""
    query = "SELECT seq FROM log WHERE expires <= ? ORDER BY expires LIMIT ?"
    remove(tx, [seq for (seq,) in tx.db.execute(query, (tx.wall, limit))])


def read_next_expiry(db: sqlite3.Connection) -> float:
    """Returns when the time of the next record is over; infinity where none ends."""
    (first,) = db.execute("SELECT min(expires) FROM log WHERE expires IS NOT NULL").fetchone()
    return math.inf if first is None else float(first)


def remove(tx: Transaction, seqs: Iterable[int]) -> None:
    for seq in seqs:
        tx.consumers_to_recount.update(
            name for (name,) in tx.db.execute("SELECT consumer FROM pending WHERE seq = ?", (seq,))
        )
        tx.db.execute("DELETE FROM pending WHERE seq = ?", (seq,))
        tx.db.execute("DELETE FROM log WHERE seq = ?", (seq,))
        tx.removed.append(seq)


def scan(
    db: sqlite3.Connection, after: int, matches: SubjectMatcher, wanted: int, limit: int
) -> tuple[list[int], int, bool]:
    """Look for what matches through at most `limit` rows: what it is, the last row seen, whether that was the end."""
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

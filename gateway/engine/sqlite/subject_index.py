"""Which subjects end alike, so that what belongs to one conversation is found without a walk through the journal.

A pattern with a wildcard in the middle and a name at its end (`gw.out.*.*.<conv>`) has no range in the index of
subjects. `ending` has each subject of four segments and more under its last one, once, however many records stand on
it; shorter ones are left out, since what they could be asked for by their end is asked for by name.

A journal of an older version has the records and not the rows. They are added in slices, subject by subject in their
order, by the writer in its pauses; `building` says up to which it has come. Until then a pattern is answered as before
there was this index.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator

from gateway.engine.subjects import matches

MIN_SEGMENTS = 4
NEXT_SUBJECT = "SELECT subject FROM log WHERE subject > ? ORDER BY subject LIMIT 1"


def add_subject(db: sqlite3.Connection, subject: str) -> None:
    if subject.count(".") >= MIN_SEGMENTS - 1:
        db.execute("INSERT OR IGNORE INTO ending (ending, subject) VALUES (?, ?)", (_ending_of(subject), subject))


def remove_unused(db: sqlite3.Connection, subjects: Iterable[str]) -> None:
    """Of these, those on which no record is left."""
    for subject in subjects:
        is_used = db.execute("SELECT 1 FROM log WHERE subject = ? LIMIT 1", (subject,)).fetchone()
        if subject.count(".") >= MIN_SEGMENTS - 1 and not is_used:
            db.execute("DELETE FROM ending WHERE ending = ? AND subject = ?", (_ending_of(subject), subject))


def find_subjects(db: sqlite3.Connection, pattern: str) -> list[str] | None:
    """The subjects that a pattern matches; None where the index does not know."""
    ending = _ending_of(pattern)
    if ending in ("*", ">") or pattern.count(".") < MIN_SEGMENTS - 1 or read_progress(db) is not None:
        return None
    rows = db.execute("SELECT subject FROM ending WHERE ending = ?", (ending,))
    return [subject for (subject,) in rows if matches(pattern, subject)]


def list_subjects(db: sqlite3.Connection, first: str, end: str) -> Iterator[str]:
    """The subjects from `first` up to `end`, each once: a look into the index for each, none for each record."""
    row = db.execute("SELECT subject FROM log WHERE subject >= ? ORDER BY subject LIMIT 1", (first,)).fetchone()
    while row is not None and row[0] < end:
        yield row[0]
        row = db.execute(NEXT_SUBJECT, row).fetchone()


def read_progress(db: sqlite3.Connection) -> int | None:
    """How many subjects of an older journal are in the index by now; None when it is whole."""
    row = db.execute("SELECT done FROM building WHERE name = 'ending'").fetchone()
    return None if row is None else int(row[0])


def build_piece(db: sqlite3.Connection, seconds: float) -> bool:
    """Add subjects for about so long; true where there are more."""
    reached, done = db.execute("SELECT reached, done FROM building WHERE name = 'ending'").fetchone()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        row = db.execute(NEXT_SUBJECT, (reached,)).fetchone()
        if row is None:
            db.execute("DELETE FROM building WHERE name = 'ending'")
            return False
        reached, done = row[0], done + 1
        add_subject(db, reached)
    db.execute("UPDATE building SET reached = ?, done = ? WHERE name = 'ending'", (reached, done))
    return True


def _ending_of(subject: str) -> str:
    return subject.rpartition(".")[2]

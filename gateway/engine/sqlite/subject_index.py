"""An index of subjects by their ends, to find the records of a conversation without a walk through the journal.

A pattern with a wildcard in the middle and a name at its end (`gw.out.*.*.<conv>`) has no range in the index of
subjects. `ending` holds each subject of four or more segments under its last segment, once, however many records it
has. Shorter subjects are left out: their readers know the whole name.

A journal of an older version has the records but no rows in `ending`. The writer adds the rows in slices during its
pauses, subject by subject in order; the table `building` holds the last added subject. Until all rows are added,
patterns are answered without this index.
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
    """Remove the subjects that have no record left."""
    for subject in subjects:
        is_used = db.execute("SELECT 1 FROM log WHERE subject = ? LIMIT 1", (subject,)).fetchone()
        if subject.count(".") >= MIN_SEGMENTS - 1 and not is_used:
            db.execute("DELETE FROM ending WHERE ending = ? AND subject = ?", (_ending_of(subject), subject))


def find_subjects(db: sqlite3.Connection, pattern: str) -> list[str] | None:
    """Return the subjects that match a pattern; None if the index cannot answer."""
    ending = _ending_of(pattern)
    if ending in ("*", ">") or pattern.count(".") < MIN_SEGMENTS - 1 or read_progress(db) is not None:
        return None
    rows = db.execute("SELECT subject FROM ending WHERE ending = ?", (ending,))
    return [subject for (subject,) in rows if matches(pattern, subject)]


def list_subjects(db: sqlite3.Connection, first: str, end: str) -> Iterator[str]:
    """List the subjects from `first` up to `end`, each once, with one index look-up for each subject."""
    row = db.execute("SELECT subject FROM log WHERE subject >= ? ORDER BY subject LIMIT 1", (first,)).fetchone()
    while row is not None and row[0] < end:
        yield row[0]
        row = db.execute(NEXT_SUBJECT, row).fetchone()


def read_progress(db: sqlite3.Connection) -> int | None:
    """Count the subjects of an older journal that are indexed so far; None when the index is complete."""
    row = db.execute("SELECT done FROM building WHERE name = 'ending'").fetchone()
    return None if row is None else int(row[0])


def build_piece(db: sqlite3.Connection, seconds: float) -> bool:
    """Index more subjects for about `seconds`; return True if subjects are left."""
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

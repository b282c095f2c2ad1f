"""An index of subjects by their ends, to find the records of a conversation without a walk through the journal.

A pattern with a wildcard in the middle and a name at its end (`gw.out.*.*.<conv>`) has no range in the index of
subjects. `ending` holds each subject of four or more segments under its last segment, once, however many records it
has. Shorter subjects are left out: their readers know the whole name.
"""

import sqlite3
from collections.abc import Iterable, Iterator

from gateway.engine.subjects import matches

MIN_SEGMENTS = 4


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
    if ending in ("*", ">") or pattern.count(".") < MIN_SEGMENTS - 1:
        return None
    rows = db.execute("SELECT subject FROM ending WHERE ending = ?", (ending,))
    return [subject for (subject,) in rows if matches(pattern, subject)]


def list_subjects(db: sqlite3.Connection, first: str, end: str) -> Iterator[str]:
    """List the subjects from `first` up to `end`, each once, with one index look-up for each subject."""
    row = db.execute("SELECT subject FROM log WHERE subject >= ? ORDER BY subject LIMIT 1", (first,)).fetchone()
    while row is not None and row[0] < end:
        yield row[0]
        row = db.execute("SELECT subject FROM log WHERE subject > ? ORDER BY subject LIMIT 1", row).fetchone()


def _ending_of(subject: str) -> str:
    return subject.rpartition(".")[2]

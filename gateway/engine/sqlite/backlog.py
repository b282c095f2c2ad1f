"""What is owed to the durable consumers: who has come how far, and what was handed out but not acknowledged.

A consumer's floor is written down when it takes something. Between two takings the log grows by records that do not
concern it; to look through those again at each taking would make a rare event dear. Therefore each `ConsumerPosition`
also knows, in memory alone, how far the consumer is known to owe nothing (`reached`): a consumer at the end of the log
is moved along with every append that does not match it. After a crash the floor is a little behind that, which costs
one look.

An attempt is counted in the same transaction that hands the record out, and the record is handed out after the
commit. So a process that dies of a record has had that attempt counted.

Everything here runs on the writer's thread.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from gateway.engine.interface import ConsumerSpec
from gateway.engine.sqlite import log_table
from gateway.engine.sqlite.log_table import Row, Transaction
from gateway.engine.subjects import SubjectMatcher, compile_patterns
from gateway.errors import EngineError

SCAN_LIMIT = 2000
MAX_CACHED_SUBJECTS = 4096


@dataclass(slots=True)
class ConsumerPosition:
    """Where a consumer stands. `depth` is what it has before it, None where that must be counted anew."""

    name: str
    patterns: tuple[str, ...]
    reached: int
    matches: SubjectMatcher = field(init=False)
    is_at_end: bool = False
    depth: int | None = None

    def __post_init__(self) -> None:
        self.matches = compile_patterns(self.patterns)

    def add(self, count: int) -> None:
        if self.depth is not None:
            self.depth += count

    def measure(self, depth: int) -> None:
        self.depth = depth


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """What a consumer got: rows with the number of the attempt; when something falls due; what else to know."""

    rows: list[tuple[Row, int]]
    due: float | None
    is_full: bool
    has_more: bool


class Backlog:
    """The consumers, by name."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.places: dict[str, ConsumerPosition] = {}
        self._concerned: dict[str, tuple[ConsumerPosition, ...]] = {}
        for name, patterns, floor in db.execute("SELECT name, patterns, floor FROM consumer"):
            self.places[name] = ConsumerPosition(name, tuple(json.loads(patterns)), floor)

    def enter(self, tx: Transaction, spec: ConsumerSpec) -> None:
        """Make a consumer, or give it other patterns: they hold from the oldest record that still waits."""
        row = tx.db.execute("SELECT patterns, floor FROM consumer WHERE name = ?", (spec.name,)).fetchone()
        patterns = json.dumps(spec.patterns)
        if row is not None and row[0] == patterns:
            return
        if row is not None:
            floor = (
                _find_first_waiting(tx.db, compile_patterns(json.loads(row[0])), self._reached(tx, spec.name, row[1]))
                - 1
            )
        else:
            floor = _get_last_seq(tx.db) if spec.new_only else 0
        tx.db.execute(
            "INSERT INTO consumer (name, patterns, floor) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns, floor = excluded.floor",
            (spec.name, patterns, floor),
        )
        tx.places[spec.name] = (floor, False)
        tx.consumers_to_wake.add(spec.name)
        tx.committed.append(lambda: self._put(spec.name, ConsumerPosition(spec.name, spec.patterns, floor)))

    def forget(self, tx: Transaction, name: str) -> None:
        tx.db.execute("DELETE FROM pending WHERE consumer = ?", (name,))
        tx.db.execute("DELETE FROM consumer WHERE name = ?", (name,))
        tx.places.pop(name, None)
        tx.consumers_to_wake.add(name)
        tx.committed.append(lambda: self._put(name, None))

    def take(self, tx: Transaction, spec: ConsumerSpec, n: int) -> FetchedBatch:
        """At most n rows: first those that are due again, then new ones."""
        found = tx.db.execute(
            "SELECT (SELECT count(*) FROM pending WHERE consumer = name) FROM consumer WHERE name = ?", (spec.name,)
        ).fetchone()
        if found is None:
            raise EngineError(f"the consumer {spec.name!r} was forgotten; make it again")
        again = _take_due(tx, spec, n)
        room = spec.max_inflight - found[0]
        fresh, has_more = self._take_new(tx, spec, min(n - len(again), room))
        query = "SELECT min(due) FROM pending WHERE consumer = ? AND due > ?"
        (due,) = tx.db.execute(query, (spec.name, tx.steady)).fetchone()
        return FetchedBatch(again + fresh, due, is_full=len(fresh) >= room, has_more=has_more)

    def _take_new(self, tx: Transaction, spec: ConsumerSpec, wanted: int) -> tuple[list[tuple[Row, int]], bool]:
        """Rows never handed out, and whether one should look further."""
        place = self.places[spec.name]
        reached, is_at_end = tx.places.get(place.name, (place.reached, place.is_at_end))
        if wanted <= 0 or (is_at_end and not tx.appended):
            return [], False
        found, seen, is_at_end = log_table.scan(tx.db, reached, place.matches, wanted, SCAN_LIMIT)
        tx.places[place.name] = (seen, is_at_end)
        rows = [row for row in (log_table.read_row(tx.db, seq, tx.wall) for seq in found) if row is not None]
        if len(rows) < len(found):
            tx.consumers_to_recount.add(place.name)
        for row in rows:
            _insert_pending(tx, spec, row[0])
        if rows:
            tx.db.execute("UPDATE consumer SET floor = ? WHERE name = ?", (seen, place.name))
        return [(row, 1) for row in rows], not rows and not is_at_end

    def acknowledge(self, tx: Transaction, name: str, seq: int) -> None:
        gone = tx.db.execute("DELETE FROM pending WHERE seq = ? AND consumer = ?", (seq, name)).rowcount
        if gone:
            tx.committed.append(lambda: self._adjust_depth(name, -1))

    def postpone(self, tx: Transaction, name: str, seq: int, attempt: int, delay: float) -> None:
        """This attempt's record is due after `delay`; nothing happens where another attempt was begun."""
        tx.db.execute(
            "UPDATE pending SET due = ? WHERE seq = ? AND consumer = ? AND attempt = ?",
            (tx.steady + delay, seq, name, attempt),
        )
        tx.consumers_to_wake.add(name)

    def give_back(self, tx: Transaction, name: str, taken: Sequence[tuple[Row, int]]) -> None:
        """What was taken and never reached its taker: that was no attempt."""
        for row, attempt in taken:
            tx.db.execute(
                "UPDATE pending SET due = 0, attempt = attempt - 1 WHERE seq = ? AND consumer = ? AND attempt = ?",
                (row[0], name, attempt),
            )
        tx.consumers_to_wake.add(name)

    def write_floors(self, tx: Transaction) -> None:
        """Write down how far the consumers are known to have come."""
        for place in self.places.values():
            query = "UPDATE consumer SET floor = ? WHERE name = ? AND floor < ?"
            tx.db.execute(query, (place.reached, place.name, place.reached))

    def count(self, tx: Transaction) -> None:
        """Before the commit, when all else is done: the depths that were asked for."""
        for name in tx.counted & self.places.keys():
            place = self.places[name]
            (out,) = tx.db.execute("SELECT count(*) FROM pending WHERE consumer = ?", (name,)).fetchone()
            rows = tx.db.execute(
                "SELECT subject FROM log WHERE seq > ? AND (expires IS NULL OR expires > ?)",
                (self._reached(tx, name, place.reached), tx.wall),
            )
            depth = int(out) + sum(place.matches(subject) for (subject,) in rows)
            tx.measured.append(partial(place.measure, depth))

    def settle(self, tx: Transaction) -> None:
        """The transaction stands: remember what follows from it."""
        for act in tx.committed:
            act()
        for name, (reached, is_at_end) in tx.places.items():
            self.places[name].reached, self.places[name].is_at_end = reached, is_at_end
        if tx.appended:
            self._follow(tx)
        removed = max(tx.removed, default=0)
        for place in self.places.values():
            if place.name in tx.consumers_to_recount or removed > place.reached:
                place.depth = None
        for act in tx.measured:
            act()

    def _follow(self, tx: Transaction) -> None:
        """Move along those that what was appended does not concern."""
        concerned: dict[str, int] = {}
        for seq, subject, _, _ in tx.appended:
            for place in self._find_concerned(subject):
                place.add(1)
                concerned[place.name] = seq
        tx.consumers_to_wake.update(concerned)
        end = tx.appended[-1][0]
        for place in self.places.values():
            if place.is_at_end and concerned.get(place.name, 0) > place.reached:
                place.is_at_end = False
            elif place.is_at_end:
                place.reached = end

    def _find_concerned(self, subject: str) -> tuple[ConsumerPosition, ...]:
        places = self._concerned.get(subject)
        if places is None:
            if len(self._concerned) == MAX_CACHED_SUBJECTS:
                self._concerned.clear()
            places = tuple(place for place in self.places.values() if place.matches(subject))
            self._concerned[subject] = places
        return places

    def _reached(self, tx: Transaction, name: str, floor: int) -> int:
        place = self.places.get(name)
        return tx.places[name][0] if name in tx.places else place.reached if place else floor

    def _adjust_depth(self, name: str, count: int) -> None:
        if name in self.places:
            self.places[name].add(count)

    def _put(self, name: str, place: ConsumerPosition | None) -> None:
        self._concerned.clear()
        if place is None:
            self.places.pop(name, None)
        else:
            self.places[name] = place


def _take_due(tx: Transaction, spec: ConsumerSpec, n: int) -> list[tuple[Row, int]]:
    rows = tx.db.execute(
        "SELECT log.seq, subject, data, ts, attempt FROM pending JOIN log ON log.seq = pending.seq"
        " WHERE consumer = ? AND due <= ? AND (expires IS NULL OR expires > ?) ORDER BY due, pending.seq LIMIT ?",
        (spec.name, tx.steady, tx.wall, n),
    ).fetchall()
    for row in rows:
        tx.db.execute(
            "UPDATE pending SET attempt = attempt + 1, due = ? WHERE seq = ? AND consumer = ?",
            (tx.steady + spec.ack_wait, row[0], spec.name),
        )
    return [(row[:4], row[4] + 1) for row in rows]


def _insert_pending(tx: Transaction, spec: ConsumerSpec, seq: int) -> None:
    tx.db.execute(
        "INSERT INTO pending (seq, consumer, attempt, due) VALUES (?, ?, 1, ?)",
        (seq, spec.name, tx.steady + spec.ack_wait),
    )


def _find_first_waiting(db: sqlite3.Connection, matches: SubjectMatcher, reached: int) -> int:
    """The oldest record that was never handed out, or the one that the next append will make."""
    rows = db.execute("SELECT seq, subject FROM log WHERE seq > ? ORDER BY seq", (reached,))
    return next((seq for seq, subject in rows if matches(subject)), _get_last_seq(db) + 1)


def _get_last_seq(db: sqlite3.Connection) -> int:
    """The highest sequence that there ever was."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    return found[0] if found else 0

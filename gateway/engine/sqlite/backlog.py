"""The backlog of the durable consumers: how far each consumer has read, and which deliveries are not acknowledged.

On disk a consumer is its `floor` and its rows in `pending` (see `schema`). The floor is written when the consumer takes
records. Between two such writes the log grows by records that do not match, and a scan of these records at each fetch
would make a rare event expensive. Therefore each `ConsumerPosition` also holds, in memory alone, the sequence up to
which the log was scanned for the consumer (`reached`), and whether this is the end of the log (`is_at_end`). At the end
of the log a fetch need not scan, unless its own transaction appends, and each append that does not match moves
`reached` along. After a crash the floor is a little behind, which costs one scan.

Memory changes only after the commit, in `apply_commit`. Until then the positions of a transaction are in
`tx.positions`, which takes precedence over `self.positions` within the transaction. The order in `apply_commit` is a
contract:

1. `tx.committed`: consumers are created and forgotten, acknowledgements counted;
2. `tx.positions`: how far the fetches have read; a consumer must exist before its position moves;
3. the appended records, compared with the new positions: these records raise depths, and end `is_at_end`;
4. depths that cannot be calculated (a removed record was still to be delivered) become unknown;
5. `tx.measured`: counted depths. Each count includes the whole transaction, and replaces the calculated depth.

The transaction that delivers a record also counts the attempt, and the delivery follows after the commit. So if a
record kills the process, the attempt has been counted.

Everything here runs on the writer's thread.
"""

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice, takewhile

import msgspec

from gateway.engine.interface import ConsumerSpec, Record
from gateway.engine.sqlite import log_table
from gateway.engine.sqlite.log_table import Transaction
from gateway.engine.sqlite.schema import get_last_seq
from gateway.engine.subjects import SubjectMatcher, compile_patterns
from gateway.errors import EngineError, RecordDamage

SCAN_LIMIT = 2000
MOST_IN_STATEMENT = 64  # records; each statement lets the other threads run, and waits for its turn again
MAX_CACHED_SUBJECTS = 4096


class ConsumerPosition(msgspec.Struct):
    """The position of a consumer. `depth` is the number of its pending records, None if it must be counted again."""

    name: str
    matches: SubjectMatcher
    reached: int
    is_at_end: bool = False
    depth: int | None = None

    def add(self, count: int) -> None:
        if self.depth is not None:
            self.depth += count

    def measure(self, depth: int) -> None:
        self.depth = depth


class FetchedBatch(msgspec.Struct, frozen=True):
    """The result of a fetch: records, each with the number of its attempt, and `due`, when the next redelivery is due.

    `is_full`: `max_inflight` deliveries are unacknowledged, so the next acknowledgement makes room for a waiting fetch.
    `has_more`: the scan reached its limit before it found a record, so the fetch should scan again at once.
    """

    records: list[tuple[Record, int]]
    due: float
    is_full: bool
    has_more: bool


class Backlog:
    """The consumers, by name."""

    def __init__(self, db: sqlite3.Connection, note_damage: Callable[[RecordDamage], None]) -> None:
        self._note_damage = note_damage
        self.positions: dict[str, ConsumerPosition] = {}
        self._concerned: dict[str, tuple[ConsumerPosition, ...]] = {}
        self.lent = set[str]()  # names of the consumers whose state `wakeup_consumer` keeps
        for name, patterns, floor in db.execute("SELECT name, patterns, floor FROM consumer"):
            self.positions[name] = ConsumerPosition(name, compile_patterns(json.loads(patterns)), floor)

    def add(self, tx: Transaction, spec: ConsumerSpec) -> None:
        """Create a consumer, or change its patterns: the new patterns apply from the oldest record that still waits."""
        row = tx.db.execute("SELECT patterns FROM consumer WHERE name = ?", (spec.name,)).fetchone()
        patterns = json.dumps(spec.patterns)
        if row is None:
            floor = get_last_seq(tx.db) if spec.new_only else 0
        elif row[0] == patterns:
            return
        else:
            reached, _ = self._get_position(tx, spec.name)
            floor = _find_first_waiting(tx.db, compile_patterns(json.loads(row[0])), reached) - 1
        tx.db.execute(
            "INSERT INTO consumer (name, patterns, floor) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns, floor = excluded.floor",
            (spec.name, patterns, floor),
        )
        tx.positions[spec.name] = (floor, False)
        tx.consumers_to_wake.add(spec.name)
        position = ConsumerPosition(spec.name, compile_patterns(spec.patterns), floor)
        tx.committed += [self._concerned.clear, partial(self.positions.__setitem__, spec.name, position)]

    def forget(self, tx: Transaction, name: str) -> None:
        tx.db.execute("DELETE FROM pending WHERE consumer = ?", (name,))
        tx.db.execute("DELETE FROM consumer WHERE name = ?", (name,))
        tx.positions.pop(name, None)
        tx.consumers_to_wake.add(name)
        tx.committed += [self._concerned.clear, partial(self.positions.pop, name, None)]

    def take(self, tx: Transaction, spec: ConsumerSpec, n: int) -> FetchedBatch:
        """Deliver at most n records: first the records that are due again, then new records."""
        found = tx.db.execute(
            "SELECT (SELECT count(*) FROM pending WHERE consumer = name) FROM consumer WHERE name = ?", (spec.name,)
        ).fetchone()
        if found is None:
            raise EngineError(f"the consumer {spec.name!r} was forgotten; make it again")
        again = self._take_due(tx, spec, n)
        free = spec.max_inflight - found[0]
        fresh, has_more = self._take_new(tx, spec, min(n - len(again), free))
        query = "SELECT min(due) FROM pending WHERE consumer = ? AND due > ?"
        (due,) = tx.db.execute(query, (spec.name, tx.steady)).fetchone()
        return FetchedBatch(
            again + fresh, math.inf if due is None else due, is_full=len(fresh) >= free, has_more=has_more
        )

    def _take_due(self, tx: Transaction, spec: ConsumerSpec, n: int) -> list[tuple[Record, int]]:
        rows = tx.db.execute(
            "SELECT log.seq, attempt FROM pending JOIN log ON log.seq = pending.seq"
            " WHERE consumer = ? AND due <= ? AND (expires IS NULL OR expires > ?) ORDER BY due, pending.seq LIMIT ?",
            (spec.name, tx.steady, tx.wall, n),
        ).fetchall()
        for seq, _ in rows:
            tx.db.execute(
                "UPDATE pending SET attempt = attempt + 1, due = ? WHERE seq = ? AND consumer = ?",
                (tx.steady + spec.ack_wait, seq, spec.name),
            )
        attempts = dict(rows)
        return [(record, attempts[record.seq] + 1) for record in self._read(tx, attempts)]

    def _take_new(self, tx: Transaction, spec: ConsumerSpec, wanted: int) -> tuple[list[tuple[Record, int]], bool]:
        """Deliver records for the first time; also return True if another scan may find more."""
        position = self.positions[spec.name]
        reached, is_at_end = self._get_position(tx, spec.name)
        if wanted <= 0 or (is_at_end and not tx.appended):
            return [], False
        found, seen, is_at_end = log_table.scan(tx.db, reached, position.matches, wanted, SCAN_LIMIT)
        tx.positions[position.name] = (seen, is_at_end)
        records = self._read(tx, found)
        if len(records) < len(found):
            tx.consumers_to_recount.add(position.name)
        for some in _split([record.seq for record in records]):
            values = [value for seq in some for value in (seq, spec.name, tx.steady + spec.ack_wait)]
            rows = ", ".join(["(?, ?, 1, ?)"] * len(some))
            tx.db.execute(f"INSERT INTO pending (seq, consumer, attempt, due) VALUES {rows}", values)  # noqa: S608
        if records:
            tx.db.execute("UPDATE consumer SET floor = ? WHERE name = ?", (seen, position.name))
        return [(record, 1) for record in records], not records and not is_at_end

    def _read(self, tx: Transaction, seqs: Collection[int]) -> list[Record]:
        def note(damage: RecordDamage) -> None:
            tx.committed.append(partial(self._note_damage, damage))

        return read_records(tx.db, seqs, tx.wall, note)

    def acknowledge(self, tx: Transaction, name: str, seqs: Sequence[int]) -> None:
        gone = 0
        for some in _split(seqs):
            query = f"DELETE FROM pending WHERE seq IN ({', '.join('?' * len(some))}) AND consumer = ?"  # noqa: S608
            gone += tx.db.execute(query, (*some, name)).rowcount
        if gone:
            tx.committed.append(partial(self.positions[name].add, -gone))

    def postpone(self, tx: Transaction, name: str, seq: int, attempt: int, delay: float) -> None:
        """Make the record due after `delay` seconds, unless another attempt to deliver the record has begun."""
        tx.db.execute(
            "UPDATE pending SET due = ? WHERE seq = ? AND consumer = ? AND attempt = ?",
            (tx.steady + delay, seq, name, attempt),
        )
        tx.consumers_to_wake.add(name)

    def give_back(self, tx: Transaction, name: str, taken: Sequence[tuple[Record, int]]) -> None:
        """Make records due again that never reached the caller, and do not count these attempts."""
        for record, attempt in taken:
            tx.db.execute(
                "UPDATE pending SET due = 0, attempt = attempt - 1 WHERE seq = ? AND consumer = ? AND attempt = ?",
                (record.seq, name, attempt),
            )
        tx.consumers_to_wake.add(name)

    def write_floors(self, tx: Transaction) -> None:
        """Save the `reached` of the consumers as their floors."""
        for name in self.positions.keys() - self.lent:
            reached = self.positions[name].reached
            tx.db.execute("UPDATE consumer SET floor = ? WHERE name = ? AND floor < ?", (reached, name, reached))

    def count_depths(self, tx: Transaction) -> None:
        """Count the depths that callers wait for, after all other work of the transaction."""
        for name in tx.depths_wanted & self.positions.keys():
            position = self.positions[name]
            (out,) = tx.db.execute("SELECT count(*) FROM pending WHERE consumer = ?", (name,)).fetchone()
            rows = tx.db.execute(
                "SELECT subject FROM log WHERE seq > ? AND (expires IS NULL OR expires > ?)",
                (self._get_position(tx, name)[0], tx.wall),
            )
            depth = int(out) + sum(1 for (subject,) in rows if position.matches(subject))
            tx.measured.append(partial(position.measure, depth))

    def apply_commit(self, tx: Transaction) -> None:
        """Update memory after the commit, in the order that the docstring of this module describes."""
        for act in tx.committed:
            act()
        for name, (reached, is_at_end) in tx.positions.items():
            self.positions[name].reached, self.positions[name].is_at_end = reached, is_at_end
        if tx.appended:
            self._follow(tx)
        removed = max(tx.removed, default=0)
        for position in self.positions.values():
            if position.name in tx.consumers_to_recount or removed > position.reached:
                position.depth = None
        for act in tx.measured:
            act()

    def _follow(self, tx: Transaction) -> None:
        """Raise the depths of consumers that match appended records, and move the positions of the others."""
        concerned: dict[str, int] = {}
        for record in tx.appended:
            known = self._concerned.get(record.subject)
            for position in self._find_concerned(record.subject) if known is None else known:
                if position.name in self.lent:
                    continue
                position.add(1)
                concerned[position.name] = record.seq
        tx.consumers_to_wake.update(concerned)
        end = tx.appended[-1].seq
        for position in self.positions.values():
            if position.is_at_end and concerned.get(position.name, 0) > position.reached:
                position.is_at_end = False
            elif position.is_at_end:
                position.reached = end

    def _find_concerned(self, subject: str) -> tuple[ConsumerPosition, ...]:
        if len(self._concerned) == MAX_CACHED_SUBJECTS:
            self._concerned.clear()
        found = tuple(position for position in self.positions.values() if position.matches(subject))
        self._concerned[subject] = found
        return found

    def _get_position(self, tx: Transaction, name: str) -> tuple[int, bool]:
        """Return a consumer's `reached` within this transaction, and whether it is the end of the log."""
        if name in tx.positions:
            return tx.positions[name]
        return self.positions[name].reached, self.positions[name].is_at_end


def _split(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    return (seqs[at : at + MOST_IN_STATEMENT] for at in range(0, len(seqs), MOST_IN_STATEMENT))


def list_owed(db: sqlite3.Connection, name: str, until: float, after: int, limit: int) -> list[Record]:
    """List a consumer's pending records from the disk alone, so that any thread can ask.

    The list includes expired records that are not yet removed.
    """
    row = db.execute("SELECT patterns, floor FROM consumer WHERE name = ?", (name,)).fetchone()
    if row is None:
        return []
    matches, floor = compile_patterns(json.loads(row[0])), row[1]
    query = "SELECT seq FROM pending WHERE consumer = ? AND seq > ? ORDER BY seq LIMIT ?"
    seqs = {seq for (seq,) in db.execute(query, (name, after, limit))}
    rows = db.execute("SELECT seq, subject, ts FROM log WHERE seq > ? ORDER BY seq", (max(after, floor),))
    old = takewhile(lambda found: found[2] < until, rows)
    seqs.update(islice((seq for seq, subject, _ in old if matches(subject)), limit))
    found = read_records(db, sorted(seqs)[:limit], -math.inf, lambda _damage: None)
    return [record for record in found if record.ts < until]


def read_records(
    db: sqlite3.Connection, seqs: Collection[int], wall: float, note_damage: Callable[[RecordDamage], None]
) -> list[Record]:
    """Read the records that exist; skip damaged records after a call of `note_damage`, so that they block no others."""
    found, rows = [], log_table.read_rows(db, seqs, wall)
    for row in filter(None, map(rows.get, seqs)):
        try:
            found.append(log_table.to_record(row))
        except RecordDamage as damage:
            note_damage(damage)
    return found


def _find_first_waiting(db: sqlite3.Connection, matches: SubjectMatcher, reached: int) -> int:
    """Return the sequence of the oldest record that was never delivered, or else of the next append."""
    rows = db.execute("SELECT seq, subject FROM log WHERE seq > ? ORDER BY seq", (reached,))
    return next((seq for seq, subject in rows if matches(subject)), get_last_seq(db) + 1)

"""Consumers whose deliveries only wake a worker: their fetches and acknowledgements need no transaction.

The worker reads the journal, so a superfluous delivery does no harm. Therefore the state of a wakeup consumer is in
memory, and the next append saves it, at most once a second. After a crash the consumer continues from the saved state:
some acknowledged deliveries come once more, and no delivery is missing.
"""

import math
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec

from gateway.engine.interface import ConsumerSpec, Delivery, Record
from gateway.engine.journal_clock import Clock
from gateway.engine.live_messages import LiveConsumer, LiveDelivery
from gateway.engine.record_cache import RecordCache
from gateway.engine.sqlite import log_table
from gateway.engine.sqlite.backlog import read_records
from gateway.engine.sqlite.faults import FaultState
from gateway.engine.sqlite.job_thread import JobThread
from gateway.engine.sqlite.log_table import Transaction
from gateway.engine.sqlite.schema import get_last_seq
from gateway.engine.sqlite.writer import JournalWriter
from gateway.engine.subjects import compile_patterns
from gateway.errors import EngineError

MAX_CACHED_SUBJECTS = 4096
KEEP_SECONDS = 1.0

ReadRecords: TypeAlias = Callable[[Sequence[int]], Awaitable[list[Record]]]


class ConsumerState(NamedTuple):
    """A saved state: every record up to `floor` was delivered, and the sequences in `out` are not acknowledged."""

    floor: int
    out: frozenset[int]


class OpenDelivery(msgspec.Struct, eq=False):
    """A record that a caller has and has not acknowledged."""

    record: Record
    attempt: int
    due: float


class WakeupConsumer(LiveConsumer):
    """A consumer that follows the journal from its creation; `begin` adds the records that waited before."""

    def __init__(self, spec: ConsumerSpec, read: ReadRecords, clock: Clock) -> None:
        super().__init__(spec)
        self.is_begun = self.is_forgotten = False
        self.is_changed = True  # whether the state must be saved; records of other consumers do not count
        self._read = read
        self._clock = clock
        self._reached = 0
        self._out: dict[int, OpenDelivery] = {}
        self._taking = set[int]()  # sequences that `_take_new` reads from the journal now
        self._next_due = math.inf  # no delivery is due before this time
        self.change(spec)

    def change(self, spec: ConsumerSpec) -> None:
        """Change the patterns, and drop the undelivered records; `begin` adds the records that match now."""
        self.spec, self.is_begun = spec, False
        self._new = deque[int]()  # never delivered, in order
        self.matches = compile_patterns(spec.patterns)

    def begin(self, waiting: Iterable[int], reached: int) -> None:
        """Add the `waiting` sequences, which were counted when the log ended at `reached`."""
        self._new = deque(sorted({*waiting, *self._new} - self._out.keys()))
        self._reached, self.is_begun = max(self._reached, reached), True
        self.signal.notify()

    def add(self, seqs: Sequence[int]) -> None:
        """Add appended records that match."""
        self._new.extend(seqs)
        self.is_changed = True
        self.signal.notify()

    def drop(self, gone: set[int]) -> None:
        """Drop the sequences of removed records."""
        self._new = deque(seq for seq in self._new if seq not in gone)
        for seq in gone & self._out.keys():
            del self._out[seq]

    def find_state(self, end: int) -> ConsumerState:
        """Return the state to save if the journal ends with the sequence `end`."""
        waiting = [*self._taking, *islice(self._new, 1)]
        return ConsumerState(min(waiting) - 1 if waiting else max(self._reached, end), frozenset(self._out))

    @property
    def waiting(self) -> list[int]:
        """The sequences that are not acknowledged."""
        return [*self._out, *self._taking, *self._new]

    async def take(self, n: int) -> tuple[list[Delivery], float]:
        if self.is_forgotten:
            raise EngineError(f"the consumer {self.spec.name!r} was forgotten; make it again")
        now = self._clock.steady()
        taken = self._take_due(now, n) if self._next_due <= now else []
        for record in await self._take_new(min(n - len(taken), self.spec.max_inflight - len(self._out))):
            self._out[record.seq] = one = OpenDelivery(record, 0, now)
            taken.append(one)
        for one in taken:
            one.attempt += 1
            one.due = now + self.spec.ack_wait
            self._next_due = min(self._next_due, one.due)
        return [LiveDelivery(one.record, one.attempt, self) for one in taken], self._next_due - now

    def _take_due(self, now: float, n: int) -> list[OpenDelivery]:
        due = sorted((one for one in self._out.values() if one.due <= now), key=lambda one: (one.due, one.record.seq))
        left = (one.due for one in self._out.values() if one.due > now)
        self._next_due = min(left, default=math.inf) if len(due) <= n else now
        return due[:n]

    async def _take_new(self, n: int) -> list[Record]:
        """Read new records; skip removed and damaged records."""
        seqs = [self._new.popleft() for _ in range(min(n, len(self._new)))]
        self._taking.update(seqs)
        try:
            return await self._read(seqs) if seqs else []
        except BaseException:
            self._new.extendleft(reversed(seqs))
            raise
        finally:
            self._taking.difference_update(seqs)

    async def acknowledge(self, seqs: Sequence[int]) -> None:
        was_full, self.is_changed = len(self._out) >= self.spec.max_inflight, True
        for seq in seqs:
            self._out.pop(seq, None)
        if was_full:
            self.signal.notify()

    async def postpone(self, delivery: LiveDelivery, delay: float) -> None:
        one = self._out.get(delivery.record.seq)
        if one is not None and one.attempt == delivery.attempt:
            one.due = self._clock.steady() + delay
            if one.due < self._next_due:
                self._next_due = one.due
                self.signal.notify()


class WakeupConsumers(msgspec.Struct, eq=False):
    """The wakeup consumers of one journal, by name; this class saves their states to disk."""

    _writer: JournalWriter
    _writing: JobThread[Transaction]
    _reading: JobThread[sqlite3.Connection]
    _recent: RecordCache
    _condition: FaultState
    _clock: Clock
    by_name: dict[str, WakeupConsumer] = {}
    _keep_at: float = 0.0
    _wanting: dict[str, tuple[WakeupConsumer, ...]] = {}  # by subject
    _on_disk: dict[str, frozenset[int]] = {}  # the `out` of each saved state; only the writer uses it

    async def open(self, spec: ConsumerSpec) -> WakeupConsumer:
        consumer = self.by_name.get(spec.name)
        if consumer and consumer.is_begun and consumer.spec.patterns == spec.patterns:
            consumer.spec = spec
            return consumer
        self.keep()
        if consumer:
            consumer.change(spec)
        else:  # the new consumer follows the journal from here on, and delivers nothing yet
            consumer = self.by_name[spec.name] = WakeupConsumer(spec, self._read_records, self._clock)
        self._wanting.clear()
        state, end = await self._writing.submit(partial(self._lend, spec=spec))
        new = await self._reading.submit(lambda db: log_table.list_seqs(db, spec.patterns, state.floor, end))
        consumer.begin([*state.out, *new], end)
        return consumer

    def forget(self, name: str) -> None:
        if consumer := self.by_name.pop(name, None):
            self._wanting.clear()
            consumer.is_forgotten = True
            consumer.signal.notify()

    def follow(self, tx: Transaction) -> None:
        new: dict[WakeupConsumer, list[int]] = {}
        for record in tx.appended:
            wanting = self._wanting.get(record.subject)
            for consumer in self._find_wanting(record.subject) if wanting is None else wanting:
                new.setdefault(consumer, []).append(record.seq)
        for consumer, seqs in new.items():
            consumer.add(seqs)
        if tx.removed:
            for consumer in self.by_name.values():
                consumer.drop({*tx.removed})

    def _find_wanting(self, subject: str) -> tuple[WakeupConsumer, ...]:
        if len(self._wanting) == MAX_CACHED_SUBJECTS:
            self._wanting.clear()
        found = tuple(consumer for consumer in self.by_name.values() if consumer.matches(subject))
        self._wanting[subject] = found
        return found

    def keep_sometimes(self) -> None:
        """Save the states with the current append, at most once a second."""
        if self._clock.steady() >= self._keep_at:
            self.keep()

    def keep(self) -> None:
        self._keep_at = self._clock.steady() + KEEP_SECONDS
        for name, consumer in self.by_name.items():
            if consumer.is_begun and consumer.is_changed:
                consumer.is_changed = False
                self._writing.post(partial(self._write, name=name, state=consumer.find_state(self._recent.end)))

    def _lend(self, tx: Transaction, spec: ConsumerSpec) -> tuple[ConsumerState, int]:
        """Create the consumer on disk, and return its state for memory to keep, and the end of the log."""
        self._writer.backlog.add(tx, spec)
        (floor,) = tx.db.execute("SELECT floor FROM consumer WHERE name = ?", (spec.name,)).fetchone()
        out = frozenset(seq for (seq,) in tx.db.execute("SELECT seq FROM pending WHERE consumer = ?", (spec.name,)))
        tx.committed += [partial(self._writer.backlog.lent.add, spec.name), partial(self._note_written, spec.name, out)]
        return ConsumerState(floor, out), get_last_seq(tx.db)

    def _write(self, tx: Transaction, name: str, state: ConsumerState) -> None:
        before = self._on_disk[name]
        query = "INSERT OR IGNORE INTO pending (seq, consumer, attempt, due) VALUES (?, ?, 1, 0)"
        tx.db.executemany(query, [(seq, name) for seq in state.out - before])
        tx.db.executemany(
            "DELETE FROM pending WHERE seq = ? AND consumer = ?", [(seq, name) for seq in before - state.out]
        )
        tx.db.execute("UPDATE consumer SET floor = ? WHERE name = ?", (state.floor, name))
        tx.committed.append(partial(self._note_written, name, state.out))

    def _note_written(self, name: str, out: frozenset[int]) -> None:
        self._on_disk[name] = out

    async def _read_records(self, seqs: Sequence[int]) -> list[Record]:
        if (known := self._recent.get(seqs)) is not None:
            return known
        now, note_damage = self._clock.wall(), self._condition.note_damage
        return await self._reading.submit(lambda db: read_records(db, seqs, now, note_damage))

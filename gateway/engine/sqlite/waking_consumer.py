"""A consumer whose deliveries only wake somebody: none of its takings and acknowledgements is a transaction.

What it hands out is looked up in the journal by whoever wakes, so a delivery that comes once too often does no harm.
Therefore its state is in memory, and `state` is written down with whatever else is written, at most once a second.
After a crash it goes on from there: what was acknowledged since then comes once more, and nothing is missing.
"""

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.engine.interface import ConsumerSpec, Delivery, Record
from gateway.engine.journal_clock import Clock
from gateway.engine.live_messages import LiveConsumer, LiveDelivery
from gateway.engine.subjects import compile_patterns
from gateway.errors import EngineError

MAX_CACHED_SUBJECTS = 4096

ReadRecords = Callable[[Sequence[int]], Awaitable[list[Record]]]


class ConsumerState(NamedTuple):
    """Up to where all was handed out, and which of these were not acknowledged."""

    floor: int
    out: frozenset[int]


@dataclass(slots=True, eq=False)
class HandedOut:
    """A record that was handed out and not acknowledged."""

    record: Record
    attempt: int
    due: float


class WakingConsumer(LiveConsumer):
    """Follows what is appended from its making on; `begin` adds what waited before."""

    def __init__(self, spec: ConsumerSpec, read: ReadRecords, clock: Clock) -> None:
        super().__init__(spec)
        self.is_begun = self.is_forgotten = False
        self.kept: ConsumerState | None = None  # what was last written down
        self._read = read
        self._clock = clock
        self._reached = 0
        self._out: dict[int, HandedOut] = {}
        self._next_due = math.inf  # none of those out is due before
        self.change(spec)

    def change(self, spec: ConsumerSpec) -> None:
        """Give it other patterns; `begin` adds what of them waits."""
        self.spec, self.is_begun = spec, False
        self._new = deque[int]()  # never handed out, in their order
        self._matches = compile_patterns(spec.patterns)
        self._wanted: dict[str, bool] = {}

    def begin(self, waiting: Iterable[int], reached: int) -> None:
        """These sequences waited when the log ended with that one."""
        self._new = deque(sorted({*waiting, *self._new} - self._out.keys()))
        self._reached, self.is_begun = max(self._reached, reached), True
        self.signal.notify()

    def follow(self, appended: Sequence[Record], removed: Sequence[int]) -> None:
        """The journal has these, and those no more."""
        before = len(self._new)
        for record in appended:
            wanted = self._wanted.get(record.subject)
            if wanted is None:
                if len(self._wanted) == MAX_CACHED_SUBJECTS:
                    self._wanted.clear()
                wanted = self._wanted[record.subject] = bool(self._matches(record.subject))
            if wanted:
                self._new.append(record.seq)
            self._reached = record.seq
        for seq in removed:
            self._out.pop(seq, None)
        if len(self._new) > before:
            self.signal.notify()

    @property
    def state(self) -> ConsumerState:
        return ConsumerState(self._new[0] - 1 if self._new else self._reached, frozenset(self._out))

    @property
    def depth(self) -> int:
        return len(self._new) + len(self._out)

    async def take(self, n: int) -> tuple[list[Delivery], float]:
        if self.is_forgotten:
            raise EngineError(f"the consumer {self.spec.name!r} was forgotten; make it again")
        now = self._clock.steady()
        taken = self._take_due(now, n) if self._next_due <= now else []
        for record in await self._take_new(min(n - len(taken), self.spec.max_inflight - len(self._out))):
            self._out[record.seq] = one = HandedOut(record, 0, now)
            taken.append(one)
        for one in taken:
            one.attempt += 1
            one.due = now + self.spec.ack_wait
            self._next_due = min(self._next_due, one.due)
        return [LiveDelivery(one.record, one.attempt, self) for one in taken], self._next_due - now

    def _take_due(self, now: float, n: int) -> list[HandedOut]:
        due = sorted((one for one in self._out.values() if one.due <= now), key=lambda one: (one.due, one.record.seq))
        left = (one.due for one in self._out.values() if one.due > now)
        self._next_due = min(left, default=math.inf) if len(due) <= n else now
        return due[:n]

    async def _take_new(self, n: int) -> list[Record]:
        """What is gone meanwhile, or damaged, is passed over."""
        seqs = [self._new.popleft() for _ in range(min(n, len(self._new)))]
        try:
            return await self._read(seqs) if seqs else []
        except BaseException:
            self._new.extendleft(reversed(seqs))
            raise

    async def acknowledge(self, seqs: Sequence[int]) -> None:
        was_full = len(self._out) >= self.spec.max_inflight
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

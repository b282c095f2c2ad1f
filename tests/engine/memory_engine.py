"""The journal in memory: the whole contract, nothing stored. It is for tests, and the plainest form of the contract."""

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice, takewhile

from gateway.engine.interface import (
    ConsumerSpec,
    Delivery,
    EngineHealth,
    NewRecord,
    Record,
    SettledRecords,
)
from gateway.engine.journal_clock import Clock, JournalClock
from gateway.engine.live_messages import LiveMessages
from gateway.engine.sqlite.wakeup_consumer import WakeupConsumer
from gateway.engine.subjects import (
    SubjectMatcher,
    check_consumer_spec,
    check_new_records,
    check_pattern,
    check_subject,
    compile_patterns,
)
from gateway.errors import Conflict, Duplicate


class MemoryEngine(LiveMessages):
    def __init__(self, clock: Clock | None = None) -> None:
        clock = clock or Clock()
        self.clock = JournalClock(clock)
        self.files = None
        super().__init__(Clock(self.clock.read, clock.steady))
        self._log: dict[int, Record] = {}
        self._end = 0
        self._of: dict[str, list[int]] = defaultdict(list)  # sequences by subject; some may be gone
        self._below: dict[str, list[int]] = defaultdict(list)  # the same, by the subject without its last part
        self._ids: dict[str, int] = {}
        self._id_of: dict[int, str] = {}
        self._expiring: list[tuple[float, int]] = []
        self._limited: set[int] = set()
        self._consumers: dict[str, MemoryConsumer] = {}

    def reopen(self, clock: Clock) -> "MemoryEngine":
        """Return the journal as the next process finds it; it takes all from this one, which is closed."""
        after = MemoryEngine(clock)
        newest = self._log[max(self._log)].ts if self._log else None
        after.clock.resume(self.clock.get_state(), newest)
        after._log, after._end, after._of, after._below = self._log, self._end, self._of, self._below
        after._ids, after._id_of, after._expiring, after._limited = (
            self._ids,
            self._id_of,
            self._expiring,
            self._limited,
        )
        for name, one in self._consumers.items():
            consumer = after._consumers[name] = MemoryConsumer(one.spec, after, after._clock)
            consumer.begin(one.waiting, after._end)
        self._closed = True
        return after

    def list_records(self) -> list[Record]:
        return [*self._log.values()]

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        self.expire()
        check_new_records(puts)
        ids = [put.msg_id for put in puts if put.msg_id is not None]
        if len(set(ids)) < len(ids) or not self._ids.keys().isdisjoint(ids):
            raise Duplicate(f"one of {ids} is in the journal already, or twice in one append")
        for put in puts:
            if put.expect is not None and put.expect != (last := self._last(put.subject)):
                raise Conflict(f"{put.subject}: the last sequence is {last}, not {put.expect}")
        for done in settled:
            self._settle(done)
        records = [self._keep(put) for put in puts]
        self._spread(records)
        for consumer in self._consumers.values():
            if wanted := [record.seq for record in records if consumer.matches(record.subject)]:
                consumer.add(wanted)
        return [record.seq for record in records]

    async def append_numbered(self, make: Callable[[int], Sequence[NewRecord]]) -> list[int]:
        return await self.append(*make(self._end + 1))

    def _keep(self, put: NewRecord) -> Record:
        self._end += 1
        record = self._log[self._end] = Record(self._end, put.subject, put.data, self._clock.wall())
        self._of[put.subject].append(record.seq)
        self._below[put.subject.rpartition(".")[0]].append(record.seq)
        if put.msg_id is not None:
            self._ids[put.msg_id] = record.seq
            self._id_of[record.seq] = put.msg_id
        if put.ttl is not None:
            self._limit(record.seq, put.ttl)
        return record

    def _settle(self, done: SettledRecords) -> None:
        found = [seq for seq in self._of[done.subject] if seq in self._log and seq <= done.upto]
        for seq in takewhile(lambda seq: seq not in self._limited, reversed(found)):
            self._limit(seq, done.ttl)

    def _limit(self, seq: int, ttl: float) -> None:
        self._limited.add(seq)
        heappush(self._expiring, (self._clock.wall() + ttl, seq))

    def expire(self) -> None:
        """Remove expired records; called before each operation."""
        self._check_open()
        self.clock.look()
        over: list[int] = []
        if self.clock.is_held:
            return
        while self._expiring and self._expiring[0][0] <= self._clock.wall():
            over.append(heappop(self._expiring)[1])
        if over:
            self._remove(over)

    def _remove(self, seqs: Iterable[int]) -> None:
        gone = {seq for seq in seqs if self._log.pop(seq, None) is not None}
        for seq in gone & self._id_of.keys():
            del self._ids[self._id_of.pop(seq)]
        for consumer in self._consumers.values():
            consumer.drop(gone)

    def _last(self, subject: str) -> int:
        seqs = self._of[subject]
        while seqs and seqs[-1] not in self._log:
            seqs.pop()
        return seqs[-1] if seqs else 0

    def waiting(self, reached: int, matches: SubjectMatcher) -> Iterator[Record]:
        """Return the matching records after a sequence, in order."""
        self.expire()
        records = (self._log.get(seq) for seq in range(reached + 1, self._end + 1))
        return (record for record in records if record is not None and matches(record.subject))

    def _find(self, pattern: str, after: int) -> Iterator[Record]:
        literal = pattern.removesuffix(".*")
        if "*" in literal or ">" in literal:
            return self.waiting(after, compile_patterns([pattern]))
        self.expire()
        seqs = self._of[pattern] if literal == pattern else self._below[literal]
        return (self._log[seq] for seq in seqs[bisect(seqs, after) :] if seq in self._log)

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        check_subject(subject)
        self.expire()
        return self._log.get(self._last(subject))

    async def read(
        self,
        pattern: str,
        after: int = 0,
        limit: int = 100,
        *,
        fresh: bool = True,
    ) -> list[Record]:
        check_pattern(pattern)
        found = self._find(pattern, after)
        return list(islice(found, max(0, limit)))

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        check_pattern(pattern)
        found = self._find(pattern, after)
        seqs = [record.seq for record in found if upto is None or record.seq <= upto]
        self._remove(seqs)
        return len(seqs)

    async def consumer(self, spec: ConsumerSpec) -> "MemoryConsumer":
        check_consumer_spec(spec)
        self.expire()
        consumer = self._consumers.get(spec.name)
        if consumer is None:
            consumer = self._consumers[spec.name] = MemoryConsumer(spec, self, self._clock)
            consumer.begin(self._list_waiting(spec, self._end if spec.new_only else 0), self._end)
        elif consumer.spec.patterns != spec.patterns:
            floor = consumer.find_state(self._end).floor
            consumer.change(spec)
            consumer.begin(self._list_waiting(spec, floor), self._end)
        consumer.spec = spec
        return consumer

    def _list_waiting(self, spec: ConsumerSpec, floor: int) -> list[int]:
        return [record.seq for record in self.waiting(floor, compile_patterns(spec.patterns))]

    async def find(self, seqs: Sequence[int]) -> list[Record]:
        return [self._log[seq] for seq in seqs if seq in self._log]

    async def consumers(self) -> list[str]:
        self.expire()
        return list(self._consumers)

    async def list_owed(self, name: str, until: float, after: int = 0, limit: int = 100) -> list[Record]:
        self.expire()
        found = [self._log[seq] for seq in self._consumers[name].waiting] if name in self._consumers else []
        old = [record for record in found if record.seq > after and record.ts < until]
        return sorted(old, key=lambda record: record.seq)[:limit]

    async def forget_consumer(self, name: str) -> None:
        self.expire()
        consumer = self._consumers.pop(name, None)
        if consumer is not None:
            consumer.is_forgotten = True
            consumer.signal.notify()

    async def depth(self, name: str) -> int:
        self.expire()
        return len(self._consumers[name].waiting) if name in self._consumers else 0

    def failure(self) -> str:
        return ""

    async def health(self) -> EngineHealth:
        self.expire()
        return EngineHealth(True, "well", len(self._log), sum(len(record.data) for record in self._log.values()))


class MemoryConsumer(WakeupConsumer):
    def __init__(self, spec: ConsumerSpec, engine: MemoryEngine, clock: Clock) -> None:
        super().__init__(spec, engine.find, clock)
        self._engine = engine

    def make_due(self) -> None:
        """Make all deliveries in progress due again, as after a restart."""
        for one in self._out.values():
            one.due = self._next_due = 0.0

    async def take(self, n: int) -> tuple[list[Delivery], float]:
        self._engine.expire()
        return await super().take(n)

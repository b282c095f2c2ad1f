"""A journal in memory of four shards: what has a token lies in the one of its hash, all else in the last."""

from collections.abc import Iterator, Sequence

from gateway.engine import Clock, ConsumerSpec, NewRecord, Record
from gateway.engine.subjects import SubjectMatcher, compile_patterns, find_token
from gateway.testing.memory_engine import MemoryConsumer
from tests.torn_engine import TornEngine

SHARDS = tuple(number << 40 for number in range(4))


def shard_of(subject: str) -> int:
    token = find_token(subject)
    return int(token, 16) % 3 if token else 3


class ShardedEngine(TornEngine):
    """Consumers and tails have what came in its order; whoever reads has it in that of the sequences."""

    def __init__(self, left: int | None = None, clock: Clock | None = None) -> None:
        super().__init__(left, clock)
        self._ends = list(SHARDS)
        self._places: dict[int, int] = {0: 0}  # of each sequence: when it came

    def shards(self) -> Sequence[int]:
        return SHARDS

    def find_shard(self, subject: str) -> int:
        return shard_of(subject)

    def _keep(self, put: NewRecord) -> Record:
        shard = self.find_shard(put.subject)
        self._end = self._ends[shard]
        record = super()._keep(put)
        self._ends[shard] = record.seq
        self._places[record.seq] = len(self._places)
        return record

    async def consumer(self, spec: ConsumerSpec) -> MemoryConsumer:
        before = self._consumers.get(spec.name)
        first = next(self.waiting(before.reached, before.matches), None) if before else None
        consumer = await super().consumer(spec)
        if first:
            came = list(self._places)
            consumer.reached = came[self._places[first.seq] - 1]
        return consumer

    def waiting(self, reached: int, matches: SubjectMatcher) -> Iterator[Record]:
        self._expire()
        place = self._places[reached]
        return (one for one in list(self._log.values()) if self._places[one.seq] > place and matches(one.subject))

    async def read(
        self,
        pattern: str,
        after: int = 0,
        limit: int = 100,
        *,
        upto: int | None = None,
        fresh: bool = True,
    ) -> list[Record]:
        return self._find(pattern, after, upto)[: max(0, limit)]

    async def purge(self, pattern: str, upto: int | None = None, after: int = 0) -> int:
        found = self._find(pattern, after, upto)
        self._remove(record.seq for record in found)
        return len(found)

    def _find(self, pattern: str, after: int, upto: int | None) -> list[Record]:
        matching = self.waiting(0, compile_patterns([pattern]))
        found = [one for one in matching if one.seq > after and (upto is None or one.seq <= upto)]
        return sorted(found, key=lambda one: one.seq)

"""How far somebody is in a journal: one sequence where it has one shard, else one for each of them.

It never changes; who goes on has a new one. What is stored of it is a plain number where there is one shard. Shards are
read beside each other, since each answer may be a way to a server and back.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

import msgspec

from gateway.engine.interface import Record

SHARD_BITS = 40  # of a sequence; those above them say in which shard its record stands
StoredPosition: TypeAlias = int | list[int]
ShardRead: TypeAlias = Callable[[int], Awaitable[list[Record]]]  # of one shard, at most so many records


class JournalPosition(msgspec.Struct, frozen=True):
    """`reached`: the last sequence in each shard; `shards`: where theirs begin, as the engine says."""

    shards: tuple[int, ...]
    reached: tuple[int, ...]

    def advance(self, *seqs: int) -> "JournalPosition":
        """As far as before, and all up to these sequences in their shards."""
        reached = list(self.reached)
        for seq in seqs:
            shard = self._find_shard(seq)
            reached[shard] = max(reached[shard], seq)
        return JournalPosition(self.shards, tuple(reached))

    def has_reached(self, seq: int) -> bool:
        return seq <= self.reached[self._find_shard(seq)]

    def find_largest(self) -> int:
        """The largest sequence that is reached; 0 where none is."""
        return max((seq for seq in self.reached if seq not in self.shards), default=0)

    def list_ranges(self) -> Iterator[tuple[int, int | None]]:
        """What lies before it: behind which sequence, and up to which; None: there is no end."""
        ends = [end for _, end in pairwise(self.shards)]
        return zip(self.reached, [*ends, None], strict=True)

    def dump(self) -> StoredPosition:
        return self.reached[0] if len(self.shards) == 1 else list(self.reached)

    def _find_shard(self, seq: int) -> int:
        return max(bisect_right(self.shards, seq) - 1, 0)


def load_position(shards: Sequence[int], stored: StoredPosition = 0) -> JournalPosition:
    """The position that was stored, also where the journal has more shards since: what was there stays in place."""
    begin = JournalPosition(tuple(shards), tuple(shards))
    return begin.advance(*([stored] if isinstance(stored, int) else stored))


def list_shards(last: int) -> tuple[int, ...]:
    """Behind which sequences the shards begin of a journal whose last sequence is this."""
    return tuple(number << SHARD_BITS for number in range((last >> SHARD_BITS) + 1))


async def read_shards(reads: Sequence[ShardRead], limit: int) -> list[Record]:
    """The first records of all shards, shard by shard.

    One shard is asked, then two at a time, then four: where the first have enough, hardly one is asked for nothing, and
    where all are empty it takes few turns.
    """
    if len(reads) == 1:
        return await reads[0](limit)
    found: list[Record] = []
    begin, count = 0, 1
    while begin < len(reads) and len(found) < limit:
        left = limit - len(found)
        found += chain.from_iterable(await asyncio.gather(*(read(left) for read in reads[begin : begin + count])))
        begin, count = begin + count, 2 * count
    return found[:limit]

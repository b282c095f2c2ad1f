"""A journal of several shards is read beside each other: nobody stands still for one shard after the other."""

from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from gateway import records
from gateway.engine import NewRecord, Record
from gateway.engine.journal_position import ShardRead, load_position, read_shards
from gateway.record_subjects import token_of
from tests.sharded_engine import SHARDS, ShardedEngine, shard_of

TOKENS = [next(t for n in range(99) if shard_of(f"a.{(t := token_of(f'{n}'))}") == one) for one in range(3)]


@dataclass
class Meeting:
    """Nobody goes on before all of them are there."""

    left: int
    all_here: anyio.Event = field(default_factory=anyio.Event)

    async def wait(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.all_here.set()
        await self.all_here.wait()


class MeetingEngine(ShardedEngine):
    """Answers some first readings one by one, and then so many together or none of them."""

    alone = 0
    together = 0

    async def read(self, *args: Any, **options: Any) -> list[Record]:
        self.alone -= 1
        if self.alone == -1:
            self.meeting = Meeting(self.together)
        if self.alone < 0 and self.together:
            self.together -= 1
            await self.meeting.wait()
        return await super().read(*args, **options)


@pytest.mark.parametrize(
    ("read", "alone", "expected"),
    [(records.read_in_time, 0, ["3", "1", "2", "0"]), (records.read_on, 1, ["0", "1", "2", "3"])],
)
async def test_shards_are_asked_together_and_their_order_stays(read: Any, alone: int, expected: list[str]) -> None:
    async with MeetingEngine() as engine:
        for data in ("3", "1", "2", "0"):
            await engine.append(NewRecord(f"a.{TOKENS[int(data)]}" if data != "3" else "a.b", data.encode()))
        engine.alone, engine.together = alone, len(SHARDS) - 2 * alone
        position = load_position(engine.shards())
        found = await read(engine, ">", position, 9)
        assert [one.data.decode() for one in found] == expected
        assert [one.data.decode() for one in await read(engine, ">", position, 2)] == expected[:2]


async def test_where_the_first_shards_have_enough_the_others_are_not_asked() -> None:
    asked: list[tuple[int, int]] = []
    meeting = Meeting(2)

    def make_read(number: int) -> ShardRead:
        async def read(limit: int) -> list[Record]:
            asked.append((number, limit))
            if number in (1, 2):
                await meeting.wait()
            return [Record(number, "a", b"", 0.0)]

        return read

    found = await read_shards([make_read(number) for number in range(9)], 3)
    assert ([one.seq for one in found], asked) == ([0, 1, 2], [(0, 3), (1, 2), (2, 2)])

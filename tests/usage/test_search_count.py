"""The searches of a day: counted in the journal by person, whatever restarts, and anew the next day."""

from datetime import date

import anyio

from gateway.usage.search_count import SearchCount
from tests.engine.memory_engine import MemoryEngine

TODAY, TOMORROW = date(2030, 1, 1), date(2030, 1, 2)


async def test_a_day_has_so_many_for_each_person_through_restarts_and_side_by_side() -> None:
    engine, taken = MemoryEngine(), list[bool]()
    async with engine:

        async def take(person: str, day: date = TODAY) -> None:
            taken.append(await SearchCount(engine, lambda: day, lambda: 3).take(person))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(take, "telegram:1")
        assert sorted(taken) == [False] * 5 + [True] * 3
        for person, day in (("telegram:2", TODAY), ("telegram:1", TOMORROW)):
            await take(person, day)
        assert taken[-2:] == [True, True]
        kept = await engine.read("gw.keep.>", limit=100)
        assert len(kept) == 2  # a record a person, without their id
        assert not any(b"telegram" in one.data for one in kept)

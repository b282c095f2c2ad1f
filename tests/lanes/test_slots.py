"""Slots: limits in all and for a person, in order, and no one's wait blocks another's."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from hypothesis import given
from hypothesis import strategies as st

from gateway.lanes.slots import GUEST, RANKS, UNAWAITED, Slots
from gateway.messages.roles import rank_of

USER, OWNER = rank_of("user"), rank_of("owner")


async def tell_nobody(_position: int) -> None:
    """Report no wait."""


@given(
    total=st.integers(1, 4),
    per_person=st.integers(1, 3),
    people=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(RANKS)), max_size=20),
    cut=st.sets(st.integers(0, 19)),
)
def test_limits_hold_everybody_is_served_and_a_person_in_order(
    total: int, per_person: int, people: list[tuple[str, int]], cut: set[int]
) -> None:
    """Whoever comes, whoever gives up."""
    served: list[int] = []

    async def main() -> None:
        slots, now = Slots(total, per_person), {"a": 0, "b": 0, "c": 0}

        async def come(number: int, person: str, rank: int, scope: anyio.CancelScope) -> None:
            with scope:
                async with slots.slot(person, rank, math.inf, tell_nobody):
                    now[person] += 1
                    assert now[person] <= per_person
                    assert sum(now.values()) <= slots.running <= total
                    served.append(number)
                    try:
                        await anyio.lowlevel.checkpoint()
                    finally:
                        now[person] -= 1

        scopes = [anyio.CancelScope() for _ in people]
        async with anyio.create_task_group() as tasks:
            for number, (person, rank) in enumerate(people):
                tasks.start_soon(come, number, person, rank, scopes[number])
            await anyio.lowlevel.checkpoint()
            for number in cut & set(range(len(people))):
                scopes[number].cancel()
        assert (slots.running, slots.waiting) == (0, 0)
        assert slots._free == total

    anyio.run(main)
    assert set(range(len(people))) - cut <= set(served)
    for one in set(people):
        mine = [number for number in served if people[number] == one]
        assert mine == sorted(mine)


async def test_who_is_at_the_limit_lets_others_pass() -> None:
    slots = Slots(2, 1)
    order: list[str] = []

    async def come(person: str, until: anyio.Event) -> None:
        async with slots.slot(person, USER, math.inf, tell_nobody):
            order.append(person)
            await until.wait()

    stay, go = anyio.Event(), anyio.Event()
    go.set()
    async with anyio.create_task_group() as tasks:
        for person, until in (("a", stay), ("a", stay), ("b", go)):
            tasks.start_soon(come, person, until)
            await anyio.wait_all_tasks_blocked()
        assert order == ["a", "b"]
        assert slots.waiting == 1
        stay.set()
    assert order == ["a", "b", "a"]


class Line:
    """People who hold what they get until they are let go; `order` is who got a slot, in which order."""

    def __init__(self, slots: Slots, tasks: TaskGroup) -> None:
        self.slots, self.order = slots, list[str]()
        self._tasks, self._holding = tasks, dict[str, anyio.Event]()

    async def come(self, rank: int, *names: str, person: str = "") -> None:
        for name in names:
            self._tasks.start_soon(self._hold, name, person or name, rank)
        await anyio.wait_all_tasks_blocked()

    async def _hold(self, name: str, person: str, rank: int) -> None:
        async with self.slots.slot(person, rank, math.inf, tell_nobody):
            self.order.append(name)
            over = self._holding[name] = anyio.Event()
            await over.wait()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._holding.pop(name).set()
            await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def stand(total: int, per_person: int = 4) -> AsyncIterator[Line]:
    async with anyio.create_task_group() as tasks:
        yield Line(Slots(total, per_person), tasks)
        tasks.cancel_scope.cancel()


def several(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


async def test_with_1500_guests_waiting_an_owner_finds_a_slot_free() -> None:
    async with stand(16) as line:
        await line.come(GUEST, *several("guest", 1500))
        assert (line.slots.running, line.slots.waiting) == (8, 1492)
        await line.come(UNAWAITED, *several("hook", 100))
        assert line.slots.running == 12, "and a quarter for what nobody waits for"
        await line.come(OWNER, "owner")
        assert line.order[-1] == "owner"


async def test_where_all_is_taken_an_owner_is_the_next_and_each_fourth_is_who_waits_longest() -> None:
    async with stand(4) as line:
        await line.come(USER, *several("now", 4))
        await line.come(GUEST, *several("guest", 3))
        await line.come(USER, *several("user", 30))
        await line.come(OWNER, "owner")
        for name in [*line.order, "owner", *several("user", 3)]:
            await line.leave(name)
        assert line.order[4:] == ["owner", "user0", "user1", "guest0", "user2", "user3", "user4", "guest1"]


async def test_a_person_has_a_second_slot_only_where_no_other_could_take_it() -> None:
    async with stand(4) as line:
        await line.come(OWNER, *several("mine", 4), person="owner")
        assert line.order == several("mine", 4)
        await line.come(OWNER, "more", person="owner")
        await line.come(USER, "user")
        await line.leave("mine0", "mine1")
        assert line.order[4:] == ["user", "more"]


async def test_the_rest_from_before_comes_after_people_and_gets_done() -> None:
    async with stand(1) as line:
        await line.come(USER, "now")
        await line.come(UNAWAITED, *several("rest", 2))
        await line.come(GUEST, *several("guest", 5))
        for name in ("now", "guest0", "guest1", "rest0", "guest2", "guest3", "guest4"):
            await line.leave(name)
        assert line.order == ["now", "guest0", "guest1", "rest0", "guest2", "guest3", "guest4", "rest1"]

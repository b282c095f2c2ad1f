"""Slots: limits in all and for a person, in order, and nobody's wait blocks another's."""

import math

import anyio
import anyio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from gateway.lanes.slots import Slots


async def tell_nobody(_position: int) -> None:
    """Who waits is patient."""


@given(
    total=st.integers(1, 4),
    per_person=st.integers(1, 3),
    people=st.lists(st.sampled_from("abc"), max_size=20),
    cut=st.sets(st.integers(0, 19)),
)
def test_limits_hold_everybody_is_served_and_a_person_in_order(
    total: int, per_person: int, people: list[str], cut: set[int]
) -> None:
    """Whoever comes, whoever gives up."""
    served: list[int] = []

    async def main() -> None:
        slots, now = Slots(total, per_person), {"a": 0, "b": 0, "c": 0}

        async def come(number: int, person: str, scope: anyio.CancelScope) -> None:
            with scope:
                async with slots.slot(person, math.inf, tell_nobody):
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
            for number, person in enumerate(people):
                tasks.start_soon(come, number, person, scopes[number])
            await anyio.lowlevel.checkpoint()
            for number in cut & set(range(len(people))):
                scopes[number].cancel()
        assert (slots.running, slots.waiting) == (0, 0)
        assert slots._free == total

    anyio.run(main)
    assert set(range(len(people))) - cut <= set(served)
    for person in "abc":
        mine = [number for number in served if people[number] == person]
        assert mine == sorted(mine)


async def test_who_is_at_the_limit_lets_others_pass() -> None:
    slots = Slots(2, 1)
    order: list[str] = []

    async def come(person: str, until: anyio.Event) -> None:
        async with slots.slot(person, math.inf, tell_nobody):
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

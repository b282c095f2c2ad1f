"""Messages that waited before a start, and new ones: new ones wait for no other person's backlog."""

import gc
import tracemalloc

import anyio
import pytest
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.engine.interface import Engine
from gateway.lanes.lanes import make_inbound_put
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.records import subjects
from tests.lanes.desk import Watched, echo, served
from tests.spine import chain, key, lane_settings, message, until

WAITING, SOME = 2000, 400
FEW = lane_settings(sessions=SessionSettings(turns=4, turns_per_person=2), patience=3600.0)


async def leave_waiting(engine: Engine, count: int, person: str = "") -> None:
    """Leave unanswered messages of so many sessions, of one person or of as many."""
    for start in range(0, count, 500):
        some = range(start, min(start + 500, count))
        said = [(message("old", f"c{n}{person}", person or f"p{n}"), key(f"c{n}{person}")) for n in some]
        await engine.append(*(make_inbound_put(one, where, "", 0.0) for one, where in said))


class Slow(Watched):
    """Each turn takes a while."""

    async def __call__(self, turn: LaneTurn) -> LaneResult:
        self.runs.append(turn)
        await anyio.sleep(0.02)
        return echo(turn)


async def test_who_comes_now_is_answered_before_what_waited(engine: Engine) -> None:
    await leave_waiting(engine, WAITING)
    async with served(engine, Slow(), FEW) as desk:
        await desk.running(1)
        for name in ("one", "two", "three"):
            seq = await desk.say(name, f"new-{name}", user=f"new-{name}")
            await desk.answered(seq, f"new-{name}")
        assert len(desk.work.runs) < WAITING / 4
        await desk.running(50)  # and what waited gets on


class Held(Watched):
    """No turn ends."""

    async def __call__(self, turn: LaneTurn) -> LaneResult:
        self.runs.append(turn)
        await anyio.sleep_forever()
        raise AssertionError


async def test_who_waits_is_told_the_place_in_the_line_also_before_the_lane_begins(engine: Engine) -> None:
    await leave_waiting(engine, 100)

    async def is_told() -> bool:
        out = await chain(engine, subjects.OUT_SUBJECTS)
        told[:] = [int(one.reply.text.split("number ")[1].split()[0]) for one in out]
        return len(told) >= 60

    told: list[int] = []
    # Those who begin stand in the line by then, also on a busy machine: until then nobody counts them.
    async with served(engine, Held(), replace(FEW, patience=2.0)) as desk:
        await until(is_told, "60 places")
        assert len(desk.work.runs) <= 4
    assert len(told) == len(set(told)), "each has a place of its own, and hears it once"
    assert max(told) <= 100


async def test_a_session_with_a_backlog_is_begun_at_once_when_its_person_writes(engine: Engine) -> None:
    await leave_waiting(engine, WAITING)
    async with served(engine, Slow(), FEW) as desk:
        await desk.running(1)
        last = f"c{WAITING - 1}"
        seq = await desk.say("are you there?", last, user=f"p{WAITING - 1}")
        await desk.answered(seq, last)
        assert len(desk.work.runs) < WAITING / 4


async def test_the_backlog_of_one_person_does_not_hold_up_that_of_others(engine: Engine) -> None:
    await leave_waiting(engine, 200, "ann")
    await leave_waiting(engine, 3)
    async with served(engine, Slow(), FEW) as desk:
        await desk.running(40)
        people = [turn.messages[0].user_id for turn in desk.work.runs[:40]]
        assert {"p0", "p1", "p2"} < set(people)


@pytest.mark.timeout(120)  # all memory is traced, which takes ten times as long
async def test_a_session_that_waits_costs_less_than_five_kilobytes(engine: Engine) -> None:
    await leave_waiting(engine, SOME)
    some = await trace_waiting(engine, SOME)
    await leave_waiting(engine, WAITING)
    each = (await trace_waiting(engine, WAITING) - some) / (WAITING - SOME)
    assert each < 5000, each


async def trace_waiting(engine: Engine, count: int) -> int:
    """Return the bytes in use while so many sessions wait, those of the turns that run among them."""
    work = Watched()
    work.acts["old"] = work.hold
    gc.collect()
    tracemalloc.start()
    try:
        async with served(engine, work, FEW) as desk:
            await desk.running(1)
            await until(lambda: desk.lanes.waiting >= count - 40)
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
            work.gate.set()
            return used
    finally:
        tracemalloc.stop()

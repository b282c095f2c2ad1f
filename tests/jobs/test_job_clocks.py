"""Jobs and clocks that people and time servers set: nothing is lost, repeated or made up."""

import time
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from gateway.engine.journal_clock import Clock
from gateway.jobs.runner import JobRunner, find_start
from gateway.jobs.timer import Clocks, Now
from tests.engine.conftest import JUMPS
from tests.engine.memory_engine import MemoryEngine
from tests.jobs.house import NOON, House
from tests.spine import until

MONTH = 30 * 86_400.0


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_while_is_as_long_whoever_sets_the_clock(house: House, jump: float) -> None:
    runner = house.runner()
    before = await house.add("before", when="100s")
    async with anyio.create_task_group() as tasks:
        await tasks.start(runner.run)
        house.now, house.ahead = house.now + jump, house.ahead + jump
        assert await runner.look() == pytest.approx(100)
        house.now += 101
        await runner.look()
        await house.end()
        await house.settle()
        tasks.cancel_scope.cancel()
    (moment,) = await house.jobs.read_history(before)
    assert moment.state == "ran"
    assert moment.late_by == pytest.approx(1)
    assert (await house.jobs.find("before")).job.is_over


async def test_a_clock_that_goes_back_repeats_nothing(house: House) -> None:
    job = await house.add(when="0 * * * *")
    for hour in (1, 2, 1, 2, 3):
        house.now = NOON + hour * 3600
        await house.run_until_all_ended()
    assert await house.rows(job) == [(1, "ran", ""), (2, "ran", ""), (3, "ran", "")]


async def test_missed_moments_of_which_one_has_a_record_do_not_stop_a_job(house: House) -> None:
    """The clock was put back far, and is right again: some moments in between have run, and others have not."""
    job = await house.add(when="0 * * * *")
    for hour in (1, 2, 3):
        house.now = NOON + hour * 3600
        await house.run_until_all_ended()
    before = await house.jobs.find("tea")
    await house.jobs.change(type(before)(before.seq, msgspec.structs.replace(before.job, since=NOON)))
    house.now = NOON + 6 * 3600
    await house.run_until_all_ended()
    assert await house.rows(job) == [
        *((hour, "ran", "") for hour in (1, 2, 3)),
        (4, "missed", "the next one ran"),
        (6, "ran", ""),
    ]


async def test_a_clock_that_was_quite_wrong_does_not_silence_a_job(house: House) -> None:
    job, year = await house.add(), 365 * 24
    async with anyio.create_task_group() as tasks:
        runner = house.runner()
        await tasks.start(runner.run)
        for at, hour in enumerate((year, 0.5, 1.5)):
            house.now = NOON + hour * 3600
            await runner.look()
            if at != 1:
                await house.end()
                await house.settle()
        tasks.cancel_scope.cancel()
    assert [row for row in await house.rows(job) if row[1] == "ran"] == [(1.5, "ran", ""), (year, "ran", "")]


@pytest.mark.parametrize("is_made_late", [False, True])
async def test_no_moment_is_missed_before_a_job_was_made(is_made_late: bool) -> None:
    """The clock is set back by 30 days, and then it is right again; `is_made_late`: the job is made in between."""
    month, wall = 30 * 24, [NOON]
    async with (
        MemoryEngine(Clock(lambda: wall[0], time.monotonic, lambda: 0.0, 1)) as engine,
        anyio.create_task_group() as tasks,
    ):
        house = House(engine)
        runner = house.runner()
        await tasks.start(runner.run)
        if is_made_late:
            house.now = wall[0] = NOON + 600 - month * 3600
        job = await house.add(when="0 * * * *")
        house.now = NOON + 600 - month * 3600
        await runner.look()
        for at, hour in enumerate((1 - month, 4)):
            house.now = NOON + hour * 3600
            await runner.look()
            await until(partial(house.has_come, at + 1))
            await house.end(at=at)
            await house.settle()
        tasks.cancel_scope.cancel()
        assert await house.rows(job) == [(1 - month, "ran", ""), (1, "missed", "the next one ran"), (4, "ran", "")]


@pytest.mark.parametrize("missed", ["once", "skip"])
async def test_a_clock_that_is_almost_right_again_makes_nothing_missed(missed: Any) -> None:
    """It comes back from 30 days in the past to a little before the time at which the job was made."""
    walls = [NOON + 1800]
    clock = Clock(lambda: walls[0], time.monotonic, lambda: 0.0, 1, lambda: True)
    async with MemoryEngine(clock) as engine, anyio.create_task_group() as tasks:
        house, ahead = House(engine), engine.clock.calculate_difference
        runner = JobRunner(engine, house.jobs, house.ports(), Clocks(lambda: walls[0], ahead))
        await tasks.start(runner.run)
        job = await house.add(when="0 * * * *", missed=missed)
        for walls[0] in (NOON - MONTH + 600, NOON + 600):
            await runner.look()
        await house.settle()
        tasks.cancel_scope.cancel()
        assert await house.rows(job) == []


async def test_a_clock_that_was_set_back_for_good_makes_no_moment_unknown(house: House) -> None:
    """The job was made after that, and the gateway was away for two of its hours."""
    made, now = NOON - MONTH, NOON - MONTH + 7800
    job = replace(await house.add(), since=made, reached=NOON)
    assert find_start(job, Now(now, now, NOON + 7800)) == made


@pytest.mark.parametrize("number", range(1, 25))
async def test_a_clock_that_is_set_between_two_readings_makes_nothing_missed(number: int) -> None:
    """It is right again after 30 days in the past, from this reading on, as a moment of that time is due."""
    walls = [NOON]

    def read() -> float:
        return walls.pop(0) if len(walls) > 1 else walls[0]

    clock = Clock(read, time.monotonic, lambda: 0.0, 1, lambda: True)
    async with MemoryEngine(clock) as engine, anyio.create_task_group() as tasks:
        house, ahead, jump = House(engine), engine.clock.calculate_difference, engine.clock.find_unconfirmed_jump
        runner = JobRunner(engine, house.jobs, house.ports(), Clocks(read, ahead, jump))
        await tasks.start(runner.run)
        job = await house.add(when="every 1h")
        walls[:] = [NOON - MONTH]
        await runner.look()
        walls[:] = [NOON - MONTH + 3601] * number + [NOON + 60]
        await runner.look()
        tasks.cancel_scope.cancel()
        assert [row for row in await house.rows(job) if row[1] == "missed"] == []


async def test_a_jump_forward_makes_nothing_due_until_it_is_confirmed(house: House) -> None:
    """The day goes on as if there was none, for moments of a timetable as for a time."""
    hourly, once = await house.add(missed="skip"), await house.add("once", when="2030-01-02T12:00")
    async with anyio.create_task_group() as tasks:
        runner = house.runner()
        await tasks.start(runner.run)
        house.now = house.now + 48 * 3600 + 1800
        house.ahead = house.jump = 48 * 3600
        assert await runner.look() == 1800
        house.now += 1801
        await runner.look()
        await house.end()
        await house.settle()
        assert (await house.rows(hourly), await house.rows(once)) == ([(1, "ran", "")], [])
        house.jump = 0.0
        await runner.look()
        for at in (1, 2):
            await house.end(at=at)
        await house.settle()
        tasks.cancel_scope.cancel()
    assert (await house.rows(hourly))[1:] == [(2, "missed", "the next one ran"), (49, "ran", "")]
    assert await house.rows(once) == [(24, "ran", "")]


async def test_a_job_that_is_made_in_a_wrong_time_counts_from_the_right_one(house: House) -> None:
    async with anyio.create_task_group() as tasks:
        runner = house.runner()
        await tasks.start(runner.run)
        house.now += 48 * 3600
        house.ahead = house.jump = 48 * 3600
        job = await house.add()
        assert await runner.look() > 0
        house.now, house.ahead, house.jump = NOON + 600, 0.0, 0.0
        assert await runner.look() == 3600
        house.now += 3600
        await runner.look()
        await house.end()
        await house.settle()
        tasks.cancel_scope.cancel()
    assert [row[1] for row in await house.rows(job)] == ["ran"]

"""The clock calls hooks: once for each time, also over restarts, and sanely when the clock jumps."""

import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.interface import Engine, NewRecord, SettledRecords
from gateway.hooks import HookRegistry
from gateway.jobs.schedule import HookPresence, ScheduledHook, Scheduler
from gateway.jobs.timer import LONGEST_JUMP, Clocks
from gateway.records import records
from gateway.records.subjects import schedule_subject_of
from gateway.testing import GatewayProcess
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until

NOON = 1_780_000_000.0
HOUR = 3600.0


class House:
    """A gateway with one hook that the clock calls, a clock that stands where it is put, and what was told."""

    def __init__(self, engine: Engine, registry: HookRegistry) -> None:
        self.engine = engine
        self.registry = registry
        self.now, self.jump = NOON, 0.0
        self.told: list[dict[str, Any]] = []
        self.planned = [ScheduledHook("tick", "every 1h", "there", is_durable=False)]
        registry.watch("schedule:*", self._hear)
        self.restart()

    def _hear(self, _name: str, event: dict[str, Any]) -> None:
        self.told.append(dict(event))

    def restart(self) -> None:
        self.schedule = Scheduler(
            self.engine, self.registry, lambda: self.planned, Clocks(lambda: self.now, jump=lambda: self.jump)
        )

    def change(self, **facts: Any) -> None:
        self.planned = [self.planned[0]._replace(**facts)]

    async def look(self, later: float = 0.0) -> list[float]:
        """Time passes; how late those were that are told now."""
        self.now += later
        self.told.clear()
        await self.schedule.load()
        await self.schedule.look()
        await self.registry.settled()
        return [event["late_by"] for event in self.told]


class SlowEngine(MemoryEngine):
    """Writes at once, and says so later than the next look at the clock."""

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        seqs = await super().append(*puts, settled=settled)
        await anyio.sleep(0.1)
        return seqs


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with MemoryEngine() as engine, HookRegistry() as registry:
        yield House(engine, registry)


async def test_it_is_told_when_it_is_due_and_not_before(house: House) -> None:
    assert await house.look() == []
    assert await house.look(HOUR - 1) == []
    assert await house.look(2) == [1.0]
    assert house.told[0]["due"] == NOON + HOUR
    assert await house.look(1) == []


async def test_the_pause_until_the_next_look_ends_when_it_is_due(house: House) -> None:
    await house.schedule.load()
    assert await house.schedule.look() == HOUR
    house.now += HOUR - 5
    assert await house.schedule.look() == 5


async def test_a_restart_tells_nobody_twice(house: House) -> None:
    await house.look()
    assert await house.look(HOUR) == [0.0]
    house.restart()
    assert await house.look() == []
    assert await house.look(HOUR) == [0.0]


async def test_two_gateways_on_one_journal_tell_it_once(house: House) -> None:
    await house.look()
    other = Scheduler(house.engine, house.registry, lambda: house.planned, Clocks(lambda: house.now))
    await other.load()
    assert await house.look(HOUR) == [0.0]
    await other.look()
    await house.registry.settled()
    assert len(house.told) == 1
    assert await house.look(HOUR) == [0.0]


async def test_a_moment_of_another_hook_cuts_off_no_event_that_is_being_written() -> None:
    """The look at the clock would end the wait for news in the midst of it, between the mark and the event."""
    async with SlowEngine() as engine, HookRegistry() as registry:
        house = House(engine, registry)
        await house.look()
        (tick,), soon = house.planned, ScheduledHook("soon", "every 2h", "there", is_durable=False)
        house.planned = [soon]
        await house.look()
        house.restart()
        house.now += 2 * HOUR - 0.02
        async with anyio.create_task_group() as tasks:
            await tasks.start(house.schedule.run)
            house.planned = [soon, tick]
            registry.emit("hook:loaded", hook="tick")
            await until(lambda: [event["due"] for event in house.told] == [NOON + HOUR])
            tasks.cancel_scope.cancel()


async def test_times_that_were_missed_are_made_up_for_by_one_event(house: House) -> None:
    await house.look()
    house.restart()
    assert await house.look(5 * HOUR + 60) == [60.0]
    assert house.told[0]["due"] == NOON + 5 * HOUR
    assert await house.look() == []


@pytest.mark.parametrize(("presence", "expected"), [("away", [60.0]), ("off", [])])
async def test_a_hook_that_is_broken_is_told_later_and_one_that_is_off_is_not(
    house: House, presence: HookPresence, expected: list[float]
) -> None:
    await house.look()
    house.change(presence=presence)
    assert await house.look(HOUR) == []
    house.change(presence="there")
    assert await house.look(60) == expected


async def test_nothing_is_written_for_a_hook_that_is_off(house: House) -> None:
    await house.look()
    house.change(presence="off")
    for _ in range(3):
        assert await house.look(HOUR) == []
        assert await house.engine.last(schedule_subject_of("tick")) is None


async def test_another_timetable_counts_from_now(house: House) -> None:
    await house.look()
    house.now += HOUR - 1
    house.change(timetable="every 2h")
    assert await house.look(1) == []
    assert await house.look(2 * HOUR) == [0.0]


async def test_a_clock_that_is_put_back_a_little_tells_nobody_twice(house: House) -> None:
    await house.look()
    assert await house.look(HOUR) == [0.0]
    assert await house.look(-600) == []
    assert await house.look(600) == []
    assert await house.look(HOUR) == [0.0]


async def test_a_clock_that_was_quite_wrong_does_not_silence_a_hook(house: House) -> None:
    await house.look()
    assert len(await house.look(365 * 24 * HOUR)) == 1
    assert await house.look(-365 * 24 * HOUR + LONGEST_JUMP) == []
    assert await house.look(HOUR) == [0.0]


async def test_a_jump_forward_calls_nobody_until_it_is_confirmed(house: House) -> None:
    await house.look()
    house.jump = 30 * HOUR
    assert await house.look(30 * HOUR) == []
    assert await house.look(HOUR) == [0.0]
    house.jump = 0.0
    assert await house.look(60) == [60.0]


async def test_a_hook_that_is_gone_is_forgotten(house: House) -> None:
    await house.look()
    gone, house.planned = house.planned, []
    await house.look(HOUR)
    assert await house.engine.read("gw.schedule.>") == []
    house.planned = gone
    assert await house.look(HOUR) == []


async def test_the_journal_keeps_one_record_a_hook(house: House) -> None:
    for _ in range(5):
        await house.look(HOUR)
    assert len(await house.engine.read("gw.schedule.>")) == 1


async def test_what_a_durable_hook_is_owed_stands_in_the_journal_with_the_mark(house: House) -> None:
    house.change(is_durable=True)
    await house.look()
    await house.look(HOUR)
    (record,) = await house.engine.read("gw.ev.schedule.tick")
    emitted = records.decode(record.data)
    assert isinstance(emitted, records.EmittedEvent)
    assert emitted.fields["due"] == NOON + HOUR
    assert emitted.fields["id"] == house.told[0]["id"]


@pytest.mark.process
@pytest.mark.parametrize("delivery", ["memory", "durable"])
def test_a_hook_is_called_every_second_and_never_twice_for_one_time(tmp_path: Path, delivery: str) -> None:
    """Through a daemon that is killed in between."""
    handler = "def handle(event_type, context):\n    print(event_type, f\"due={context['due']:.3f}\")\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        manifest = f"schedule: every 1s\ndelivery: {delivery}\n"
        gateway.add_hook("tick", {"HOOK.yaml": manifest, "handler.py": handler})
        log = gateway.home.hook_logs / "tick.log"

        def times() -> list[float]:
            lines = log.read_text().splitlines() if log.exists() else []
            return [float(line.rpartition("due=")[2]) for line in lines if "schedule:tick" in line]

        gateway.start()
        # Between two times: what a durable hook has done and not yet acknowledged is told again, as promised.
        gateway.until(lambda: len(times()) >= 2 and not gateway.call("hooks.info", {"name": "tick"})["owed"])
        gateway.kill()
        before = len(times())
        gateway.start()
        gateway.until(lambda: len(times()) >= before + 2)
        gateway.stop()
        assert len(set(times())) == len(times())
        assert sorted(times()) == times()


@pytest.mark.process
def test_a_timetable_that_is_none_is_found_by_check(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    gateway.add_hook("tick", {"HOOK.yaml": "schedule: 0 25 * * *\n", "handler.py": "def handle(a, b):\n    pass\n"})
    done = gateway.cli("hooks", "check", "tick")
    assert done.returncode == 1
    assert "tick/HOOK.yaml:1:11: error: `schedule` has the hour '25'; it is 0 to 23" in done.stdout


async def test_a_hook_that_is_not_due_costs_nothing(house: House) -> None:
    house.planned = [ScheduledHook(f"h{at}", "0 9 * * *", "there", is_durable=False) for at in range(1000)]
    await house.look()
    calls = list[str]()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        await house.schedule.look()
    finally:
        sys.setprofile(None)
    assert len(calls) < 20

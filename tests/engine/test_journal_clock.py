"""The journal's clock goes on as time passes: through jumps of the wall clock, processes, and starts of the machine."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.engine.interface import NewRecord, Record
from gateway.engine.journal_clock import DAY, HOUR, Clock, JournalClock
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.conftest import JUMPS

BEGUN = 1_800_000_000.0


@dataclass
class Machine:
    """One that is started, runs, and whose wall clock is set."""

    wall: float = BEGUN
    since_start: float = 500.0
    starts: int = 1
    is_kept: bool = False  # by a time server

    def run(self, seconds: float) -> None:
        self.wall += seconds
        self.since_start += seconds

    def start_again(self, after: float, *, is_known: bool = True) -> None:
        """It was off for a while; a board without a clock does not know for how long."""
        self.wall += after if is_known else 0.0
        self.since_start, self.starts = 5.0, self.starts + 1

    @property
    def clock(self) -> Clock:
        return Clock(
            lambda: self.wall, lambda: self.since_start, lambda: self.since_start, self.starts, lambda: self.is_kept
        )


@pytest.fixture
def machine() -> Machine:
    return Machine()


def opened_again(clock: JournalClock, machine: Machine, meanwhile: Callable[[], None]) -> JournalClock:
    """The clock in the next process."""
    state = clock.get_state()
    meanwhile()
    after = JournalClock(machine.clock)
    after.resume(state, state.now)
    return after


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_changes_nothing_is_told_of_and_holds_removals_for_a_day(
    machine: Machine, jump: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock = JournalClock(machine.clock)
    machine.run(60)
    machine.wall += jump
    with caplog.at_level(logging.WARNING):
        clock.look()
    assert clock.read() == clock.latest() == BEGUN + 60
    assert clock.stamp() == max(BEGUN + 60, machine.wall)
    assert f"the clock was set {'forward' if jump > 0 else 'back'} by {abs(jump):.0f} s" in caplog.text
    for passed, is_held in ((DAY - 1, True), (2.0, False)):
        machine.run(passed)
        clock.look()
        assert clock.is_held is is_held
    assert len(caplog.records) == 1


@pytest.mark.parametrize("by", ["time", "a network", "a time server", "setting it back", "a next jump"])
def test_a_jump_forward_is_unconfirmed_until_something_confirms_it(machine: Machine, by: str) -> None:
    clock = JournalClock(machine.clock)
    machine.wall += DAY
    clock.learn(BEGUN)
    assert clock.find_unconfirmed_jump() == DAY
    clock = opened_again(clock, machine, lambda: machine.run(300))
    assert clock.find_unconfirmed_jump() == DAY
    match by:
        case "time":
            machine.run(299)
            assert clock.find_unconfirmed_jump() == DAY
            machine.run(1)
        case "a network":
            clock.learn(machine.wall - 1)
        case "a time server":
            machine.is_kept = True
        case "setting it back":
            machine.wall -= DAY - 600
        case _:
            machine.wall += DAY
            assert clock.find_unconfirmed_jump() == 2 * DAY
            machine.run(600)
    assert clock.find_unconfirmed_jump() == 0.0
    clock = opened_again(clock, machine, lambda: machine.run(60))
    assert clock.find_unconfirmed_jump() == 0.0


@pytest.mark.parametrize("asleep", [HOUR * 3, DAY * 3])
def test_a_machine_that_slept_has_no_jump(machine: Machine, asleep: float) -> None:
    clock = JournalClock(machine.clock)
    machine.run(asleep)
    assert clock.find_unconfirmed_jump() == 0.0
    assert opened_again(clock, machine, lambda: machine.run(asleep)).find_unconfirmed_jump() == 0.0
    assert opened_again(clock, machine, lambda: machine.start_again(asleep)).find_unconfirmed_jump() == 0.0


def test_what_time_servers_do_is_no_jump(machine: Machine) -> None:
    clock = JournalClock(machine.clock)
    for _ in range(50):
        machine.run(HOUR)
        machine.wall += 30.0
        clock.look()
    assert not clock.is_held
    assert clock.read() == BEGUN + 50 * HOUR


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_between_two_processes_changes_nothing(machine: Machine, jump: float) -> None:
    clock = JournalClock(machine.clock)

    def meanwhile() -> None:
        machine.run(600)
        machine.wall += jump

    after = opened_again(clock, machine, meanwhile)
    assert after.read() == after.latest() == BEGUN + 600
    assert after.is_held


def test_what_passed_while_nobody_was_there_counts_an_hour_later(machine: Machine) -> None:
    after = opened_again(JournalClock(machine.clock), machine, lambda: machine.run(20 * DAY))
    assert (after.read(), after.latest()) == (BEGUN, BEGUN + 20 * DAY)
    machine.run(HOUR + 1)
    after.look()
    assert after.read() == after.latest() == BEGUN + 20 * DAY + HOUR + 1
    assert not after.is_held


@pytest.mark.parametrize(("told", "known"), [(0.0, 0.0), (5 * DAY, 5 * DAY), (30 * DAY, 20 * DAY)])
def test_over_a_start_of_the_machine_it_needs_a_network_that_agrees(
    machine: Machine, told: float, known: float
) -> None:
    """A wall clock that is right, and a network that says nothing, an older time, or one that is wrong."""
    after = opened_again(JournalClock(machine.clock), machine, lambda: machine.start_again(20 * DAY))
    assert after.latest_possible() == BEGUN + 20 * DAY, "what must not last does not last"
    after.learn(BEGUN + told)
    assert (after.read(), after.latest()) == (BEGUN, BEGUN + known)
    machine.run(2 * HOUR)
    after.look()
    assert after.read() - BEGUN == pytest.approx(max(min(told, 20 * DAY + 2 * HOUR), 2 * HOUR))


@pytest.mark.parametrize("jump", [-20 * 365 * DAY, *JUMPS])
def test_a_board_without_a_clock_makes_nothing_old(machine: Machine, jump: float) -> None:
    def meanwhile() -> None:
        machine.start_again(DAY, is_known=False)
        machine.wall += jump

    after = opened_again(JournalClock(machine.clock), machine, meanwhile)
    after.learn(BEGUN + DAY)
    assert BEGUN <= after.latest() <= BEGUN + DAY
    machine.run(DAY)
    after.look()
    assert after.read() <= BEGUN + 2 * DAY


@pytest.mark.parametrize("jump", JUMPS)
def test_of_what_the_wall_clock_was_set_by_nothing_is_believed(machine: Machine, jump: float) -> None:
    clock = JournalClock(machine.clock)
    machine.run(60)
    assert clock.calculate_difference() == 0
    machine.wall += jump
    assert clock.calculate_difference() == pytest.approx(jump), "before anybody has looked"
    clock.look()
    machine.run(2 * DAY)
    clock.look()
    assert clock.calculate_difference() == pytest.approx(jump)


@pytest.mark.parametrize(("off", "believed"), [(20 * DAY, 20 * DAY), (400 * DAY, 0.0)])
def test_over_a_start_of_the_machine_the_wall_clock_is_believed_as_far_as_it_may_be_right(
    machine: Machine, off: float, believed: float
) -> None:
    after = opened_again(JournalClock(machine.clock), machine, lambda: machine.start_again(off))
    again = opened_again(after, machine, lambda: machine.run(5.0))
    for clock in (after, again):
        assert machine.wall - clock.calculate_difference() == pytest.approx(BEGUN + believed, abs=10)
    again.learn(BEGUN + off)
    assert again.calculate_difference() == 0, "a network agrees"


async def test_the_journal_keeps_it_also_where_it_was_not_closed(machine: Machine, tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    async with await open_sqlite(path, clock=machine.clock) as engine:
        await engine.append(NewRecord("a.x", b"1", ttl=60))
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copy)) as into:
            db.backup(into)
    for kept in (path, copy):
        async with await open_sqlite(kept, clock=machine.clock) as engine:
            machine.wall += 400 * DAY
            assert [record.data for record in await engine.read(">")] == [b"1"]


async def test_a_journal_of_an_older_version_opens_as_it_is_and_loses_nothing(machine: Machine, tmp_path: Path) -> None:
    """Its records have their limits, and nothing says where a clock was; the machine was off for weeks since."""
    path = tmp_path / "journal.db"
    async with await open_sqlite(path, clock=machine.clock) as engine:
        await engine.append(NewRecord("gw.in.x", b"1", ttl=14 * DAY), NewRecord("gw.in.y", b"2", ttl=14 * DAY))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM counter WHERE name LIKE 'clock%'")
        db.commit()
    machine.start_again(50 * DAY)
    async with await open_sqlite(path, clock=machine.clock) as engine:
        engine.clock.learn(machine.wall)
        machine.run(HOUR)
        found: list[Record] = await engine.read("gw.in.*")
        assert [record.data for record in found] == [b"1", b"2"]


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("is_seen", [False, True])
def test_a_stamp_and_its_difference_tell_how_long_it_was(machine: Machine, jump: float, *, is_seen: bool) -> None:
    clock = JournalClock(machine.clock)
    machine.run(60)
    before = clock.stamp() - clock.calculate_stamp_difference()
    machine.wall += jump
    if is_seen:
        clock.look()
    machine.run(5)
    assert clock.stamp() - clock.calculate_stamp_difference() - before == pytest.approx(5)

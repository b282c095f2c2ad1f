"""Figures over time: a record a half hour in a ring, added up over nodes and runs, whatever the clock does."""

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.interface import NewRecord
from gateway.errors import EngineError
from gateway.figures.answers import figures
from gateway.figures.half_hours import DAY, HALF_HOUR, HalfHours, begin_of
from gateway.figures.verbs import FiguresParams
from gateway.histogram import SECONDS
from gateway.records.figures import HalfHour, WorkTotal
from gateway.testing import GatewayProcess
from tests.spine import SetClock, engine  # noqa: F401 - a fixture

NOON = 1_800_000_000 // DAY * DAY + DAY // 2
LARGEST = 200_000  # bytes of a node
TIMES = (0,) * 5 + (3,) + (0,) * (len(SECONDS) - 5)


class Sums:
    """The counts of a process since its start."""

    def __init__(self) -> None:
        self.now = HalfHour(times=(0,) * len(TIMES))

    def add(self, turns: int = 1, hooks: tuple[tuple[str, int, int], ...] = (), network: str = "terminal") -> None:
        now = self.now
        known = {name: now.hooks.get(name, (0, 0)) for name, _, _ in hooks}
        called = {name: (known[name][0] + calls, known[name][1] + failed) for name, calls, failed in hooks}
        self.now = replace(
            now,
            work=now.work + WorkTotal(turns=turns, tokens=10 * turns, cost=0.5 * turns),
            times=tuple(one + more for one, more in zip(now.times, TIMES, strict=True)),
            messages={**now.messages, network: now.messages.get(network, 0) + turns},
            hooks={**now.hooks, **called},
        )


def keeper_of(engine, sums, clock, node="one") -> HalfHours:  # noqa: F811
    return HalfHours(engine, node, lambda: sums.now, clock)


async def spans_of(keeper, by="half_hour") -> list[Any]:
    return list((await figures(keeper, FiguresParams(by)))["spans"])


async def test_a_half_hour_is_what_was_counted_since_the_last_and_an_empty_one_is_not_written(engine):  # noqa: F811
    clock, sums = SetClock(NOON), Sums()
    keeper = keeper_of(engine, sums, clock)
    sums.add(2, (("greet", 4, 1),))
    clock.now += HALF_HOUR
    await keeper.write()
    clock.now += HALF_HOUR
    await keeper.write()  # nothing has happened
    sums.add(1, (("greet", 1, 0),))
    assert len(await engine.read("gw.figures.>", limit=100)) == 2  # the half hour, and its day
    spans = await spans_of(keeper)
    assert [(one["at"] - NOON, one["work"]["turns"]) for one in spans] == [(0, 2), (2 * HALF_HOUR, 1)]
    assert spans[0]["work"] == {"turns": 2, "failed": 0, "tokens": 20, "cost": 1.0, "calls": 4, "failures": 1}
    assert (spans[0]["hooks"], spans[1]["hooks"]) == ({"greet": (4, 1)}, {"greet": (1, 0)})
    hours = await spans_of(keeper, "hour")
    assert [(one["at"] - NOON, one["work"]["turns"]) for one in hours] == [(0, 2), (3600, 1)]


async def test_a_restart_and_a_second_node_are_added_up(engine):  # noqa: F811
    clock = SetClock(NOON + 60)
    for node, turns in (("one", 1), ("one", 2), ("two", 4)):
        sums = Sums()
        keeper = keeper_of(engine, sums, clock, node)
        sums.add(turns)
        await keeper.write()
    (span,) = await spans_of(keeper)
    assert (span["work"]["turns"], span["times"], span["messages"]) == (
        7,
        tuple(3 * one for one in TIMES),
        {"terminal": 7},
    )


async def test_the_ten_hooks_that_matter_most_have_their_own_counts(engine):  # noqa: F811
    clock, sums = SetClock(NOON), Sums()
    keeper = keeper_of(engine, sums, clock)
    sums.add(1, (*((f"busy{n:02}", 100 - n, 0) for n in range(20)), ("broken", 1, 1)))
    await keeper.write()
    (span,) = await spans_of(keeper)
    assert span["hooks"] == {"broken": (1, 1), **{f"busy{n:02}": (100 - n, 0) for n in range(9)}}
    assert span["work"]["calls"] == sum(100 - n for n in range(20)) + 1


async def test_a_node_keeps_less_than_200_kb_however_its_clock_is_set(engine):  # noqa: F811
    chance, clock, sums = random.Random(7), SetClock(NOON), Sums()
    keeper = keeper_of(engine, sums, clock)
    names = [f"{n:02}-{'x' * 60}" for n in range(40)]
    for _ in range(250):
        clock.now = NOON + chance.choice((1, 1, 1, 400)) * chance.randrange(60 * DAY)
        sums.add(987_654_321, tuple((name, chance.randrange(10**6), 10**5) for name in chance.sample(names, 20)))
        await keeper.write()
    kept = [*await engine.read("gw.figures.>", limit=1000)]
    assert len(kept) <= 96 + 30
    assert sum(len(one.subject) + len(one.data) for one in kept) < LARGEST


async def test_what_cannot_be_written_now_is_written_with_the_next(engine):  # noqa: F811
    class Full:
        """A journal whose disk is full."""

        is_full = True

        def __getattr__(self, name):
            return getattr(engine, name)

        async def append(self, *puts: NewRecord):
            if self.is_full:
                raise EngineError("the disk is full")
            return await engine.append(*puts)

    clock, sums, full = SetClock(NOON), Sums(), Full()
    keeper = keeper_of(full, sums, clock)
    sums.add(1)
    await keeper.write()
    sums.add(2)
    full.is_full = False
    await keeper.write()
    (span,) = await spans_of(keeper)
    assert span["work"]["turns"] == 3


@pytest.mark.process
def test_a_gateway_without_a_port_keeps_them_over_a_stop(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("web: {enabled: false}\n")
        gateway.add_hook("notes", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(*_): pass\n"})
        gateway.start()
        gateway.say("what is 2 + 3")
        gateway.until(lambda: count(gateway, "turns") == count_calls(gateway) == 1)
        assert (count(gateway, "turns"), count(gateway, "failed")) == (1, 0)
        gateway.stop()
        gateway.start()
        assert (count(gateway, "turns"), count_calls(gateway)) == (1, 1)
        gateway.say("what is 3 + 3")
        gateway.until(lambda: count(gateway, "turns") == count_calls(gateway) == 2)
        spans = gateway.call("figures")["spans"]
    assert sum(sum(one["times"]) for one in spans) == sum(one["work"]["turns"] for one in spans) == 2
    assert {"terminal"} == {network for one in spans for network in one["messages"]}


def count(gateway: GatewayProcess, what: str) -> int:
    return sum(one["work"][what] for one in gateway.call("figures")["spans"])


def count_calls(gateway: GatewayProcess) -> int:
    return sum(one.get("hooks", {}).get("notes", (0, 0))[0] for one in gateway.call("figures")["spans"])


def test_a_time_belongs_to_the_half_hour_in_which_it_is() -> None:
    assert [begin_of(NOON + one, HALF_HOUR) - NOON for one in (0, 1799.9, 1800)] == [0, 0, 1800]

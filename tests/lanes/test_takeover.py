"""Two nodes on one journal: a dead one is replaced, one that wakes late writes nothing, and nothing happens twice."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from msgspec import structs
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.engine.journal_clock import Clock
from gateway.engine.sqlite.engine import open_sqlite
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from tests.audit import audit
from tests.engine.memory_engine import MemoryEngine
from tests.lanes.desk import QUICK, Watched, echo, served
from tests.late import Gate, Late
from tests.spine import key, replies, until

NODES = replace(QUICK, lease=1.0, ack_wait=1.0)  # a node that the machine forgets for a moment is none that is dead
TICK = 0.02


class ProcessClock:
    """The seconds in which this process runs: while the machine stands still, none pass for any node."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now

    async def run(self) -> None:
        while True:
            before = time.monotonic()
            await anyio.sleep(TICK)
            self.now += min(time.monotonic() - before, 5 * TICK)


@pytest.fixture(params=["memory", "sqlite"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    steady = ProcessClock()
    clock = Clock(steady=steady)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(steady.run)
        if request.param == "memory":
            async with MemoryEngine(clock=clock) as memory:
                yield memory
        else:
            async with await open_sqlite(tmp_path / "journal.db", clock=clock) as sqlite:
                yield sqlite
        tasks.cancel_scope.cancel()


async def test_a_node_that_lives_keeps_its_turn_however_long_it_takes(engine: Engine) -> None:
    slow = Watched()
    slow.acts["work"] = slow.hold
    async with served(engine, slow, NODES, node="a") as one:
        seq = await one.say("work")
        await one.running(1)
        async with served(engine, settings=NODES, node="b") as two:
            await two.say("next")  # its doorbell may ring at either node
            await anyio.sleep(2.5)
            assert two.work.runs == []
            slow.gate.set()
            await two.answered(seq)
            last = await two.say("last")
            await two.answered(last)
    found = await audit(engine)
    assert found.faults == []
    assert found.retries == 0


@pytest.mark.parametrize("moment", ["step", "commit"])
async def test_a_node_that_was_paused_commits_nothing_when_it_wakes_up(engine: Engine, moment: str) -> None:
    gate, effects = Gate(), []
    wake = anyio.Event()

    async def zombie(turn: LaneTurn) -> LaneResult:
        gate.pause()
        wake.set()
        if moment == "step":
            started = records.ToolStarted(turn_id=turn.turn_id, call_id="c", name="pay", args={})
            await turn.record(started)
            effects.append("paid by a zombie")
        return echo(turn, "late ")

    async def heir(turn: LaneTurn) -> LaneResult:
        effects.append(f"try {turn.open.attempt}")
        return echo(turn)

    async with served(Late(engine, gate), Watched({"work": zombie}), NODES, node="a") as one:
        said = anyio.create_task_group()
        async with said:
            said.start_soon(one.say, "work")
            await wake.wait()
            async with served(engine, Watched({"work": heir}), NODES, node="b") as two:
                (record,) = await engine.read(subjects.session_subject_of("in", key()))
                await two.answered(record.seq)
                gate.go_on()
                await until(lambda: one.work.now == 0)
                await anyio.sleep(0.05)
    assert effects == ["try 2"]
    assert await replies(engine) == ["re work"]
    found = await audit(engine)
    assert (found.faults, found.turns) == ([], 1)


async def test_steps_of_a_dead_node_are_handed_to_the_next(engine: Engine) -> None:
    gate, dead = Gate(), anyio.Event()

    async def dies(turn: LaneTurn) -> LaneResult:
        await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=Entry("assistant", "hm")))
        await turn.record(records.ToolStarted(turn_id=turn.turn_id, call_id="c", name="t", args={}, repeatable=True))
        gate.pause()
        dead.set()
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")

    async with served(Late(engine, gate), Watched({"work": dies}), NODES, node="a") as one:
        seq = await one.say("work")
        await dead.wait()
        async with served(engine, settings=NODES, node="b") as two:
            await two.answered(seq)
        one.tasks.cancel_scope.cancel()
        gate.go_on()
    (turn,) = two.work.runs
    assert (turn.open.attempt, turn.resumed) == (2, True)
    assert [type(step) for step in turn.open.steps] == [records.LlmStep, records.ToolStarted]


async def test_a_stop_reaches_the_node_that_runs_the_turn(engine: Engine) -> None:
    async def polite(turn: LaneTurn) -> LaneResult:
        with turn.scope:
            await anyio.sleep_forever()
        return structs.replace(echo(turn, "stopped "), status="interrupted")

    async with served(engine, Watched({"work": polite}), NODES, node="a") as one:
        seq = await one.say("work")
        await one.running(1)
        async with served(engine, settings=NODES, node="b") as two:
            assert await two.lanes.interrupt(key()) == "running"
            session = await two.answered(seq)
    assert session.entries[-1].content == "stopped work"


async def test_two_nodes_share_the_work_and_the_order_holds(engine: Engine) -> None:
    settings = replace(NODES, folded=1, ack_wait=1.0, lease=1.0)
    async with served(engine, settings=settings, node="a") as one, served(engine, settings=settings, node="b") as two:
        last = {}
        for number in range(20):
            for chat in "12345":
                last[chat] = await (one, two)[number % 2].say(f"{number}", chat)
        for chat, seq in last.items():
            await one.answered(seq, chat)
    for chat in last:
        assert await replies(engine, chat) == [f"re {number}" for number in range(20)]
    assert (await audit(engine)).faults == []
    assert len(one.work.runs) + len(two.work.runs) == 100

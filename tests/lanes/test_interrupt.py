"""Stopping a turn: by the person, by a message that wants to be answered now, by the end of the process."""

import anyio
import pytest
from msgspec import structs
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.lanes.context import LanePorts, interrupt_on_text
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.transcript import Entry, ToolCall
from gateway.records import records
from tests.lanes.desk import QUICK, Watched, echo, served
from tests.spine import key, replies, turn_chain, until


async def polite(turn: LaneTurn) -> LaneResult:
    """Notices the stop, and says how far it came."""
    with turn.scope:
        await anyio.sleep_forever()
    assert turn.scope.cancelled_caught
    stopped = echo(turn, "stopped at ")
    return structs.replace(stopped, status="interrupted")


async def deaf(_turn: LaneTurn) -> LaneResult:
    """Does not know of stops."""
    await anyio.sleep_forever()
    raise AssertionError("slept for ever")


async def test_a_stopped_turn_says_how_far_it_came(engine: Engine) -> None:
    async with served(engine, Watched({"work": polite})) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        assert await desk.lanes.interrupt(key()) == "running"
        session = await desk.answered(seq)
        assert [entry.content for entry in session.entries] == ["work", "stopped at work"]
        assert await desk.lanes.interrupt(key()) == "nothing"
    assert (await turn_chain(engine))[-1].status == "interrupted"


async def test_a_turn_that_does_not_listen_is_cut_off_and_leaves_what_it_had_done(engine: Engine) -> None:
    async def busy(turn: LaneTurn) -> LaneResult:
        calls = (ToolCall("c1", "look"), ToolCall("c2", "dig"))
        await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=Entry("assistant", "hm", calls)))
        found = Entry("tool", "found", call_id="c1", name="look")
        await turn.record(records.ToolFinished(turn_id=turn.turn_id, call_id="c1", entry=found))
        return await deaf(turn)

    async with served(engine, Watched({"work": busy})) as desk:
        seq = await desk.say("work")

        async def is_under_way() -> bool:
            turn = (await desk.session()).turn
            return bool(turn and len(turn.steps) == 2)

        await until(is_under_way)
        assert await desk.lanes.interrupt(key()) == "running"
        session = await desk.answered(seq)
    assert [(entry.role, entry.content, entry.call_id) for entry in session.entries] == [
        ("user", "work", ""),
        ("assistant", "hm", ""),
        ("tool", "found", "c1"),
        ("tool", "interrupted; the outcome is unknown", "c2"),
    ]


async def test_after_a_stop_the_messages_that_waited_are_answered(engine: Engine) -> None:
    async with served(engine, Watched({"work": polite})) as desk:
        await desk.say("work")
        await desk.running(1)
        seq = await desk.say("and this")
        await desk.lanes.interrupt(key())
        await desk.answered(seq)
    assert await replies(engine) == ["stopped at work", "re and this"]


async def test_by_default_a_message_waits_until_the_turn_is_done(engine: Engine) -> None:
    work = Watched()
    work.acts["slow"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("slow")
        await desk.running(1)
        seq = await desk.say("patience")
        await anyio.sleep(0.02)
        work.gate.set()
        await desk.answered(seq)
    assert await replies(engine) == ["re slow", "re patience"]


@pytest.mark.parametrize("act", [polite, deaf])
async def test_a_message_that_interrupts_ends_the_turn_and_both_texts_are_kept(engine: Engine, act) -> None:
    settings = replace(QUICK, ports=LanePorts(interrupts=lambda message: message.text.startswith("no")))
    async with served(engine, Watched({"work": act}), settings) as desk:
        await desk.say("work")
        await desk.running(1)
        await desk.say("well")
        session = await desk.answered(await desk.say("no, rather this"))
    said = [entry.content for entry in session.entries if entry.role == "user"]
    assert said[0] == "work"
    assert " + ".join(said[1:]) == "well + no, rather this"


async def test_a_text_does_not_cut_off_the_turn_of_a_job_and_a_stop_does(engine: Engine) -> None:
    async def wait(turn: LaneTurn) -> LaneResult:
        with turn.scope:
            await work.gate.wait()
        return echo(turn, "cut off at " if turn.scope.cancelled_caught else "re ")

    work, settings = Watched({"stop me": polite}), replace(QUICK, ports=LanePorts(interrupts=interrupt_on_text))
    work.acts["the job"] = wait
    async with served(engine, work, settings) as desk:
        await desk.say("the job", is_job=True)
        await desk.running(1)
        seq = await desk.say("hello")
        await desk.answered(await desk.say("after it", "2"), "2")  # so the lanes have seen the first
        work.gate.set()
        await desk.answered(seq)
        seq = await desk.say("stop me", is_job=True)
        await desk.running(4)
        assert await desk.lanes.interrupt(key()) == "running"
        await desk.answered(seq)
    assert await replies(engine) == ["re the job", "re hello", "stopped at stop me"]


async def test_a_stop_between_two_tries_ends_the_turn(engine: Engine) -> None:
    async def fail(_turn: LaneTurn) -> LaneResult:
        raise RuntimeError("no luck")

    async with served(engine, Watched({"work": fail}), replace(QUICK, pauses=(60.0,))) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        await until(lambda: desk.work.now == 0)
        await anyio.sleep(0.01)
        assert await desk.lanes.interrupt(key()) == "running"
        session = await desk.answered(seq)
    assert len(desk.work.runs) == 1
    assert [entry.content for entry in session.entries] == ["work"]


async def test_a_drain_lets_the_running_turn_end_and_begins_no_other(engine: Engine) -> None:
    work = Watched()
    work.acts["slow"] = work.hold
    async with served(engine, work) as desk:
        first = await desk.say("slow")
        await desk.running(1)
        second = await desk.say("later")
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                assert await desk.lanes.drain(5)

            tasks.start_soon(drain)
            await anyio.sleep(0.02)
            work.gate.set()
        session = await desk.session()
        assert first
        assert session.upto == first
    async with served(engine) as desk:
        await desk.answered(second)
    assert await replies(engine) == ["re slow", "re later"]


async def test_a_turn_that_does_not_end_in_time_goes_on_after_the_restart_without_a_lost_try(engine: Engine) -> None:
    async def slow(turn: LaneTurn) -> LaneResult:
        if not turn.open.steps:
            await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=Entry("assistant", "hm")))
        return await deaf(turn)

    async def quick(turn: LaneTurn) -> LaneResult:
        return echo(turn, f"try {turn.open.attempt}, {len(turn.open.steps)} step, ")

    seq = None
    for restart in range(5):
        async with served(engine, Watched({"work": slow})) as desk:
            seq = await desk.say("work") if restart == 0 else seq
            await desk.running(1)
            assert not await desk.lanes.drain(0.01)
            assert desk.lanes.running == 0
    async with served(engine, Watched({"work": quick})) as desk:
        await desk.answered(seq)
    assert await replies(engine) == ["try 1, 1 step, work"]

"""A turn that asks a person gives up its claim, and runs again with the answer; no turn waits for ever."""

import anyio
import pytest
from msgspec import structs

from gateway.engine.interface import Engine, NewRecord
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Reply
from gateway.messages.transcript import Entry
from gateway.records import records
from tests.lanes.desk import Watched, echo, served
from tests.spine import SetClock, key, replies, turn_chain, until


async def asks(turn: LaneTurn) -> LaneResult:
    """Do one step, ask two questions, and answer with the answers."""
    if not turn.open.steps:
        await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=Entry("assistant", "hm")))
    missing = {name: f"{name}?" for name in ("red", "blue") if name not in turn.open.answers}
    if missing:
        prompts = tuple(Reply(name, turn.messages[0].address, text) for name, text in missing.items())
        return LaneResult(questions=missing, replies=prompts, wait=60.0)
    return echo(turn, f"red {turn.open.answers['red']}, blue {turn.open.answers['blue']}: ")


async def waiting(desk, count: int = 2) -> None:
    async def is_waiting() -> bool:
        turn = (await desk.session()).turn
        return bool(turn and turn.is_waiting and len(turn.questions) == count)

    await until(is_waiting, "the question")


async def test_a_turn_runs_again_when_all_its_questions_are_answered(engine: Engine) -> None:
    async with served(engine, Watched({"may I": asks})) as desk:
        seq = await desk.say("may I")
        await waiting(desk)
        assert await replies(engine) == ["red?", "blue?"]
        assert desk.lanes.running == 0, "who waits takes no slot"
        assert await desk.lanes.answer(key(), "red", True, by="net:ann")
        await waiting(desk, 1)
        assert len(desk.work.runs) == 1
        assert await desk.lanes.answer(key(), "blue", "no")
        session = await desk.answered(seq)
    first, second = desk.work.runs
    assert first.turn_id == second.turn_id
    assert (second.resumed, second.open.attempt, len(second.open.steps)) == (True, 1, 1)
    assert second.open.asked == {"red": "red?", "blue": "blue?"}
    assert session.entries[-1].content == "red True, blue no: may I"
    answered = [one for one in await turn_chain(engine) if isinstance(one, records.QuestionAnswered)]
    assert [(one.name, one.by) for one in answered] == [("red", "net:ann"), ("blue", "")]


@pytest.mark.row("STR-55")
async def test_messages_wait_behind_a_question_and_are_not_forgotten(engine: Engine) -> None:
    async with served(engine, Watched({"may I": asks})) as desk:
        await desk.say("may I")
        await waiting(desk)
        seq = await desk.say("meanwhile")
        assert (await desk.lanes.queue_position(key())).is_waiting
        for name in ("red", "blue"):
            await desk.lanes.answer(key(), name, 1)
        await desk.answered(seq)
    assert (await replies(engine))[2:] == ["red 1, blue 1: may I", "re meanwhile"]


@pytest.mark.row("STR-55")
async def test_an_answer_counts_once_and_only_to_a_question_that_is_open(engine: Engine) -> None:
    async with served(engine, Watched({"may I": asks})) as desk:
        assert not await desk.lanes.answer(key(), "red", 1)
        await desk.say("may I")
        await waiting(desk)
        assert not await desk.lanes.answer(key(), "green", 1)
        assert await desk.lanes.answer(key(), "red", 1, "ann", NewRecord("gw.cur.net.bot", b"1"), msg_id="m1")
        assert not await desk.lanes.answer(key(), "red", 2)
        assert await desk.lanes.answer(key(), "blue", 3, "ann", NewRecord("gw.cur.net.bot", b"2"), msg_id="m1")
        await waiting(desk, 1)
        assert [one.data for one in await engine.read("gw.cur.>")] == [b"1", b"2"]


async def test_a_question_that_nobody_answers_in_time_is_answered_with_nothing(engine: Engine) -> None:
    async def impatient(turn: LaneTurn) -> LaneResult:
        outcome = await asks(turn)
        return structs.replace(outcome, wait=3.0)

    clock = SetClock()
    async with served(engine, Watched({"may I": impatient}), clock=clock) as desk:
        seq = await desk.say("may I")
        await waiting(desk)
        await desk.lanes.answer(key(), "red", 1)
        clock.now += 4
        session = await desk.answered(seq)
        assert not await desk.lanes.answer(key(), "blue", 1)
    assert session.entries[-1].content == "red 1, blue None: may I"


async def test_a_question_outlives_the_process(engine: Engine) -> None:
    clock = SetClock()
    async with served(engine, Watched({"may I": asks}), clock=clock) as desk:
        seq = await desk.say("may I")
        await waiting(desk)
    async with served(engine, Watched({"may I": asks}), clock=clock) as desk:
        await anyio.sleep(0.02)
        assert desk.work.runs == []
        await desk.lanes.answer(key(), "red", 1)
    clock.now += 61
    async with served(engine, Watched({"may I": asks}), clock=clock) as desk:
        session = await desk.answered(seq)
    assert session.entries[-1].content == "red 1, blue None: may I"


async def test_an_answer_that_comes_while_nobody_runs_wakes_the_lane_later(engine: Engine) -> None:
    async with served(engine, Watched({"may I": asks})) as desk:
        seq = await desk.say("may I")
        await waiting(desk)
        lanes = desk.lanes
    for name in ("red", "blue"):
        await lanes.answer(key(), name, 1)
    async with served(engine, Watched({"may I": asks})) as desk:
        await desk.answered(seq)


async def test_a_stop_withdraws_the_question(engine: Engine) -> None:
    async with served(engine, Watched({"may I": asks})) as desk:
        seq = await desk.say("may I")
        await waiting(desk)
        after = await desk.say("next")
        assert await desk.lanes.interrupt(key()) == "waiting"
        session = await desk.answered(after)
        assert not await desk.lanes.answer(key(), "red", 1)
    assert seq
    assert [entry.content for entry in session.entries] == ["may I", "hm", "next", "re next"]
    assert len(desk.work.runs) == 2

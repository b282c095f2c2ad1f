"""A failed turn is tried again from its steps, then given up with an apology; the conversation always goes on."""

import contextlib
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import Conflict, EngineError
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Reply
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions import transitions
from tests.lanes.desk import QUICK, Watched, echo, served
from tests.spine import chain, change_session, key, replies, turn_chain, until


def step(turn: LaneTurn, text: str) -> records.LlmStep:
    return records.LlmStep(turn_id=turn.turn_id, hop=len(turn.open.steps), entry=Entry("assistant", text))


async def test_a_failed_turn_runs_again_from_its_steps(engine: Engine) -> None:
    async def fails_twice(turn: LaneTurn) -> LaneResult:
        if turn.open.attempt < 3:
            await turn.record(step(turn, f"step {turn.open.attempt}"))
            raise RuntimeError("no luck")
        return echo(
            turn, " ".join(one.entry.content for one in turn.open.steps if isinstance(one, records.LlmStep)) + " "
        )

    async with served(engine, Watched({"try": fails_twice})) as desk:
        await desk.answered(await desk.say("try"))
    assert await replies(engine) == ["step 1 step 2 try"]
    assert len({turn.turn_id for turn in desk.work.runs}) == 1
    assert [turn.resumed for turn in desk.work.runs] == [False, True, True]
    assert [turn.begins_session for turn in desk.work.runs] == [True] * 3, "its events are repeated too"


async def test_after_three_tries_an_apology_and_a_dead_letter(engine: Engine) -> None:
    async def fails(_turn: LaneTurn) -> LaneResult:
        raise RuntimeError("no luck")

    async with served(engine, Watched({"poison": fails}), replace(QUICK, apology="so sorry")) as desk:
        poison = await desk.say("poison")
        await desk.running(1)
        session = await desk.answered(await desk.say("next"))
    assert [turn.open.attempt for turn in desk.work.runs] == [1, 2, 3, 1]
    assert await replies(engine) == ["so sorry", "re next"]
    (dead,) = await chain(engine, "gw.dead.turns.*")
    assert (dead.attempts, dead.reason, dead.seq) == (3, "RuntimeError: no luck", poison)
    inbound = records.decode(dead.data)
    assert isinstance(inbound, records.InboundMessage)
    assert inbound.message.text == "poison"
    failed = next(one for one in await turn_chain(engine) if isinstance(one, records.TurnEnded))
    assert (failed.status, failed.upto) == ("failed", poison)
    assert [entry.content for entry in session.entries] == ["next", "re next"]


async def test_a_setting_changed_from_outside_does_not_disturb_the_turn(engine: Engine) -> None:
    work = Watched()

    async def steps(turn: LaneTurn) -> LaneResult:
        await work.gate.wait()
        await turn.record(step(turn, "a"))
        return echo(turn)

    work.acts["work"] = steps
    async with served(engine, work) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        await change_session(desk.sessions, key(), lambda _: transitions.change_title("meanwhile"))
        work.gate.set()
        session = await desk.answered(seq)
    assert session.title == "meanwhile"
    assert len(work.runs) == 1


async def test_a_session_that_is_reset_from_outside_takes_its_turn_and_answers_in_the_new_one(engine: Engine) -> None:
    work, refused = Watched(), []

    async def steps(turn: LaneTurn) -> LaneResult:
        if len(work.runs) > 1:
            return echo(turn)
        await work.gate.wait()
        try:
            await turn.record(step(turn, "a"))
        except Conflict as error:
            refused.append(error)
            raise
        raise AssertionError("a side effect after the turn was lost")

    work.acts["work"] = steps
    async with served(engine, work) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        first = await desk.session()
        await change_session(desk.sessions, key(), lambda session: transitions.begin_session(session, 0.0, "new"))
        work.gate.set()
        session = await desk.answered(seq)
    assert len(refused) == 1
    assert session.session_id != first.session_id
    assert [entry.content for entry in session.entries] == ["work", "re work"]
    assert await replies(engine) == ["re work"]


async def test_work_that_swallows_the_conflict_is_stopped_all_the_same(engine: Engine) -> None:
    work, effects = Watched(), []

    async def stubborn(turn: LaneTurn) -> LaneResult:
        if len(work.runs) > 1:
            return echo(turn)
        await work.gate.wait()
        with pytest.raises(Conflict):
            await turn.record(step(turn, "a"))
        await anyio.lowlevel.checkpoint()
        effects.append("too late")
        return echo(turn)

    work.acts["work"] = stubborn
    async with served(engine, work) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        await change_session(desk.sessions, key(), lambda session: transitions.begin_session(session, 0.0, "new"))
        work.gate.set()
        await desk.answered(seq)
    assert effects == []
    assert await replies(engine) == ["re work"]


async def test_what_is_said_in_the_middle_is_said_once_however_often_the_turn_runs(engine: Engine) -> None:
    async def talks(turn: LaneTurn) -> LaneResult:
        at = turn.messages[0].address
        await turn.say(Reply(f"{turn.turn_id}:1", at, "just a moment"))
        if not turn.open.steps:
            await turn.record(step(turn, "a"), Reply(f"{turn.turn_id}:2", at, "half done"))
        await turn.say(Reply(f"{turn.turn_id}:1", at, "just a moment"))
        if turn.open.attempt < 3:
            raise RuntimeError("no luck")
        return echo(turn)

    async with served(engine, Watched({"work": talks})) as desk:
        await desk.answered(await desk.say("work"))
    assert await replies(engine) == ["just a moment", "half done", "re work"]


async def test_steps_of_tools_that_run_side_by_side_are_all_written(engine: Engine) -> None:
    async def parallel(turn: LaneTurn) -> LaneResult:
        async def tool(number: int) -> None:
            await turn.record(
                records.ToolStarted(turn_id=turn.turn_id, call_id=str(number), name="t", args={}, repeatable=True)
            )

        async with anyio.create_task_group() as tools:
            for number in range(10):
                tools.start_soon(tool, number)
        return echo(turn)

    async with served(engine, Watched({"work": parallel})) as desk:
        await desk.answered(await desk.say("work"))
    started = [one for one in await turn_chain(engine) if isinstance(one, records.ToolStarted)]
    assert sorted(one.call_id for one in started) == [str(number) for number in range(10)]


async def test_a_turn_whose_messages_are_gone_is_closed(engine: Engine) -> None:
    work = Watched()
    work.acts["work"] = work.hold
    async with served(engine, work) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        await desk.lanes.drain(0)
    await engine.purge(subjects.session_subject_of("in", key()))
    async with served(engine) as desk:
        await desk.answered(await desk.say("next"))
        assert desk.work.texts == ["next"]
    statuses = [(one.status, one.upto) for one in await turn_chain(engine) if isinstance(one, records.TurnEnded)]
    assert statuses == [("expired", seq), ("ok", statuses[-1][1])]


async def test_a_full_journal_makes_the_turn_wait_and_what_was_done_is_written_when_there_is_room(
    tmp_path: Path,
) -> None:
    work = Watched()
    work.acts["work"] = work.hold
    async with await open_sqlite(tmp_path / "journal.db", max_bytes=2_000_000) as engine, served(engine, work) as desk:
        seq = await desk.say("work")
        await desk.running(1)
        await fill(engine)
        with pytest.raises(EngineError):
            await desk.say("the network must keep this" * 4000)
        work.gate.set()
        await until(lambda: work.now == 0)
        await anyio.sleep(0.02)
        assert (await desk.session()).upto == 0, "done, but not written"
        await engine.purge("gw.ballast")
        await desk.answered(seq)
        await desk.answered(await desk.say("there is room again"))
    assert len(work.runs) == 2


async def fill(engine: Engine) -> None:
    for size in (50_000, 500, 1):
        with contextlib.suppress(EngineError):
            while True:
                await engine.append(NewRecord("gw.ballast", b"x" * size))

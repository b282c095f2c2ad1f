"""Edits of what is not answered yet: what waits is changed, and a running turn begun again where that is wanted."""

import time

import anyio
import pytest
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.lanes.context import LanePorts, interrupt_on_text
from gateway.lanes.edits import fold_edits
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Attachment
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions.removal import compact_chain
from gateway.sessions.repository import SessionRepository
from tests.lanes.desk import QUICK, Watched, served
from tests.spine import key, message, replies, turn_chain, until

CORRECTED = replace(QUICK, ports=LanePorts(interrupts=interrupt_on_text), calm=0.01)


async def polite(turn: LaneTurn) -> LaneResult:
    """Notices the stop, and has said nothing by then."""
    with turn.scope:
        await anyio.sleep_forever()
    return LaneResult(entries=(Entry("user", turn.messages[0].text),), status="interrupted")


async def deaf(_turn: LaneTurn) -> LaneResult:
    await anyio.sleep_forever()
    raise AssertionError("slept for ever")


async def test_an_edit_begins_the_running_turn_again_and_nothing_of_the_wrong_words_is_left(engine: Engine) -> None:
    work = Watched({"wrong": polite})
    async with served(engine, work, CORRECTED) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        seq = await desk.say("right", id="1:edit5", kind="edit")
        session = await desk.answered(seq)
        await desk.answered(await desk.say("next"))
    assert [entry.content for entry in session.entries] == ["right", "re right"]
    (second,) = work.runs[1].messages
    assert (second.text, second.text_before, second.id) == ("right", "wrong", "1")
    assert await replies(engine) == ["re right", "re next"]
    ends = [one for one in await turn_chain(engine) if isinstance(one, records.TurnEnded)]
    assert [one.status for one in ends] == ["interrupted", "ok", "ok"]


async def test_a_turn_that_does_not_listen_is_begun_again_too(engine: Engine) -> None:
    async with served(engine, Watched({"wrong": deaf}), CORRECTED) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        session = await desk.answered(await desk.say("right", id="1:edit5", kind="edit"))
    assert [entry.content for entry in session.entries] == ["right", "re right"]


async def test_what_tools_have_done_by_then_is_not_forgotten(engine: Engine) -> None:
    async def busy(turn: LaneTurn) -> LaneResult:
        done = Entry("tool", "sent", call_id="c1", name="send")
        await turn.record(records.ToolFinished(turn_id=turn.turn_id, call_id="c1", entry=done))
        return await polite(turn)

    async with served(engine, Watched({"wrong": busy}), CORRECTED) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)

        async def has_done() -> bool:
            turn = (await desk.session()).turn
            return bool(turn and turn.steps)

        await until(has_done)
        session = await desk.answered(await desk.say("right", id="1:edit5", kind="edit"))
    assert [entry.content for entry in session.entries] == ["wrong", "right", "re right"]


async def test_by_default_an_edit_waits_and_is_answered_with_what_was_said_before(engine: Engine) -> None:
    work = Watched()
    work.acts["wrong"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        seq = await desk.say("right", id="1:edit5", kind="edit")
        work.gate.set()
        await desk.answered(seq)
    assert await replies(engine) == ["re wrong", "re right"]


async def test_an_edit_changes_what_waits_and_is_not_answered_beside_it(engine: Engine) -> None:
    """Also where others wait between: their messages are answered in their order."""
    work = Watched()
    work.acts["long"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("long")
        await desk.running(1)
        await desk.say("wrong", id="1")
        await desk.say("mine", id="2", user="ben")
        for number in range(50):
            await desk.say(f"right {number}", id=f"1:edit{number}", kind="edit")
        work.gate.set()
        seq = await desk.say("last", user="ben")
        session = await desk.answered(seq)
    assert await replies(engine) == ["re long", "re right 49", "re mine + last"]
    assert session.edits == ()


async def test_many_edits_of_what_was_answered_are_one(engine: Engine) -> None:
    work = Watched()
    async with served(engine, work) as desk:
        await desk.answered(await desk.say("first", id="1"))
        work.acts["long"] = work.hold
        await desk.say("long")
        await desk.running(2)
        for number in range(50):
            seq = await desk.say(f"right {number}", id=f"1:edit{number}", kind="edit")
        work.gate.set()
        await desk.answered(seq)
    assert await replies(engine) == ["re first", "re long", "re right 49"]


async def test_a_storm_of_edits_begins_few_turns(engine: Engine) -> None:
    work = Watched()
    for number in range(50):
        work.acts[f"edit {number}"] = polite
    work.acts["wrong"] = polite
    began = time.monotonic()
    async with served(engine, work, replace(CORRECTED, calm=1.0)) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        for number in range(50):
            await desk.say(f"edit {number}", id=f"1:edit{number}", kind="edit")
        session = await desk.answered(await desk.say("right", id="1:edit50", kind="edit"))
    assert [entry.content for entry in session.entries] == ["right", "re right"]
    assert await replies(engine) == ["re right"]
    assert len(work.runs) <= 3 + (time.monotonic() - began)


@pytest.mark.parametrize("more", [{"user": "ben", "id": "1:edit5"}, {"id": "7:edit5"}])
async def test_an_edit_by_somebody_else_or_of_something_else_corrects_nothing(
    engine: Engine, more: dict[str, str]
) -> None:
    work = Watched()
    work.acts["wrong"] = work.hold
    async with served(engine, work, CORRECTED) as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        await desk.say("right", kind="edit", **more)
        work.gate.set()
        await desk.answered(await desk.say("more", user="cem"))
    assert await replies(engine) == ["re wrong", "re right", "re more"]
    assert not any(turn.messages[0].text_before for turn in work.runs)


async def test_a_correction_that_came_as_the_process_ended_is_found_by_the_next(engine: Engine) -> None:
    """It was killed after the edit was taken, before the turn had an end: the turn is open, and the edit waits."""
    async with served(engine, Watched({"wrong": deaf}), QUICK, node="here") as desk:
        await desk.say("wrong", id="1")
        await desk.running(1)
        seq = await desk.say("right", id="1:edit5", kind="edit")
    work = Watched({"wrong": deaf})
    async with served(engine, work, CORRECTED, node="here") as desk:
        session = await desk.answered(seq)
    assert [entry.content for entry in session.entries] == ["right", "re right"]
    assert work.texts == ["right"]


async def test_a_turn_that_has_taken_an_edit_has_it_again_after_a_crash_and_answers_it_once(engine: Engine) -> None:
    first = Watched()
    first.acts["long"] = first.hold
    first.acts["right"] = deaf
    async with served(engine, first, node="here") as desk:
        await desk.say("long")
        await desk.running(1)
        await desk.say("wrong", id="1")
        await desk.say("mine", id="2", user="ben")
        await desk.say("right", id="1:edit5", kind="edit")
        first.gate.set()
        await desk.running(2)
    second = Watched()
    async with served(engine, second, node="here") as desk:
        await until(lambda: second.texts == ["right", "mine"], "both")
        await desk.answered(await desk.say("end", user="ben"))
    assert second.runs[0].resumed
    assert await replies(engine) == ["re long", "re right", "re mine", "re end"]


async def test_an_edit_that_was_taken_stays_taken_when_the_chain_is_written_anew(engine: Engine) -> None:
    work = Watched()
    work.acts["long"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("long")
        await desk.running(1)
        await desk.say("wrong", id="1")
        seq = await desk.say("mine", id="2", user="ben")
        await desk.say("right", id="1:edit5", kind="edit")
        work.gate.set()
        assert len((await desk.answered(seq)).edits) == 1
    assert await compact_chain(engine, SessionRepository(engine), key())
    after = Watched()
    async with served(engine, after) as desk:
        await desk.answered(await desk.say("end"))
    assert after.texts == ["end"]


def test_of_an_album_the_other_files_stay() -> None:
    pictures = tuple(Attachment("image", f"/{number}") for number in range(2))
    said = message("wrong", id="1", attachments=pictures)
    edit = message("right", id="1:edit5", kind="edit", attachments=pictures[:1])
    (folded,) = fold_edits([(1, said), (2, edit)])
    assert (folded.message.text, folded.message.attachments, folded.edits) == ("right", pictures, (2,))


async def test_edits_are_in_the_journal_as_what_they_are(engine: Engine) -> None:
    """Two of the same time stamp are one: the network delivers it again."""
    async with served(engine) as desk:
        await desk.say("wrong", id="1")
        assert await desk.say("right", id="1:edit5", kind="edit")
        assert await desk.say("right", id="1:edit5", kind="edit") is None
        await until(lambda: bool(desk.work.runs))
    found = await engine.read(subjects.IN_SUBJECTS, 0, 10)
    assert len(found) == 2

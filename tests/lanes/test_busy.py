"""Back-pressure that people notice: they see their place in the line, and the rest stays with the network."""

import pytest
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.lanes.context import LanePorts, interrupt_on_text
from gateway.records import subjects
from tests.lanes.desk import QUICK, Watched, served
from tests.spine import chain, key, message, replies, until


async def test_who_waits_for_others_is_told_the_place_in_the_line_once(engine: Engine) -> None:
    work = Watched()
    work.acts["long"] = work.hold
    async with served(engine, work, replace(QUICK, sessions=SessionSettings(turns=1), patience=0.02)) as desk:
        await desk.say("long", "1", user="ann")
        await desk.running(1)
        await desk.say("me too", "2", user="ben")
        await desk.say("and me", "3", user="cem")

        async def are_told() -> bool:
            return bool(await replies(engine, "2")) and bool(await replies(engine, "3"))

        await until(are_told, "what the two are told")
        work.gate.set()
        await desk.running(3)
    assert await replies(engine, "2") == ["I am busy just now: your message is number 1 in the queue.", "re me too"]
    assert await replies(engine, "3") == ["I am busy just now: your message is number 2 in the queue.", "re and me"]
    assert await replies(engine, "1") == ["re long"]


async def test_who_was_told_the_place_before_a_start_is_not_told_again(engine: Engine) -> None:
    settings = replace(QUICK, sessions=SessionSettings(turns=1), patience=0.02)
    for chats in ("1234", "5"):
        work = Watched()
        work.acts["me"] = work.hold
        async with served(engine, work, settings) as desk:
            for chat in chats:
                await desk.say("me", chat, user=chat)

            async def are_told(chats: str = chats) -> bool:
                return all([await replies(engine, chat) for chat in chats[-3:]])

            await until(are_told, "those who wait are told; in the second life, the last one")
    assert [len(await replies(engine, chat)) for chat in "2345"] == [1, 1, 1, 1]


async def test_an_owner_is_answered_while_1500_guests_wait_for_a_model_that_is_held(engine: Engine) -> None:
    """Counted: the owner's is the ninth turn to begin, and no other of 1,500 that came before has begun meanwhile."""
    work = Watched()
    work.acts["guest"] = work.hold
    settings = replace(QUICK, ports=LanePorts(find_role=lambda said: "owner" if said.user_id == "ann" else "guest"))
    async with served(engine, work, settings) as desk:
        said = [(message("guest", f"c{n}", f"p{n}"), key(f"c{n}")) for n in range(1500)]
        for start in range(0, 1500, 500):
            await desk.lanes.accept_all(said[start : start + 500])
        await until(lambda: desk.lanes.waiting == 1492, "all stand in the line")
        seq = await desk.say("hello", "1", user="ann")
        await desk.answered(seq, "1")
        assert [turn.messages[0].text for turn in work.runs] == ["guest"] * 8 + ["hello"]
        work.gate.set()


async def test_a_short_wait_is_not_worth_a_word(engine: Engine) -> None:
    async with served(engine, settings=replace(QUICK, sessions=SessionSettings(turns=1))) as desk:
        for chat in "123456":
            seq = await desk.say("hello", chat, user=chat)
            await desk.answered(seq, chat)
    assert len(await chain(engine, subjects.OUT_SUBJECTS)) == 6


async def test_work_that_the_gateway_gave_itself_is_told_nothing(engine: Engine) -> None:
    work = Watched()
    work.acts["long"] = work.hold
    async with served(engine, work, replace(QUICK, sessions=SessionSettings(turns=1), patience=0.001)) as desk:
        await desk.say("long", "1", user="ann")
        await desk.running(1)
        await desk.say("a report", "2", user="hook", kind="internal")
        await until(lambda: desk.lanes.waiting == 1)
        await desk.say("and me", "3", user="cem")

        async def is_told() -> bool:
            return bool(await replies(engine, "3"))

        await until(is_told)
        work.gate.set()
        await desk.running(3)
    assert await replies(engine, "2") == ["re a report"]


@pytest.mark.row("T34")
async def test_what_is_too_much_is_not_taken_and_taken_again_when_there_is_room(engine: Engine) -> None:
    work = Watched()
    for number in range(4):
        work.acts[f"m{number}"] = work.hold
    async with served(engine, work, replace(QUICK, backlog=2)) as desk:
        for number in range(3):
            await desk.say(f"m{number}", str(number), user=str(number))
        with pytest.raises(EngineError, match="too many conversations wait"):
            await desk.say("m3", "3")
        assert await engine.last(subjects.session_subject_of("in", "agent:main:net:dm:3")) is None
        work.gate.set()

        async def has_room() -> bool:
            return not await desk.lanes.is_full()

        await until(has_room)
        await desk.answered(await desk.say("m3", "3"), "3")


async def test_only_plain_words_interrupt() -> None:
    assert interrupt_on_text(message("no, wait"))
    assert interrupt_on_text(message("no, wait", kind="edit"))  # where it is of what is being answered
    for text, kind in (
        ("/title x", "text"),
        ("!new", "text"),
        ("/title x", "edit"),
        ("/approve", "button"),
        ("x", "internal"),
    ):
        assert not interrupt_on_text(message(text, kind=kind)), (text, kind)
    assert not interrupt_on_text(message("the tea", is_job=True))

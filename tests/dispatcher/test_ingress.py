"""The decision about an incoming message, and that each message is taken once."""

import dataclasses
from typing import Any

import anyio
import msgspec

from gateway.access.access_control import MOST_WAITING
from gateway.dispatcher.message_pace import MessagePace
from gateway.engine.interface import NewRecord
from gateway.messages.message import Address, Message
from gateway.messages.steps import VERSION
from gateway.records import records, subjects
from tests.dispatcher.room import KEY, ROOM, Chat, chat
from tests.spine import until

OTHER_ROOM = Address("net", "other")
IN_GROUP = Address("net", "group", "group")


async def ask_in(room: Chat, address: Address, number: str) -> None:
    """Put a question there, and wait until it is open."""
    await room.dispatcher.receive(Message(number, address, "7", "go"))
    await until(lambda: [reply.address for reply in room.net.sent if "Really?" in reply.text].count(address) == 1)


async def test_answers_of_the_same_number_in_two_chats_are_two_answers() -> None:
    """Networks number messages in each chat by itself."""
    async with chat("one", "two") as room:
        answers: list[Any] = []
        room.hooks.on("agent:start", lambda event: answers.append(event.ask("Really?")))
        await ask_in(room, ROOM, "1")
        await ask_in(room, OTHER_ROOM, "1")
        for address, text in ((ROOM, "sure"), (OTHER_ROOM, "never")):
            await room.dispatcher.receive(Message("2", address, "7", text))
        await until(lambda: len(answers) == 2)
        assert sorted(answers) == ["never", "sure"]


async def test_a_message_for_what_a_later_version_works_on_is_kept_for_it() -> None:
    async with chat("one") as room:
        await room.write("hello")
        await room.hear()
        newer = records.SettingChanged(v=VERSION + 1, name="mood", value="well")
        await room.house.engine.append(NewRecord(subjects.session_subject_of("turn", KEY), records.encode(newer)))
        receipt = await room.write("again")
        (kept,) = await room.house.engine.read(subjects.session_subject_of("in", KEY), receipt.seq - 1)
        assert b"again" in kept.data
        assert (await room.write("elsewhere", address=OTHER_ROOM)).seq
        await until(lambda: len(room.net.sent) == 2)


async def test_an_answer_that_is_delivered_again_is_no_message() -> None:
    async with chat("one") as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?") and None)
        await ask_in(room, ROOM, "1")
        answer = Message("2", ROOM, "7", "sure")
        await room.dispatcher.receive(answer)
        assert await room.hear(2) == "one"
        again = await room.dispatcher.receive(answer)
        assert (again.decision, again.seq) == ("queued", 0)
        assert len(await room.house.engine.read(subjects.session_subject_of("in", KEY))) == 1


async def test_files_are_fetched_for_those_alone_who_may_speak() -> None:
    fetched: list[str] = []

    async def complete(message: Message) -> tuple[Message, list[NewRecord]]:
        fetched.append(message.user_id)
        return dataclasses.replace(message, text="hello there"), [NewRecord("gw.cur.net", b"{}")]

    async with chat({"user": "hello there", "answers": [{"text": "hi"}]}) as room:
        stranger = await room.dispatcher.receive(Message("1", ROOM, "99", "hello"), complete=complete)
        known = await room.dispatcher.receive(Message("2", ROOM, "7", "hello"), complete=complete)
        assert (stranger.decision, known.decision, fetched) == ("stranger", "queued", ["7"])
        assert await room.hear() == "hi"
        assert len(await room.house.engine.read("gw.cur.net")) == 1


async def test_a_button_is_for_whoever_is_asked_and_an_admin_answers_in_their_session() -> None:
    async with chat("done") as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?") and None)
        await room.dispatcher.receive(Message("1", IN_GROUP, "7", "go"))
        await room.hear()
        press = Message("1:pressed", IN_GROUP, "8", "/approve", kind="button")
        assert (await room.dispatcher.receive(press, asked="7")).decision == "forbidden"
        pressed = await room.dispatcher.receive(dataclasses.replace(press, user_id="1"), asked="7")
        assert (pressed.decision, pressed.settled) == ("settled", "")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])


async def test_who_presses_a_button_that_is_not_theirs_is_told_by_the_receipt_alone() -> None:
    async with chat("done") as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?") and None)
        await ask_in(room, ROOM, "1")
        press = Message("1:pressed", ROOM, "8", "/approve", kind="button")
        typed = dataclasses.replace(press, id="2", kind="command")
        assert [(await room.dispatcher.receive(one)).decision for one in (press, typed)] == ["forbidden"] * 2
        assert await room.hear(2) == "That question is for another person to decide."
        await room.write("/approve")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        assert [reply.reply_to for reply in room.net.sent if "another person" in reply.text] == ["2"]


async def test_a_reaction_is_told_to_hooks_within_the_pace_and_answered_by_nobody() -> None:
    async with chat() as room:
        room.house.access.rules = msgspec.structs.replace(room.house.access.rules, rate=1)
        reaction = Message("5:reaction", ROOM, "7", "", kind="reaction", reply_to="5", extra={"added": ["+1"]})
        decided = [(await room.dispatcher.receive(reaction)).decision for _ in range(2)]
        stranger = await room.dispatcher.receive(dataclasses.replace(reaction, user_id="99"))
        assert [*decided, stranger.decision] == ["settled", "too_fast", "stranger"]
        (added,) = await room.told("reaction:added")
        assert (added["message_id"], added["reaction"], added["user_id"]) == ("5", "+1", "7")
        assert room.net.sent == []
        assert (await room.house.sessions.open(KEY)).entries == ()


async def test_of_more_than_may_wait_one_sentence_says_how_much_was_not_taken_and_from_when() -> None:
    async with chat(*["well"] * 9) as room:
        room.house.access.rules = msgspec.structs.replace(room.house.access.rules, rate=1)
        decided = [(await room.write("go")).decision for _ in range(MOST_WAITING + 4)]
        assert decided == ["queued"] * (MOST_WAITING + 1) + ["too_fast"] * 3
        await until(lambda: len(room.net.sent) == 3, "the answer, that the next waits, and the sentence")
        (said,) = [one.text for one in room.net.sent if "I did not take 3 messages, the first of 20" in one.text]
        assert f"{MOST_WAITING} of yours wait" in said
        assert len([one for one in room.net.sent if "your last message waits" in one.text]) == 1


async def test_a_gateway_that_stops_says_first_what_it_did_not_take() -> None:
    said = list[str]()

    async def say(_key: str, _message: Message, text: str) -> None:
        said.append(text)

    async with chat() as room, anyio.create_task_group() as tasks:
        pace = MessagePace(room.house, tasks, say)
        for number in "12":
            assert (await pace.refuse(KEY, Message(number, ROOM, "7", "go"))).decision == "too_fast"
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert "I did not take 2 messages" in said[0]


async def test_what_acts_at_once_does_so_within_the_pace_and_an_answer_also_beyond_it() -> None:
    async with chat("done", "more") as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?") and None)
        room.house.access.rules = msgspec.structs.replace(room.house.access.rules, rate=1)
        await room.write("go")
        await until(room.is_asked)
        assert (await room.write("/status")).decision == "queued", "it waits, and is answered later"
        press = await room.write("/approve", kind="button")
        assert press.decision == "too_fast"
        assert (await room.write("/approve")).decision == "settled"
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        assert "all is well" not in [reply.text for reply in room.net.sent]

"""What tools say in a conversation: before the turn is done, elsewhere, and later."""

import time
from typing import Any

import anyio
import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.dispatcher.reminders import DUE_TEXT, Reminder, Reminders
from gateway.messages.message import Address, Message
from gateway.records import subjects
from gateway.testing.memory_engine import MemoryEngine
from tests.dispatcher.room import KEY, ROOM, chat
from tests.engine.conftest import JUMPS
from tests.spine import until


def calling(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "args": args}]}


async def test_a_word_comes_before_the_answer_and_once() -> None:
    turn = {"user": "work", "answers": [calling("send_message", text="a moment, please"), {"text": "done"}]}
    async with chat(turn, tools=make_chat_tools()) as room:
        await room.write("work")
        assert [await room.hear(1), await room.hear(2)] == ["a moment, please", "done"]


async def test_a_message_elsewhere_goes_when_the_person_agrees() -> None:
    call = calling("send_message", text="hello there", to="net:kitchen")
    async with chat({"user": "tell", "answers": [call, {"text": "told"}]}, tools=make_chat_tools()) as room:
        await room.write("tell the kitchen")
        question = await room.hear(1)
        assert question.startswith("May I run send_message?")
        assert "net:kitchen" in question
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "told" in [reply.text for reply in room.net.sent])
        (there,) = [reply for reply in room.net.sent if reply.text == "hello there"]
        assert there.address == Address("net", "kitchen")


async def test_a_network_that_is_not_served_is_named_to_the_model_and_nothing_is_owed_to_it() -> None:
    turn = {"user": "tell", "answers": [calling("send_message", text="hello", to="pigeon:roof"), {"text": "I tried"}]}
    about = GatewayFacts(networks=(PlatformInfo("slack", served=True), PlatformInfo("pigeon", served=False)))
    async with chat(turn, tools=make_chat_tools(), about=lambda: about) as room:
        await room.write("tell the roof")
        await room.hear(1)
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "I tried" in [reply.text for reply in room.net.sent])
        after = (await room.told("tool:after"))[-1]
        assert "'pigeon' is not served here; served: net, slack" in str(after["error"])
        assert (
            await room.house.engine.read(subjects.reply_pattern_of_place(subjects.place_of(Address("pigeon", "roof"))))
            == []
        )


async def test_a_reminder_comes_as_a_message_and_is_answered() -> None:
    turns = [
        {"user": "wake me", "answers": [calling("schedule", text="the tea", when="0.2s"), {"text": "I will"}]},
        {"user": "is due", "text": "your tea!"},
    ]
    async with chat(*turns, tools=make_chat_tools()) as room, anyio.create_task_group() as tasks:
        await tasks.start(room.dispatcher.reminders.run)
        await room.write("wake me")
        assert await room.hear(1) == "I will"
        assert await room.hear(2) == "your tea!"
        assert room.net.sent[1].address == ROOM
        tasks.cancel_scope.cancel()


async def test_a_reminder_comes_in_its_time_wherever_it_was_set() -> None:
    came = anyio.Event()

    async def accept(_message: Message, _key: str) -> int:
        came.set()
        return 1

    async with MemoryEngine() as engine, anyio.create_task_group() as tasks:
        await tasks.start(Reminders(engine, accept).run)
        await anyio.sleep(0.1)
        elsewhere = Reminders(engine, accept)
        await elsewhere.add(Reminder("a", time.time() + 0.2, "the tea", KEY, ROOM, "7"))
        await came.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_reminder_comes_in_its_time_whoever_sets_the_clock(jump: float) -> None:
    engine, came, now, ahead = MemoryEngine(), list[str](), 1e9, 0.0

    async def accept(message: Message, _key: str) -> int:
        came.append(message.id)
        return 1

    reminders = Reminders(engine, accept, lambda: now, lambda: ahead)
    await reminders.add(Reminder("before", now + 100, "the tea", KEY, ROOM, "7"))
    now, ahead = now + jump, ahead + jump
    assert await reminders.look() == pytest.approx(100)
    await reminders.add(Reminder("after", now + 200, "the cake", KEY, ROOM, "7"))
    now += 150
    assert await reminders.look() == pytest.approx(50)
    now, ahead = now + 51 - jump, ahead - jump
    await reminders.look()
    assert came == ["reminder-before", "reminder-after"]
    await engine.close()


async def test_a_reminder_survives_a_restart_comes_once_and_can_be_taken_back() -> None:
    engine, came, now = MemoryEngine(), list[Message](), 1000.0

    async def accept(message: Message, key: str) -> int:
        came.append(message)
        return 1

    def reminders() -> Reminders:
        return Reminders(engine, accept, lambda: now)

    for number, at in (("a", 1100.0), ("b", 1200.0), ("c", 1300.0)):
        await reminders().add(Reminder(number, at, f"do {number}", KEY, ROOM, "7"))
    assert await reminders().look() == 100.0
    assert [one.id for one in await reminders().of(KEY)] == ["a", "b", "c"]
    assert await reminders().remove(KEY, "b")
    assert not await reminders().remove("another", "c")
    now = 1250.0
    assert await reminders().look() == 50.0
    assert [(one.id, one.text, one.user_id) for one in came] == [("reminder-a", DUE_TEXT.format("do a"), "7")]
    assert [one.id for one in await reminders().of(KEY)] == ["c"]
    await engine.close()

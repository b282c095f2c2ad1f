"""Reminders: they come as messages, in their time, once."""

import time
from typing import Any

import anyio
import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.jobs.reminders import DUE_TEXT, Reminder, Reminders
from gateway.messages.message import Message
from tests.dispatcher.room import KEY, ROOM, chat
from tests.engine.conftest import JUMPS
from tests.engine.memory_engine import MemoryEngine


def calling(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "args": args}]}


async def test_a_reminder_comes_as_a_message_and_is_answered() -> None:
    turns = [
        {"user": "wake me", "answers": [calling("schedule", text="the tea", when="0.2s"), {"text": "I will"}]},
        {"user": "is due", "text": "your tea!"},
    ]
    async with chat(*turns, tools=make_chat_tools()) as room, anyio.create_task_group() as tasks:
        await tasks.start(room.dispatcher.reminders.run, room.dispatcher.lanes.accept)
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
        await tasks.start(Reminders(engine).run, accept)
        await anyio.sleep(0.1)
        elsewhere = Reminders(engine)
        await elsewhere.add(Reminder("a", time.time() + 0.2, "the tea", KEY, ROOM, "7"))
        await came.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("jump", JUMPS)
async def test_a_reminder_comes_in_its_time_whoever_sets_the_clock(jump: float) -> None:
    engine, came, now, ahead = MemoryEngine(), list[str](), 1e9, 0.0

    async def accept(message: Message, _key: str) -> int:
        came.append(message.id)
        return 1

    reminders = Reminders(engine, lambda: now, lambda: ahead)
    await reminders.add(Reminder("before", now + 100, "the tea", KEY, ROOM, "7"))
    now, ahead = now + jump, ahead + jump
    assert await reminders.look(accept) == pytest.approx(100)
    await reminders.add(Reminder("after", now + 200, "the cake", KEY, ROOM, "7"))
    now += 150
    assert await reminders.look(accept) == pytest.approx(50)
    now, ahead = now + 51 - jump, ahead - jump
    await reminders.look(accept)
    assert came == ["reminder-before", "reminder-after"]
    await engine.close()


async def test_a_reminder_survives_a_restart_comes_once_and_can_be_taken_back() -> None:
    engine, came, now = MemoryEngine(), list[Message](), 1000.0

    async def accept(message: Message, key: str) -> int:
        came.append(message)
        return 1

    def reminders() -> Reminders:
        return Reminders(engine, lambda: now)

    for number, at in (("a", 1100.0), ("b", 1200.0), ("c", 1300.0)):
        await reminders().add(Reminder(number, at, f"do {number}", KEY, ROOM, "7"))
    assert await reminders().look(accept) == 100.0
    assert [one.id for one in await reminders().of(KEY)] == ["a", "b", "c"]
    assert await reminders().remove(KEY, "b")
    assert not await reminders().remove("another", "c")
    now = 1250.0
    assert await reminders().look(accept) == 50.0
    assert [(one.id, one.text, one.user_id) for one in came] == [("reminder-a", DUE_TEXT.format("do a"), "7")]
    assert [one.id for one in await reminders().of(KEY)] == ["c"]
    await engine.close()

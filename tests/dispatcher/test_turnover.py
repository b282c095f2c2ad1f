"""Sessions that begin and end, as people see them and hooks receive them."""

import pytest

from gateway.config.settings import SessionSettings
from gateway.lanes.context import interrupt_on_text
from tests.dispatcher.room import KEY, Chat, chat
from tests.spine import lane_settings, until


async def contents(room: Chat) -> list[str]:
    return [entry.content for entry in (await room.house.sessions.open(KEY)).entries]


async def test_after_a_silence_a_new_session_begins_and_both_are_told() -> None:
    silence = lane_settings(sessions=SessionSettings(reset="idle", idle=0))
    async with chat("first", "second", lanes=silence) as room:
        await room.write("one")
        await room.hear()
        old = (await room.house.sessions.open(KEY)).session_id
        await room.write("two")
        await room.hear(2)
        now = await room.house.sessions.open(KEY)
        assert await contents(room) == ["two", "second"]
        (ended,), (reset,) = await room.told("session:end"), await room.told("session:reset")
        assert (ended["session_id"], ended["reason"], reset["reason"]) == (old, "idle", "idle")
        started = [one["session_id"] for one in await room.told("session:start")]
        assert started == [old, now.session_id]


async def test_a_branch_goes_its_own_way_and_the_first_can_be_resumed() -> None:
    async with chat("first", "second", "third") as room:
        await room.write("one")
        await room.hear()
        old = (await room.house.sessions.open(KEY)).session_id
        await room.write("/branch another way")
        await room.hear(2)
        assert (await room.house.sessions.open(KEY)).title == "another way"
        await room.write("two")
        await room.hear(3)
        assert await contents(room) == ["one", "first", "two", "second"]
        await room.write(f"/resume {old}")
        await room.hear(4)
        assert await contents(room) == ["one", "first"]


async def test_a_sessions_model_is_its_own_and_goes_back_to_the_default() -> None:
    async with chat("first") as room:
        await room.write("/model small")
        assert "small" in await room.hear()
        assert (await room.house.sessions.open(KEY)).model == "small"
        await room.write("/model default")
        await room.hear(2)
        assert (await room.house.sessions.open(KEY)).model == ""


@pytest.mark.parametrize("command", ["/title Tea", "/model small", "/sessions"])
async def test_where_words_interrupt_a_command_waits_all_the_same(command: str) -> None:
    slow = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": 0.04}]}
    async with chat(slow, lanes=lane_settings(interrupts=interrupt_on_text)) as room:
        await room.write("slow")
        await until(lambda: room.dispatcher.lanes.running == 1)
        await room.write(command)
        assert await room.hear() == "slow answer"
        await room.hear(2)
        assert (await room.told("agent:end"))[0]["interrupted"] is False


async def test_where_words_interrupt_they_do() -> None:
    slow = {"user": "slow", "answers": [{"chunks": ["slow", " answer"], "delay": 10.0}]}
    quick = {"user": "never mind", "answers": [{"text": "all right"}]}
    async with chat(slow, quick, lanes=lane_settings(interrupts=interrupt_on_text)) as room:
        await room.write("slow")
        await room.when("agent:start")
        await room.write("never mind")
        await until(lambda: "all right" in [reply.text for reply in room.net.sent])
        assert (await room.told("agent:end"))[0]["interrupted"] is True

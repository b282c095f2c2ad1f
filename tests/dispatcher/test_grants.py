"""What hooks may have done: send, submit, emit, store."""

import pytest

from gateway import records
from gateway.dispatcher import Grants
from gateway.errors import HookError
from gateway.messages import Message, Receipt
from gateway.sessions import session_key
from tests.dispatcher.room import KEY, ROOM, Chat, chat


async def grants(room: Chat) -> Grants:
    async def accept(message: Message, key: str) -> Receipt:
        return await room.dispatcher.receive(message)

    return Grants(room.house, accept)


async def test_a_hook_may_send_to_a_session_and_to_a_chat() -> None:
    async with chat("hi") as room:
        await room.write("hello")
        await room.hear()
        grant = await grants(room)
        await grant("reminder", "send", {"to": KEY, "text": "do not forget"}, "")
        await grant("reminder", "send", {"to": "net:other", "text": "elsewhere"}, "")
        await room.hear(3)
        assert {(reply.text, reply.address.chat_id) for reply in room.net.sent[1:]} == {
            ("do not forget", "room"),
            ("elsewhere", "other"),
        }
        with pytest.raises(HookError, match="nobody ever wrote"):
            await grant("reminder", "send", {"to": "agent:main:net:dm:nobody", "text": "?"}, "")
        with pytest.raises(HookError, match="to"):
            await grant("reminder", "send", {"text": "?"}, "")


async def test_a_hook_may_give_the_agent_work_and_have_the_answer_delivered() -> None:
    async with chat("the report") as room:
        grant = await grants(room)
        given = await grant("daily", "submit", {"text": "write the report", "deliver": "net:room"}, "")
        assert await room.hear() == "the report"
        assert room.net.sent[0].address == ROOM
        session = await room.house.sessions.open(given["session_key"])
        assert [entry.content for entry in session.entries] == ["write the report", "the report"]


async def test_a_hook_may_tell_events_of_its_own_but_none_of_ours() -> None:
    async with chat() as room:
        grant = await grants(room)
        await grant("weather", "emit", {"name": "weather:changed", "fields": {"to": "rain"}}, "")
        (changed,) = await room.told("weather:changed")
        assert changed["to"] == "rain"
        with pytest.raises(HookError, match="tool:before"):
            await grant("weather", "emit", {"name": "tool:before", "fields": {}}, "")


async def test_a_hook_keeps_values_that_no_other_sees() -> None:
    async with chat() as room:
        grant = await grants(room)
        await grant("a", "store.set", {"key": "k", "value": [1]}, "")
        await grant("a", "store.set", {"key": "k", "value": [2]}, "")
        assert await grant("a", "store.get", {"key": "k"}, "") == [2]
        assert await grant("b", "store.get", {"key": "k", "default": "none"}, "") == "none"
        assert await grant("a", "store.keys", {}, "") == ["k"]
        assert await grant("a", "store.delete", {"key": "k"}, "")
        assert await grant("a", "store.get", {"key": "k"}, "") is None
        with pytest.raises(HookError, match=r"store\.take"):
            await grant("a", "store.take", {}, "")


async def test_no_message_from_a_network_passes_for_one_of_our_own() -> None:
    assert session_key(Message("1", ROOM, "7", "x")) == KEY
    assert records.conv(KEY) != records.conv("agent:main:internal:dm:room")

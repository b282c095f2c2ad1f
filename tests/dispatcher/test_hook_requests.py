"""The requests of hooks: send, submit, emit, store."""

import anyio
import pytest

from gateway.config.settings import SessionSettings
from gateway.dispatcher.awaited_turns import AwaitedTurns
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.dispatcher.hook_requests import HookRequests
from gateway.errors import GatewayError, HookError
from gateway.events import Deny
from gateway.hooks.manifests.reach import HookLimits
from gateway.lanes.context import LaneSettings
from gateway.messages.message import Message
from gateway.records import subjects
from gateway.sessions.keys import session_key_of
from gateway.sessions.removal import compact_chain
from tests.dispatcher.room import KEY, ROOM, Chat, chat
from tests.spine import until

SENDER = HookLimits(("submit", "send"))


async def grants(room: Chat) -> HookRequests:
    return HookRequests(room.house, room.dispatcher.lanes)


async def test_a_hook_may_send_to_a_session_and_to_a_chat() -> None:
    async with chat("hi") as room:
        await room.write("hello")
        await room.hear()
        grant, engine = await grants(room), room.house.engine
        await engine.purge(subjects.session_subject_of("in", KEY))  # it is kept for some days alone
        assert await compact_chain(engine, room.house.sessions, KEY)
        await grant("reminder", "send", {"to": KEY, "text": "do not forget"}, "")
        await grant("reminder", "send", {"to": "net:other", "text": "elsewhere"}, "")
        await room.hear(3)
        assert {(reply.text, reply.address.chat_id) for reply in room.net.sent[1:]} == {
            ("do not forget", "room"),
            ("elsewhere", "other"),
        }
        with pytest.raises(HookError, match="no message ever came"):
            await grant("reminder", "send", {"to": "agent:main:net:dm:nobody", "text": "?"}, "")
        with pytest.raises(HookError, match="to"):
            await grant("reminder", "send", {"text": "?"}, "")


async def test_a_hook_may_give_the_agent_work_and_have_the_answer_delivered() -> None:
    async with chat("the report", find_limits=lambda _hook: SENDER) as room:
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
    assert session_key_of(Message("1", ROOM, "7", "x"), SessionSettings()) == KEY
    assert subjects.token_of(KEY) != subjects.token_of("agent:main:internal:dm:room")


async def test_a_hook_may_wait_for_the_answer_and_gets_it_with_how_it_ended() -> None:
    async with chat("the report") as room:
        grant = await grants(room)
        answered = await grant("daily", "submit", {"text": "write the report", "wait": 5}, "")
        assert (answered["reply"], answered["status"], answered["error"]) == ("the report", "ok", "")
        assert room.net.sent == []


@pytest.mark.parametrize("stops", [False, True])
async def test_what_is_waited_for_too_long_or_when_the_gateway_stops_is_stopped(stops: bool) -> None:
    async with chat({"answers": [{"text": "never", "delay": 60}]}) as room, anyio.create_task_group() as tasks:
        grant = await grants(room)
        if stops:
            tasks.start_soon(give_up_once_it_runs, room, grant)
        answered = await grant("daily", "submit", {"text": "think", "wait": 60 if stops else 0.05}, "")
        assert answered["status"] == "timeout"
        assert answered["error"] == ("the gateway stops" if stops else "it was not done within 0.05 s")
        session = await room.house.sessions.open(answered["session_key"])
        assert session.turn is None


async def give_up_once_it_runs(room: Chat, grant: HookRequests) -> None:
    await room.when("agent:start")
    grant.waiting.give_up()


async def test_nobody_waits_at_a_stop_for_a_turn_that_has_not_begun() -> None:
    one = LaneSettings(sessions=SessionSettings(turns=1))
    async with (
        chat({"answers": [{"text": "never", "delay": 60}]}, lanes=one) as room,
        anyio.create_task_group() as tasks,
    ):
        grant = await grants(room)
        await room.write("hello")
        await room.when("agent:start")
        tasks.start_soon(give_up_once_it_waits, room, grant)
        with pytest.raises(GatewayError, match="the gateway stops"):
            await grant("daily", "submit", {"text": "think", "wait": 60}, "")


async def give_up_once_it_waits(room: Chat, grant: HookRequests) -> None:
    await until(lambda: room.dispatcher.lanes.waiting)
    grant.waiting.give_up()


async def test_where_nobody_can_answer_a_question_it_is_no_at_once() -> None:
    async with chat({"answers": [{"text": "done without"}]}) as room:
        room.hooks.on("agent:start", lambda event: event.ask("May I?") or Deny("no leave"), key="asker")
        grant = await grants(room)
        answered = await grant("daily", "submit", {"text": "do it", "wait": 5}, "")
        assert (answered["reply"], answered["status"]) == ("no leave", "denied")


async def test_work_that_a_dead_gateway_waited_for_is_not_taken_up_again() -> None:
    async with chat("never said", find_limits=lambda _hook: SENDER) as room:
        grant = await grants(room)
        dead = Message("1", ROOM, "hook:x", "go on", kind="internal", session=KEY, extra={"awaited": "another life"})
        await room.dispatcher.lanes.accept(dead, KEY)
        later = await grant("daily", "submit", {"text": "hello", "session": KEY, "wait": 5}, "")
        session = await room.house.sessions.open(KEY)
        assert later["reply"] == "never said"
        assert [entry.content for entry in session.entries] == ["hello", "never said"]


async def test_work_that_another_node_waits_for_is_done_while_that_goes_on() -> None:
    async def is_running(run_id: str) -> bool:
        return run_id == "another node"

    async with chat("the report", is_running=is_running) as room:
        theirs = AwaitedTurns(room.house.engine, room.dispatcher.lanes)
        asked = Message("1", ROOM, "hook:x", "report", kind="internal", session=KEY, extra={"awaited": "another node"})
        assert (await theirs.answer(asked, KEY, 30)).reply == "the report"


async def test_home_is_the_home_channel_of_the_first_network_that_is_served() -> None:
    networks: tuple[PlatformInfo, ...] = (
        PlatformInfo("off", False, "1"),
        PlatformInfo("none", True),
        PlatformInfo("net", True, "room", "Home"),
    )
    async with chat(about=lambda: GatewayFacts(networks=networks)) as room:
        grant = await grants(room)
        for to in ("home", "net"):
            await grant("daily", "send", {"to": to, "text": f"to {to}"}, "")
        await room.hear(2)
        assert [(reply.text, reply.address) for reply in room.net.sent] == [("to home", ROOM), ("to net", ROOM)]
        with pytest.raises(HookError, match=r"no home channel\nwrite none:CHAT, or set platforms\.none\.home_ch"):
            await grant("daily", "send", {"to": "none", "text": "?"}, "")
        with pytest.raises(
            HookError, match="'off' is not served here; served: net, none\nset one up with: hermes-gateway setup"
        ):
            await grant("daily", "send", {"to": "off:room", "text": "?"}, "")
        networks = networks[:2]
        with pytest.raises(HookError, match=r"home channel\nwrite PLATFORM:CHAT, or set platforms\.PLATFORM\.home"):
            await grant("daily", "send", {"to": "home", "text": "?"}, "")
        facts = await grant("daily", "facts", {}, "")
        assert [one["name"] for one in facts["networks"]] == ["off", "none"]

"""From a message to its answer, with the real lanes, outbox, hooks and agent on a journal in memory."""

import dataclasses
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from gateway import records
from gateway.access import Access, Rules
from gateway.agent import Agent, Tool
from gateway.agent.models.script import script
from gateway.agent.tools import tool_from
from gateway.commands import CommandTable
from gateway.dispatcher import Deliveries, Dispatcher, House, Reports
from gateway.dispatcher.grants import Grants
from gateway.engine import MemoryEngine
from gateway.errors import HookError
from gateway.hooks import Deny, End, HookRegistry
from gateway.lanes import Lanes, LaneSettings
from gateway.messages import Address, Message, Receipt, Reply
from gateway.outbox import Outbox
from gateway.sessions import Sessions, session_key
from tests.spine import until

ROOM = Address("net", "room")
KEY = "agent:main:net:dm:room"


class Net:
    """A chat network that keeps what it is sent."""

    platform = "net"
    doubt = "resend"
    can_edit = False

    def __init__(self) -> None:
        self.sent: list[Reply] = []
        self.shown: list[str] = []
        self.news = anyio.Event()

    def parts(self, reply: Reply) -> int:
        return 1

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        self.sent.append(reply)
        self.news.set()
        return (f"m{len(self.sent)}",)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        self.shown.append(reply.text)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None: ...

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        return None


class Chat:
    """A person in a room, and the gateway behind it."""

    def __init__(self, hooks: HookRegistry, net: Net, house: House, dispatcher: Dispatcher) -> None:
        self.hooks, self.net, self.house, self.dispatcher = hooks, net, house, dispatcher
        self.events: list[tuple[str, dict[str, Any]]] = []
        hooks.watch("*", lambda name, fields: self.events.append((name, dict(fields))))
        self._count = 0

    async def write(self, text: str, user: str = "7", **more: Any) -> Receipt:
        self._count += 1
        message = Message(str(self._count), more.pop("address", ROOM), user, text, **more)
        return await self.dispatcher.receive(message)

    async def hear(self, count: int = 1) -> str:
        """The text of the reply number `count`."""
        with anyio.fail_after(5):
            while len(self.net.sent) < count:
                self.net.news = anyio.Event()
                await self.net.news.wait()
        return self.net.sent[count - 1].text

    async def when(self, name: str) -> list[dict[str, Any]]:
        """All events of this name, once there is one."""
        await until(lambda: any(heard == name for heard, _ in self.events))
        return await self.told(name)

    async def told(self, name: str) -> list[dict[str, Any]]:
        """All events of this name, when everything has been told."""
        await self.hooks.settled()
        return [fields for heard, fields in self.events if heard == name]


async def answer(text: str) -> str:
    return f"did {text}"


async def restart() -> None: ...


async def no_hooks() -> str:
    return "no hooks"


@asynccontextmanager
async def chat(*turns: Any, tools: tuple[Tool, ...] = (), **house_facts: Any) -> AsyncIterator[Chat]:
    engine, hooks, net = MemoryEngine(), HookRegistry(), Net()
    agent = Agent("main", script(*turns), tools=tools)
    deliveries = Deliveries(hooks)
    outbox = Outbox(engine, prepare=deliveries.prepare, on_sent=deliveries.sent, on_failed=deliveries.failed)
    sessions = Sessions(engine)
    house = House(
        engine=engine,
        registry=hooks,
        sessions=sessions,
        outbox=outbox,
        access=Access(Rules(admins={"net": frozenset({"1"})}, users={"net": frozenset({"7", "8"})})),
        commands=CommandTable(),
        choose=lambda message, session: agent,
        reports=Reports(lambda: "all is well", no_hooks, lambda: "net: up", lambda: ["default"], restart),
        **house_facts,
    )
    async with hooks, anyio.create_task_group() as tasks:
        make = partial(Lanes, engine, sessions)
        dispatcher = Dispatcher(house, lambda work: make(work, LaneSettings()), tasks)
        await tasks.start(dispatcher.lanes.run)
        await tasks.start(outbox.carry, net)
        yield Chat(hooks, net, house, dispatcher)
        tasks.cancel_scope.cancel()
    await engine.close()


async def test_a_message_is_answered_and_told_once_each() -> None:
    async with chat("hello yourself") as room:
        await room.write("hello")
        assert await room.hear() == "hello yourself"
        (received,) = await room.told("message:received")
        assert (received["text"], received["user_id"], received["scope"]) == ("hello", "7", "user")
        (sent,) = await room.told("message:sent")
        assert (sent["text"], sent["message_ids"]) == ("hello yourself", ["m1"])
        (started,) = await room.told("session:start")
        assert started["session_key"] == KEY


async def test_a_second_delivery_of_a_message_changes_nothing() -> None:
    async with chat("one answer") as room:
        message = Message("same", ROOM, "7", "hello")
        first, second = await room.dispatcher.receive(message), await room.dispatcher.receive(message)
        await room.hear()
        assert (first.seq > 0, second.seq) == (True, 0)
        assert len(await room.told("message:received")) == 1


async def test_a_stranger_gets_nothing_and_leaves_nothing() -> None:
    async with chat("never said") as room:
        receipt = await room.write("let me in", user="99")
        assert receipt.session_key == ""
        assert await room.house.engine.read(">") == []
        (denied,) = await room.told("access:denied")
        assert (denied["platform"], denied["user_id"]) == ("net", "99")


@pytest.mark.parametrize(
    ("outcome", "reply"), [(End("bye", "done"), "bye"), (Deny("not that"), "not that"), (Deny(), "This was refused.")]
)
async def test_a_hook_may_answer_in_place_of_the_agent(outcome: Exception, reply: str) -> None:
    async with chat("never said") as room:
        room.hooks.on("message:received", lambda event: outcome)
        await room.write("hello")
        assert await room.hear() == reply
        assert await room.told("agent:start") == []


async def test_a_hook_may_change_what_was_written() -> None:
    async with chat({"user": "good morning", "answers": [{"text": "and to you"}]}) as room:
        room.hooks.on("message:received", lambda event: {"text": "good morning"})
        await room.write("gm")
        assert await room.hear() == "and to you"


async def test_a_hook_may_change_what_is_said_or_keep_it_back() -> None:
    async with chat("secret", "open") as room:
        room.hooks.on("message:sending", lambda event: Deny("no") if event["text"] == "secret" else {"text": "OPEN"})
        await room.write("one")
        await room.when("message:failed")
        await room.write("two")
        assert await room.hear() == "OPEN"
        (failed,) = await room.told("message:failed")
        assert failed["text"] == "secret"


async def test_a_question_of_a_hook_goes_to_the_person_and_the_turn_goes_on_with_the_answer() -> None:
    calls = {"tool_calls": [{"name": "answer", "args": {"text": "it"}}]}
    async with chat({"user": "do", "answers": [calls, {"text": "done"}]}, tools=(tool_from(answer),)) as room:
        asked: list[Any] = []

        @room.hooks.on("tool:before")
        def approve(event: Any) -> Any:
            asked.append(said := event.ask("May I?", name="approval"))
            return None if said == "sure" else Deny("no")

        await room.write("do it")
        assert await room.hear() == "May I?"
        assert [button.value for button in room.net.sent[0].buttons] == ["/approve", "/deny"]
        await room.write("certainly not", user="8", address=Address("net", "room2"))
        await room.write("sure")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        assert asked == ["sure"]
        assert len(await room.told("message:received")) >= 2


@pytest.mark.parametrize(
    ("command", "happens"), [("/approve", "once"), ("/approve always", "always"), ("/deny", "deny")]
)
async def test_approve_and_deny_answer_the_open_question(command: str, happens: str) -> None:
    async with chat("ok") as room:
        answers: list[Any] = []
        room.hooks.on("agent:start", lambda event: answers.append(event.ask("Really?")))
        await room.write("go")
        await room.hear()
        await room.write(command)
        await room.hear(3)
        assert answers == [happens]


async def test_commands_take_their_place_in_the_lane_and_urgent_ones_do_not() -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["a", "b"], "delay": 0.1}]}) as room:
        await room.write("slow")
        await until(lambda: room.dispatcher.lanes.running == 1)
        await room.write("/title Tea")
        settled = await room.write("/status")
        assert settled.settled is not None
        assert "a turn is running" in settled.settled
        await room.hear(3)
        assert [reply.text for reply in room.net.sent[1:]] == ["ab", "This session is now called: Tea"]


async def test_stop_ends_a_running_turn() -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["a"] * 50, "delay": 0.1}]}) as room:
        await room.write("slow")
        await until(lambda: room.dispatcher.lanes.running == 1)
        stopped = await room.write("/stop")
        assert stopped.settled == "Stopped."
        await until(lambda: room.dispatcher.lanes.running == 0)
        (ended,) = await room.told("agent:end")
        assert ended["interrupted"]


async def test_a_hook_at_a_command_denies_answers_or_puts_another_in_its_place() -> None:
    async with chat() as room:

        @room.hooks.on("command:*")
        def decide(event: Any) -> Any:
            return {
                "undo": {"decision": "deny", "message": "nothing is undone here"},
                "title": {"decision": "handled", "message": "call it what you like"},
                "branch": {"decision": "rewrite", "command_name": "/whoami"},
                "retry": {"decision": "rewrite", "command_name": "/restart"},
            }.get(event["command"])

        for command in ("/undo", "/title x", "/branch", "/retry"):
            await room.write(command)
        await room.hear(4)
        said = [reply.text for reply in room.net.sent]
        assert said[:2] == ["nothing is undone here", "call it what you like"]
        assert said[2].startswith("net user 7, user")
        assert said[3] == "/retry became /restart, which cannot be run here."


async def test_an_admins_command_is_unknown_to_others() -> None:
    async with chat() as room:
        await room.write("/restart")
        assert (
            await room.hear() == "There is no command /restart for you here. /restart?" or "/help" in await room.hear()
        )
        settled = await room.write("/platform", user="1")
        assert settled.settled == "net: up"


async def test_new_begins_a_session_and_resume_brings_the_old_one_back() -> None:
    async with chat("first", "second", "third") as room:
        await room.write("one")
        await room.hear()
        old = (await room.house.sessions.open(KEY)).session_id
        await room.write("/new")
        await room.hear(2)
        assert (await room.house.sessions.open(KEY)).entries == ()
        (ended,) = await room.told("session:end")
        (reset,) = await room.told("session:reset")
        assert (ended["session_id"], reset["reason"]) == (old, "new")
        assert len(await room.told("session:start")) == 2
        await room.write(f"/resume {old}")
        await room.hear(3)
        assert [entry.content for entry in (await room.house.sessions.open(KEY)).entries] == ["one", "first"]


async def test_undo_and_retry_change_what_the_model_sees() -> None:
    async with chat("first", "second", "third") as room:
        await room.write("one")
        await room.hear()
        await room.write("two")
        await room.hear(2)
        await room.write("/undo")
        assert await room.hear(3) == "The last turn is forgotten."
        await room.write("/retry")
        assert await room.hear(4) == "third"
        entries = (await room.house.sessions.open(KEY)).entries
        assert [entry.content for entry in entries] == ["one", "third"]


async def test_what_hooks_keep_in_the_session_is_there_in_the_next_turn() -> None:
    async with chat("a", "b") as room:
        seen: list[Any] = []

        @room.hooks.on("agent:start")
        def count(event: Any) -> None:
            seen.append(event.session.get("turns", 0))
            event.session["turns"] = seen[-1] + 1

        await room.write("one")
        await room.hear()
        await room.write("two")
        await room.hear(2)
        assert seen == [0, 1]


async def test_an_answer_is_shown_while_it_grows_where_the_network_can_edit() -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["one ", "two ", "three"], "delay": 0.05}]}) as room:
        room.net.can_edit = True
        await room.write("slow")
        (sent,) = await room.when("message:sent")
        assert sent["message_ids"] == ["m1"]
        assert len(room.net.sent) == 1
        assert (room.net.shown or [room.net.sent[0].text])[-1] == "one two three"


async def test_nothing_is_shown_early_when_a_hook_wants_to_see_it_before() -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["one ", "two"], "delay": 0.05}]}) as room:
        room.net.can_edit = True
        room.hooks.on("message:sending", lambda event: {"text": event["text"].upper()})
        await room.write("slow")
        await room.when("message:sent")
        assert ([reply.text for reply in room.net.sent], room.net.shown) == (["ONE TWO"], [])


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


async def test_a_message_that_waited_too_long_is_not_answered_but_told_so() -> None:
    async with chat("never said", too_old=10.0) as room:
        await room.write("hello", sent_at=time.time() - 11)
        assert "long ago" in await room.hear()
        assert await room.told("agent:start") == []


async def test_who_writes_too_much_is_told_once_and_the_rest_is_not_accepted() -> None:
    async with chat("ok") as room:
        room.house.access.rules = dataclasses.replace(room.house.access.rules, rate=1)
        assert (await room.write("/whoami")).settled
        first, second = await room.write("more"), await room.write("and more")
        assert first.settled == second.settled
        await room.hear(2)
        assert len([reply for reply in room.net.sent if "a minute" in reply.text]) == 1
        assert await room.told("agent:start") == []

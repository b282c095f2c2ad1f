"""A tool without permission asks an approver: the places of the question, the valid answers, and its end."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from gateway.agent import tool
from gateway.backoff import Backoff
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.engine.interface import NewRecord
from gateway.errors import AdapterError
from gateway.lanes.lanes import list_open_sessions
from gateway.messages.message import Address, Message, Reply
from gateway.questions.rights import is_approval
from gateway.questions.shown import ShownQuestion, ShownQuestions
from gateway.records import records, subjects
from gateway.sessions.session import OpenTurn
from tests.dispatcher.room import KEY, ROOM, Chat, chat
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until

RAN: dict[str, Any] = {"tool_calls": [{"name": "run", "args": {"command": "ls -la"}}]}
TURN = {"user": "list", "answers": [RAN, {"text": "done"}]}
ADMIN_CHAT = Address("net", "1")
GROUP = Address("net", "group", "group")
APPROVERS = ("admin",)


@tool(asks=True, subject=lambda args: str(args["command"]))
async def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def asking(*, reach: float = 30.0, about: Any = GatewayFacts, approvers: tuple[str, ...] = APPROVERS) -> Any:
    return chat(TURN, tools=(run,), approvers=approvers, reach=reach, about=about)


async def question(room: Chat, where: Address = ADMIN_CHAT) -> Reply:
    """The question, once it is shown there."""
    await until(lambda: bool(shown(room, where)), f"a question in {where}")
    return shown(room, where)[-1]


def session_key(place: Address) -> str:
    return f"agent:main:net:dm:{place.chat_id}"


def shown(room: Chat, where: Address) -> list[Reply]:
    return [reply for reply in room.net.sent if reply.buttons and reply.address == where]


def told(room: Chat, where: Address = ROOM) -> list[str]:
    return [reply.text for reply in room.net.sent if reply.address == where]


async def ran(room: Chat) -> list[Any]:
    """Return the tool's result for each run."""
    return [after["result"] for after in await room.told("tool:after") if after["result"]]


async def press(room: Chat, asked: Reply, label: str, user: str, where: Address = ADMIN_CHAT) -> str | None:
    value = {button.label: button.value for button in asked.buttons}[label]
    message = Message(f"{user}:{label}:pressed", where, user, value, user_name=f"Person {user}", kind="button")
    return (await room.dispatcher.receive(message)).decision


async def test_it_is_put_to_an_approver_and_their_yes_goes_on_with_the_turn() -> None:
    async with asking() as room:
        await room.write("list", user_name="Ben")
        asked = await question(room)
        assert "Ben (net 7)" in asked.text
        assert "ls -la" in asked.text
        assert [button.label for button in asked.buttons] == ["Yes", "No"]
        await until(lambda: any("An approver was notified: `run`" in text for text in told(room)))
        assert not shown(room, ROOM)
        assert await press(room, asked, "Yes", "1") == "settled"
        await until(lambda: "done" in told(room))
        assert (await room.told("tool:after"))[-1]["result"] == "ran ls -la"
        await until(lambda: room.net.shown == [f"{asked.text}\n\nAllowed by Person 1 (net 1)."])
        assert await room.house.engine.read("gw.ask.>") == []


async def test_a_no_is_one_and_says_whose() -> None:
    async with asking() as room:
        await room.write("list")
        asked = await question(room)
        await press(room, asked, "No", "1")
        await until(lambda: "done" in told(room))
        assert (await room.told("tool:after"))[-1]["denied"] == "The person did not allow run to run."
        await until(lambda: bool(room.net.shown) and room.net.shown[-1].endswith("Refused by Person 1 (net 1)."))


@pytest.mark.parametrize("text", ["/approve", "/approve always", "yes", "always", "/deny", "no"])
async def test_who_asks_does_not_answer_by_whatever_they_write(text: str) -> None:
    async with asking() as room:
        await room.write("list")
        await question(room)
        receipt = await room.write(text)
        assert receipt.decision == ("forbidden" if text.startswith("/") else "queued")
        assert (await room.house.sessions.open(KEY)).is_waiting
        assert not await ran(room)


async def test_nobody_answers_with_the_button_but_approvers_and_a_late_press_does_nothing() -> None:
    async with asking() as room:
        await room.write("list")
        asked = await question(room)
        for user, where in (("7", ROOM), ("8", ROOM), ("7", ADMIN_CHAT), ("7", GROUP), ("8", GROUP)):
            assert await press(room, asked, "Yes", user, where) == "forbidden"
        assert await press(room, asked, "Yes", "99") == "stranger"
        assert not await ran(room)
        await press(room, asked, "No", "1", GROUP)
        await until(lambda: "done" in told(room))
        await until(lambda: bool(room.net.shown))
        before = told(room, ADMIN_CHAT)
        assert await press(room, replace(asked), "Yes", "1") == "settled"
        assert told(room, ADMIN_CHAT) == before, "a late press is silent"
        assert not await ran(room)


async def test_an_approver_may_write_the_command_or_reply_to_the_question() -> None:
    for text, reply_to in (("/approve", ""), ("yes", "m1")):
        async with asking() as room:
            await room.write("list")
            await question(room)
            await until(lambda: len(told(room)) == 1)
            await room.write("yes", user="1", address=ADMIN_CHAT)
            assert not await ran(room), "a yes without more is for the conversation"
            await room.write(text, user="1", address=ADMIN_CHAT, reply_to=reply_to)
            await until(lambda: "done" in told(room))
            assert (await room.told("tool:after"))[-1]["result"] == "ran ls -la"


async def test_what_is_open_is_listed_in_the_order_in_which_it_was_asked() -> None:
    places = [Address("net", f"{number}") for number in (7, 1, 4)]
    async with chat(*[TURN] * len(places), tools=(run,), approvers=APPROVERS) as room:
        for place in places:
            before = len(shown(room, ADMIN_CHAT))
            await room.write("list", address=place)
            await until(partial(lambda count: len(shown(room, ADMIN_CHAT)) > count, before))
        asked = [session_key(place) for place in places]
        assert [request.session_key for request, _ in await room.dispatcher.approvals.list_open()] == asked
        assert await list_open_sessions(room.house.engine) == asked
        found = await room.dispatcher.approvals.find_shown(Message("9", ADMIN_CHAT, "1", "yes"))
        assert [request.session_key for request in found] == asked


@pytest.mark.parametrize("text", ["/approve always", "/approve session"])
async def test_on_the_question_of_another_a_yes_is_for_once(text: str) -> None:
    async with asking() as room:
        await room.write("list")
        await question(room)
        await room.write(text, user="1", address=ADMIN_CHAT)
        await until(lambda: "done" in told(room))
        assert any("this once" in text for text in told(room, ADMIN_CHAT))
        assert await room.house.engine.read("gw.keep.>") == []
        await room.write("list")
        await until(lambda: len(shown(room, ADMIN_CHAT)) == 2)


async def test_an_approver_decides_for_themself_where_they_asked() -> None:
    async with asking() as room:
        await room.write("list", user="1", address=GROUP)
        asked = await question(room, GROUP)
        assert [button.label for button in asked.buttons] == ["Yes", "For this session", "Always", "No"]
        assert await press(room, asked, "Always", "1", GROUP) == "settled"
        await until(lambda: "done" in told(room, GROUP))
        assert not shown(room, ADMIN_CHAT)


async def test_where_asker_is_listed_everybody_decides_for_themself_and_for_nobody_else() -> None:
    async with asking(approvers=("admin", "asker")) as room:
        await room.write("list")
        asked = await question(room, ROOM)
        assert await press(room, asked, "Yes", "8", ROOM) == "forbidden"
        assert await press(room, asked, "Yes", "7", ROOM) == "settled"
        await until(lambda: "done" in told(room))


async def test_where_many_read_along_the_question_names_the_tool_and_not_its_arguments() -> None:
    def about() -> GatewayFacts:
        return GatewayFacts(networks=(PlatformInfo("net", served=True, home_channel="lobby"),))

    async with asking(approvers=(), about=about) as room:
        await room.write("list", user_name="Ben *[x](y)*")
        asked = await question(room, Address("net", "lobby"))
        assert [one.text for one in asked.literals] == ["Ben xy (net 7)", "run", ""]
        assert "ls -la" not in asked.text
        assert await press(room, asked, "Yes", "1", Address("net", "lobby")) == "forbidden", "no approver here"


async def test_where_nobody_can_be_reached_the_answer_is_no() -> None:
    async with asking(approvers=(), reach=0.2) as room:
        await room.write("list")
        await until(lambda: "done" in told(room))
        assert "No approver can be reached." in told(room)
        assert (await room.told("tool:after"))[-1]["denied"] == "No approver can be reached."


async def test_every_other_question_is_answered_by_whom_it_is_put_to() -> None:
    async with chat("ok", approvers=APPROVERS) as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?") and None)
        await room.write("go")
        asked = await question(room, ROOM)
        assert "Really?" in asked.text
        assert await press(room, asked, "Yes", "8", ROOM) == "forbidden"
        assert await press(room, asked, "Yes", "7", ROOM) == "settled"
        await until(lambda: "ok" in told(room))


async def test_a_hook_that_asks_about_a_tool_asks_an_approver() -> None:
    async with chat(TURN, tools=(run,), approvers=("admin",)) as room:
        room.hooks.on("tool:before", lambda event: event.ask("Sure?", "sure") and None)
        await room.write("list")
        assert "Sure?" in (await question(room)).text
        assert not shown(room, ROOM)


async def test_work_that_nobody_waits_for_asks_too_goes_on_without_and_says_so() -> None:
    async with chat(TURN, tools=(run,), approvers=("admin",), unattended=lambda: 0.5) as room:
        message = Message("w1", ROOM, "hook:morning", "list", kind="internal")
        await room.dispatcher.lanes.accept(message, KEY)
        asked = await question(room)
        assert "Unattended work (hook:morning)" in asked.text
        await until(lambda: "done\n\n(Done without run: no approval came in time.)" in told(room))
        assert (await room.told("tool:after"))[-1]["denied"] == "No approver approved run in time. Go on without it."
        await until(lambda: bool(room.net.shown) and room.net.shown[-1].endswith("No answer came in time."))
        assert not any("is asked" in text for text in told(room))


async def test_work_that_nobody_waits_for_goes_on_as_any_other_once_it_is_allowed() -> None:
    async with chat(TURN, tools=(run,), approvers=("admin",), unattended=lambda: 30.0) as room:
        await room.dispatcher.lanes.accept(Message("w1", ROOM, "hook:morning", "list", kind="internal"), KEY)
        asked = await question(room)
        assert await press(room, asked, "Yes", "1") == "settled"
        await until(lambda: "done" in told(room))
        assert await ran(room) == ["ran ls -la"]


async def test_an_approver_sees_the_whole_call_in_a_direct_chat_and_nobody_else_does() -> None:
    async with asking() as room:
        await room.write("list")
        await question(room)
        await room.write("/approvals", user="1", address=GROUP)
        await room.write("/approvals", user="8", address=Address("net", "8"))
        await until(lambda: bool(told(room, GROUP)) and bool(told(room, Address("net", "8"))))
        assert "ls -la" not in told(room, GROUP)[0] + told(room, Address("net", "8"))[0]
        await room.write("/approvals", user="1", address=ADMIN_CHAT)
        await until(lambda: "lets it run" in told(room, ADMIN_CHAT)[-1])
        assert "ls -la" in told(room, ADMIN_CHAT)[-1]
        command = told(room, ADMIN_CHAT)[-1].split(" lets it run")[0].splitlines()[-1]
        await room.write(command, user="1", address=ADMIN_CHAT)
        await until(lambda: "done" in told(room))
        assert await ran(room) == ["ran ls -la"]


async def test_an_approval_that_the_first_version_left_open_is_for_approvers_too() -> None:
    """Its journal says nothing of the calls that questions were about."""
    async with asking() as room:
        session = await room.house.sessions.open(KEY)
        message = records.InboundMessage(session_key=KEY, message=Message("1", ROOM, "7", "list"))
        (seq,) = await room.house.engine.append(
            NewRecord(subjects.session_subject_of("in", KEY), records.encode(message))
        )
        claim = records.Claim(turn_id="t", by="", on=seq)
        asked = records.QuestionsAsked(turn_id="t", questions={"c1/run/approve": "May I?"}, until=9e9)
        await room.house.sessions.append(session, claim, asked)
        assert (await room.write("/approve")).decision == "forbidden"
        assert (await room.house.sessions.open(KEY)).is_waiting


def test_a_question_is_known_as_an_approval_by_its_calls_or_its_old_name() -> None:
    turn = OpenTurn("t", 1, 1, 1)
    for name in ("c1/shell/approve", "t/tool:before/main/c1/1/hook/Sure?", "t/tools:before/main/1/hook/sure"):
        assert is_approval(turn, name), name
    for name in ("t/agent:start/main/hook/approve", "agent:start/hook/why", "Really?"):
        assert not is_approval(turn, name), name


async def test_who_may_not_answer_writes_nothing_into_the_session_of_whoever_asks() -> None:
    lobby = Address("net", "lobby", "group")

    def about() -> GatewayFacts:
        return GatewayFacts(networks=(PlatformInfo("net", served=True, home_channel="lobby"),))

    async with asking(approvers=(), about=about) as room:
        await room.write("list")
        await question(room, Address("net", "lobby"))
        await until(lambda: bool(told(room)))
        receipt = await room.write("yes", user="8", address=lobby, reply_to="m1")
        assert receipt.decision == "forbidden"
        assert len(await room.house.engine.read(subjects.session_subject_of("in", KEY))) == 1
        assert not await ran(room)


class FarOutbox:
    """The outbox of a network that is unreachable for a while."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.closed: list[str] = []

    async def close_question(self, _reply: Reply, _ids: object, text: str) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise AdapterError("net is not connected")
        self.closed.append(text)


async def test_what_is_shown_as_open_is_closed_however_long_its_network_is_gone() -> None:
    async with MemoryEngine() as engine:
        reply, outbox = Reply("approval:1", ADMIN_CHAT, "May I?"), FarOutbox(40)
        owed = await engine.append(records.make_reply_put(reply, KEY, "", 1.0))
        sent = records.SendSucceeded(out=owed[0], reply_id=reply.id, message_ids=(("m1",),), at=1.0)
        await engine.append(NewRecord(subjects.send_subject_of(subjects.place_of(ADMIN_CHAT)), records.encode(sent)))
        questions = ShownQuestions(engine, cast(Any, outbox), Backoff(0.001, 0.001))
        await questions.close(ShownQuestion(owed[0], reply), "Allowed by Ann.")
        assert outbox.closed == ["Allowed by Ann."]

"""From a message to its answer, with the real lanes, outbox, hooks and agent on a journal in memory."""

import json
import time
from typing import Any

import msgspec
import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.agent.tools import tool_from
from gateway.hooks import Deny, End
from gateway.messages.message import Address, Message
from gateway.records.subjects import delta_subject_of
from gateway.sessions.export import as_markdown
from tests.dispatcher.room import KEY, ROOM, answer, chat
from tests.spine import lane_settings, until


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


async def test_what_hooks_make_of_a_reply_stands_in_the_conversation_behind_it() -> None:
    """It is decided when the turn is over; each time that the reply is tried it is the same decision."""
    async with chat("secret", "open", "third") as room:
        room.hooks.on("message:sending", censor)
        await room.write("one")
        await room.when("message:failed")
        await room.write("two")
        assert await room.hear() == "OPEN"
        session = await room.house.sessions.open(KEY)
        made = [(one.entry, one.event, one.decision, one.reason) for one in session.decisions]
        assert made == [(2, "message:sending", "deny", "no"), (4, "message:sending", "change", "text")]
        lines = [line for line in as_markdown(session).splitlines() if line.startswith(("## ", "> "))]
        first, last = "deny at message:sending: no", "change at message:sending: text"
        said = ["## User", "## Assistant"]
        assert [line.split(": ", 1)[-1] for line in lines] == [*said, first, *said, last]


def censor(event: Any) -> Any:
    if event["text"] == "secret":
        return Deny("no")
    return {"text": event["text"].upper()}


async def test_a_question_of_a_hook_goes_to_the_person_and_the_turn_goes_on_with_the_answer() -> None:
    calls = {"tool_calls": [{"name": "answer", "args": {"text": "it"}}]}
    async with chat({"user": "do", "answers": [calls, {"text": "done"}]}, tools=(tool_from(answer),)) as room:
        asked: list[Any] = []

        @room.hooks.on("tool:before")
        def approve(event: Any) -> Any:
            asked.append(said := event.ask("May I?", name="approval"))
            return None if said == "sure" else Deny("no")

        await room.write("do it")
        assert "May I?" in await room.hear()
        assert [button.value.split(" #")[0] for button in room.net.sent[0].buttons] == ["/approve", "/deny"]
        await room.write("certainly not", user="8", address=Address("net", "room2"))
        await room.write("sure")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        assert asked == ["sure"]
        assert len(await room.told("message:received")) >= 2


@pytest.mark.parametrize(
    ("command", "happens"),
    [("/approve", "yes"), ("/approve once", "yes"), ("/approve always", "always"), ("/deny", "deny")],
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


@pytest.mark.parametrize(
    ("command", "follows"),
    [("/approve", "ok"), ("/approve session", "ok"), ("Yes", "ok"), ("/deny", "The answer was no.")],
)
async def test_what_a_hook_has_asked_as_plain_data_goes_on_with_every_kind_of_yes(command: str, follows: str) -> None:
    async with chat("ok") as room:
        room.hooks.on("agent:start", lambda event: {"decision": "ask", "prompt": "Really?"})
        await room.write("go")
        assert "Really?" in await room.hear()
        await room.write(command)
        await until(lambda: follows in [reply.text for reply in room.net.sent])


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


@pytest.mark.row("WEB-37")
async def test_an_admins_command_is_unknown_to_others() -> None:
    async with chat() as room:
        await room.write("/restart")
        assert await room.hear() == "Unknown command here: /restart. /help lists them."
        await room.write("/platform", user="1")
        assert await room.hear(2) == "net: up"


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
        await room.write("/undo " + "9" * 5000)
        assert "forgotten" in await room.hear(5)


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


@pytest.mark.parametrize("event", ["llm:after", "node:after", "message:add", "agent:end", "message:sending"])
async def test_nothing_is_shown_early_when_a_hook_may_change_it_later(event: str) -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["one ", "two"], "delay": 0.05}]}) as room:
        room.net.can_edit = True
        heard = await room.house.engine.tail(delta_subject_of(KEY))
        room.hooks.on(event, lambda _event: None)
        await room.write("slow")
        await room.when("message:sent")
        assert ([reply.text for reply in room.net.sent], room.net.shown) == (["one two"], [])
        await room.house.engine.publish(delta_subject_of(KEY), b"the last")
        assert (await anext(aiter(heard))).data == b"the last", "nothing came before it"


@pytest.mark.parametrize("is_stream_seen", [False, True])
async def test_who_only_looks_on_or_changes_each_piece_costs_no_streaming(is_stream_seen: bool) -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["one ", "two"], "delay": 0.05}]}) as room:
        room.net.can_edit = True
        heard = await room.house.engine.tail(delta_subject_of(KEY))
        room.hooks.watch(["llm:after", "agent:end"], print)
        if is_stream_seen:
            room.hooks.on("llm:*", lambda event: event.update(chunk="*") if "chunk" in event else None)
        await room.write("slow")
        await room.when("message:sent")
        record = await anext(aiter(heard))
        assert json.loads(record.data)["text"] == ("*" if is_stream_seen else "one ")


async def test_what_was_stopped_before_hooks_have_seen_it_is_not_said() -> None:
    async with chat({"user": "slow", "answers": [{"chunks": ["one "] * 50, "delay": 0.2}]}) as room:
        room.hooks.on("agent:end", lambda event: event.update(response_full="changed"))
        await room.write("slow")
        await room.when("llm:chunk")
        await room.write("/stop")
        (ended,) = await room.when("agent:end")
        assert ended["interrupted"]
        await until(lambda: room.net.sent)
        assert not [reply.text for reply in room.net.sent if "one" in reply.text]


async def test_a_message_that_waited_too_long_is_not_answered_but_told_so() -> None:
    async with chat("never said", too_old=10.0) as room:
        await room.write("hello", sent_at=time.time() - 11)
        assert "a long time ago" in await room.hear()
        assert await room.told("agent:start") == []


async def test_who_writes_too_much_is_told_once_and_the_rest_is_not_accepted() -> None:
    async with chat("ok") as room:
        room.house.access.rules = msgspec.structs.replace(room.house.access.rules, rate=1)
        assert (await room.write("/whoami")).settled
        first, second = await room.write("more"), await room.write("and more")
        assert first.settled == second.settled
        await room.hear(2)
        assert len([reply for reply in room.net.sent if "rate limit" in reply.text]) == 1
        assert await room.told("agent:start") == []


async def test_the_end_of_a_turn_that_is_given_up_is_told() -> None:
    async with chat({"text": "never"}, lanes=lane_settings(attempts=0, apology="so sorry")) as room:
        await room.write("poison")
        assert await room.hear() == "so sorry"
        (end,) = await room.told("agent:end")
    assert end["id"] == f"{end['turn_id']}/agent:end/main"
    assert (end["message"], end["response"], end["stop"], end["completed"]) == ("poison", "so sorry", "failed", False)
    assert end["error"]["message"] == "it failed each time"


async def test_each_wait_of_a_turn_for_an_answer_is_an_event_of_its_own() -> None:
    places = [{"text": "hello", "to": f"net:{room}"} for room in ("kitchen", "hall")]
    calls = [{"tool_calls": [{"name": "send_message", "args": place}]} for place in places]
    turn = {"user": "tell", "answers": [*calls, {"text": "told"}]}
    async with chat(turn, tools=make_chat_tools()) as room:
        await room.write("tell both")
        for count in (1, 2):
            assert "send_message" in await room.hear(2 * count - 1)
            await until(room.is_asked, "the question")
            await room.write("yes")
        await until(lambda: "told" in [reply.text for reply in room.net.sent])
        ends = await room.told("agent:end")
    where = f"{ends[0]['turn_id']}/agent:end/main"
    assert [end["id"] for end in ends] == [f"{where}/paused", f"{where}/paused#2", where]

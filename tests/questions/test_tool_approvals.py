"""Lasting approvals of a person: kept in the journal, listed, taken back, and for that person alone."""

import math
from typing import Any

import pytest

from gateway.agent import tool
from gateway.engine.interface import NewRecord
from gateway.events.asked_calls import make_asked_call
from gateway.messages.message import Address
from gateway.questions.tool_approvals import expire_approvals
from gateway.questions.turn import answers_of_turn
from gateway.records import records, subjects
from gateway.sessions.session import OpenTurn
from tests.dispatcher.room import KEY, chat
from tests.spine import until

RAN: dict[str, Any] = {"tool_calls": [{"name": "run", "args": {"command": "ls"}}]}
TURN = {"user": "list", "answers": [RAN, {"text": "done"}]}


@tool(asks=True, subject=lambda args: str(args["command"]))
async def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


@pytest.mark.parametrize(("how", "next_session"), [("session", "May I run"), ("always", "done")])
async def test_an_approval_holds_as_long_as_was_said_and_can_be_taken_back(how: str, next_session: str) -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        assert (await room.hear(1)).startswith("May I run run?\ncommand:\n```\nls\n```")
        await until(room.is_asked)
        await room.write(f"/approve {how}")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        count = len(room.net.sent)
        await room.write("list again")
        assert await room.hear(count + 1) == "done"
        await room.write("/approvals")
        assert f"1. `run:ls` ({how})" in await room.hear(count + 2)
        await room.write("/new")
        await room.hear(count + 3)
        await room.write("list in a new session")
        assert (await room.hear(count + 4)).startswith(next_session)


async def test_what_is_taken_back_is_asked_for_again_and_an_approval_is_of_one_person() -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        await room.hear(1)
        await until(room.is_asked)
        await room.write("/approve always")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        count = len(room.net.sent)
        await room.write("/approvals", user="8")
        assert await room.hear(count + 1) == "Nothing is allowed for good."
        await room.write("/approvals revoke 7")
        assert "takes one back" in await room.hear(count + 2)
        await room.write("/approvals revoke 1")
        assert await room.hear(count + 3) == "I ask again before `run:ls`."
        await room.write("list")
        assert (await room.hear(count + 4)).startswith("May I run run?\ncommand:\n```\nls\n```")


async def test_what_is_asked_about_is_kept_with_the_question() -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        await until(room.is_asked)
        turn = (await room.house.sessions.open(KEY)).turn
        assert turn
        ((about,),) = turn.calls.values()
        assert (about.tool, about.args, len(about.digest)) == ("run", {"command": "ls"}, 64)
        assert list(turn.calls) == list(turn.questions)


async def test_what_nobody_allowed_is_not_run() -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        await room.hear(1)
        await until(room.is_asked)
        await room.write("/deny")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        told = await room.told("tool:after")
        assert told[-1]["denied"] == "The person did not allow run to run."
        assert await room.house.engine.read("gw.keep.>") == []


@pytest.mark.parametrize(
    ("label", "follows", "kept"),
    [
        ("Yes", "done", []),
        ("For this session", "done", ["session"]),
        ("Always", "done", ["always"]),
        ("No", "done", []),
    ],
)
async def test_every_answer_to_a_question_about_a_tool_has_a_button(label: str, follows: str, kept: list[str]) -> None:
    async with chat(TURN, tools=(run,)) as room:
        await room.write("list")
        await room.hear(1)
        buttons = {button.label: button.value for button in room.net.sent[0].buttons}
        assert list(buttons) == ["Yes", "For this session", "Always", "No"]
        assert max(len(value.encode()) for value in buttons.values()) <= 64
        await until(room.is_asked)
        await room.write(buttons[label], kind="button")
        await until(lambda: follows in [reply.text for reply in room.net.sent])
        after = (await room.told("tool:after"))[-1]
        assert (after["result"] == "ran ls") == (label != "No")
        found = [records.decode(record.data) for record in await room.house.engine.read("gw.keep.>")]
        assert [one.value for one in found if isinstance(one, records.StoredValue)] == kept


async def test_a_question_of_a_hook_can_be_answered_for_once_alone() -> None:
    """What a hook makes of an answer is its own affair: nothing is kept for it."""
    async with chat("ok") as room:
        room.hooks.on("agent:start", lambda event: event.ask("Really?"))
        await room.write("go")
        await room.hear(1)
        assert [button.label for button in room.net.sent[0].buttons] == ["Yes", "No"]


async def test_what_stands_for_somebody_who_is_no_approver_ends_at_the_start_and_is_named(caplog: Any) -> None:
    """As 0.1 left it behind, when people allowed tools for themselves."""
    async with chat(TURN, tools=(run,), approvers=("admin",)) as room:
        for owner, key in (("approvals/net:7", "run:ls"), ("approvals/net:1", "run"), ("a-hook", "run")):
            kept = records.encode(records.StoredValue(hook=owner, key=key, value="always"))
            await room.house.engine.append(NewRecord(subjects.hook_store_subject_of(owner, key), kept))
        await expire_approvals(room.house.engine, room.house.access)
        left = [records.decode(record.data) for record in await room.house.engine.read("gw.keep.>")]
        assert [one.hook for one in left if isinstance(one, records.StoredValue)] == ["approvals/net:1", "a-hook"]
        assert "net:7 may approve nothing (tools.approvers): what stood for good ends: run:ls" in caplog.text


async def test_what_is_allowed_for_a_session_serves_whoever_allowed_it_and_nobody_else_there() -> None:
    thread = Address("net", "group", "thread", "9")
    async with chat(TURN, TURN, tools=(run,)) as room:
        await room.write("list", address=thread)
        await until(lambda: len(room.net.sent) == 1)
        await room.write("/approve session", address=thread)
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        count = len(room.net.sent)
        await room.write("list", user="8", address=thread)
        assert (await room.hear(count + 1)).startswith("May I run run?\ncommand:\n```\nls\n```")
        await room.write("/approve", user="8", address=thread)
        await until(lambda: [reply.text for reply in room.net.sent].count("done") == 2)
        count = len(room.net.sent)
        await room.write("list", address=thread)
        assert await room.hear(count + 1) == "done"


async def test_an_approval_ends_with_its_question() -> None:
    """A turn that was away for longer finds no yes any more; what else people said stands."""
    call = make_asked_call("c", "run", {"command": "ls"})
    answers = {"may": "yes", "which": "large"}
    for ends, may in ((math.inf, "yes"), (1.0, None)):
        turn = OpenTurn("t", 1, 1, 1, answers=answers, calls={"may": (call,)}, until=ends)
        assert answers_of_turn(turn, 2.0) == {"may": may, "which": "large"}

"""Tools that send a message: before the turn is done, and to other chats."""

from typing import Any

import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.agent.toolbox.shell import ShellOptions, make_shell_tool
from gateway.agent.toolbox.shell_rules import read_job_question
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.config.settings import SandboxSettings, ToolSettings
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.events import Deny
from gateway.jobs.job import Job
from gateway.jobs.messages import OWN_SESSION
from gateway.messages.message import Address
from gateway.records import subjects
from gateway.worker.sandbox import find_support
from tests.dispatcher.room import KEY, ROOM, chat
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


async def test_a_job_whose_answer_goes_elsewhere_asks_once_and_runs_beside_the_conversation() -> None:
    calls = [calling("schedule", text="the tea", when="20m", to=to) for to in ("net:kitchen", "")]
    turn = {"user": "plan", "answers": [*calls, calling("scheduled"), {"text": "planned"}]}
    async with chat(turn, tools=make_chat_tools()) as room:
        await room.write("plan the tea")
        question = await room.hear(1)
        assert question.startswith("May I run schedule?")
        assert "net:kitchen" in question
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "planned" in [reply.text for reply in room.net.sent])
        jobs = room.dispatcher.jobs
        (there,) = [job for job in await jobs.list_all() if job.address == Address("net", "kitchen")]
        (here,) = await jobs.list_of(KEY)
        assert (there.origin, there.session_key) == (ROOM, OWN_SESSION.format(there.id))
        assert here.address == ROOM
        listed = [entry.content for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"][-1]
        assert {there.name, here.name} == {line.partition(":")[0] for line in listed.splitlines()}


async def test_the_words_of_a_job_make_no_job_that_answers_elsewhere() -> None:
    turn = {
        "user": "plan",
        "answers": [calling("schedule", text="tea", when="20m", to="net:kitchen"), {"text": "done"}],
    }
    async with chat(turn, tools=make_chat_tools()) as room:
        await room.write("plan", is_job=True)
        await until(room.is_asked)
        await room.write("yes")
        await until(lambda: "done" in [reply.text for reply in room.net.sent])
        (result,) = [entry for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"]
        assert result.content == "this turn was begun by `job` and sends nothing to other chats"
        assert await room.dispatcher.jobs.list_all() == []


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


async def test_the_shell_answers_about_the_jobs_that_the_person_may_see() -> None:
    commands = ("hermes cron list", "hermes-gateway jobs show theirs")
    calls = [calling("shell", command=one) for one in commands]
    shell = ShellOptions(ToolSettings(), fail, {}, fail, ShellSandbox(SandboxSettings(), find_support()), fail)
    turn = {"user": "check", "answers": [*calls, {"text": "done"}]}
    async with chat(turn, tools=(make_shell_tool(shell),)) as room:
        for maker in ("net:7", "net:8"):
            name = "own" if maker == "net:7" else "theirs"
            await room.dispatcher.jobs.add(Job(name, name, maker, "@daily", "tea", ROOM, ROOM, "another", "7", 0.0))
        await room.write("check")
        await room.hear(1)
        results = [entry.content for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"]
    assert results[0].startswith("own: ")
    assert "theirs" not in results[0]
    assert results[1].startswith("the job 'theirs' was not found")


async def test_a_guard_of_the_shell_also_decides_about_a_command_that_is_scheduled() -> None:
    shell = ShellOptions(
        ToolSettings(shell="allow"), fail, {}, fail, ShellSandbox(SandboxSettings(), find_support()), fail
    )
    turn = {"user": "plan", "answers": [calling("schedule", when="1h", command="df /"), {"text": "done"}]}
    async with chat(turn, tools=(make_shell_tool(shell), *make_chat_tools(shell))) as room:
        room.house.registry.on("tool:before", lambda _event: Deny("no disks"), when={"tool": "shell"})
        await room.write("plan")
        await room.hear(1)
        (result,) = [entry for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"]
        assert (result.content, await room.dispatcher.jobs.list_of(KEY)) == ("no disks", [])


async def test_no_person_is_asked_about_a_command_of_an_agent_without_a_shell() -> None:
    shell = ShellOptions(ToolSettings(), fail, {}, fail, ShellSandbox(SandboxSettings(), find_support()), fail)
    turn = {"user": "plan", "answers": [calling("schedule", when="1h", command="df /"), {"text": "done"}]}
    async with chat(turn, tools=make_chat_tools(shell)) as room:
        await room.write("plan")
        assert await room.hear(1) == "done"
        (result,) = [entry for entry in (await room.house.sessions.open(KEY)).entries if entry.role == "tool"]
        assert result.content == "a command needs the tool `shell`, which you do not have here"


@pytest.mark.parametrize(
    "command",
    [
        "hermes cron list; rm -rf x",
        "hermes cron list > x",
        "hermes cron run tea",
        "hermes-gateway jobs show --help",
        "hermes-gateway jobs history",
        "hermes-gateway jobs remove tea",
        "/tmp/hermes-gateway jobs list",
    ],
)
def test_a_command_that_does_more_than_read_jobs_is_one_for_the_shell(command: str) -> None:
    assert read_job_question(command) is None


def fail(*_: Any) -> Any:
    raise AssertionError("nothing runs")

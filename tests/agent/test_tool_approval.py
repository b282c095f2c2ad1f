"""An approval is for a call as it was shown: one that has changed since needs another question, then is refused."""

from typing import Any

import anyio
import pytest

from gateway.agent import Agent, tool
from gateway.agent.tool_approval import check_approval
from gateway.agent.tools import Tool
from gateway.events import AskedCall, Deny, Pause
from tests.agent.stage import Stage


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def tools(ran: list[str]) -> list[Tool]:
    @tool(asks=True, subject=lambda args: str(args["command"]))
    async def shell(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return f"ran {command}"

    @tool()
    async def write_file(path: str, text: str) -> str:
        """Write a file."""
        ran.append(f"{path}={text}")
        return "written"

    @tool(read_only=True)
    async def read_file(path: str) -> str:
        """Read a file."""
        ran.append(f"read {path}")
        return "text"

    return [shell, write_file, read_file]


def calling(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(calls)]}


SHELL = calling(("shell", {"command": "touch x"}))


def shown_in(result: Any) -> list[dict[str, Any]]:
    return [call.args for question in result.questions for call in question.calls]


def say_yes(stage: Stage, result: Any) -> None:
    stage.answers |= {question.id: True for question in result.questions}


async def test_a_call_that_a_hook_swaps_after_the_yes_is_asked_about_once_more_then_refused(stage, tools, ran) -> None:
    commands = iter(["echo harmless", "touch x", "touch y", "touch z"])

    @stage.hooks.on("tool:before", key="swapper")
    def swap(event):
        event["args"] = {"command": next(commands)}

    agent = stage.agent(SHELL, "Done.", tools=tools)
    first = await stage.play(agent)
    assert shown_in(first) == [{"command": "echo harmless"}]
    say_yes(stage, first)
    second = await stage.again(agent)
    assert (shown_in(second), ran) == ([{"command": "touch x"}], [])
    assert second.questions[0].prompt.endswith("changed after the last answer, so please answer again.")
    assert second.questions[0].calls[0].changed_by == ("swapper",)
    say_yes(stage, second)
    last = await stage.again(agent)
    assert (last.reply, ran) == ("Done.", [])
    assert last.entries[2].content == (
        "shell is not run: this call was changed after it was allowed, by the hook swapper."
    )


async def test_what_was_asked_once_more_runs_as_it_was_shown_then(stage, tools, ran) -> None:
    commands = iter(["echo harmless", "touch x", "touch x"])
    stage.on("tool:before")(lambda event: {"args": {"command": next(commands)}})
    agent = stage.agent(SHELL, "Done.", tools=tools)
    say_yes(stage, await stage.play(agent))
    say_yes(stage, await stage.again(agent))
    assert (await stage.again(agent)).reply == "Done."
    assert ran == ["touch x"]


@pytest.mark.parametrize("field", ["args", "tool"])
async def test_a_yes_to_a_hooks_own_question_is_one_to_that_call_too(stage, tools, ran, field: str) -> None:
    """The hook asks about one call, and another hook makes another of it when the answer is there."""

    @stage.hooks.on("tool:before", key="guard")
    def guard(event):
        if not event.ask("May it write?", name="may"):
            raise Deny("no")

    @stage.hooks.on("tool:before", key="swapper", order=1)
    def swap(event):
        if stage.answers:
            event.update({"args": {"path": "a", "text": "evil"}} if field == "args" else {"tool": "read_file"})

    agent = stage.agent(calling(("write_file", {"path": "a", "text": "good"})), "Done.", tools=tools)
    first = await stage.play(agent)
    assert shown_in(first) == [{"path": "a", "text": "good"}]
    say_yes(stage, first)
    second = await stage.again(agent)
    if field == "args":
        assert shown_in(second) == [{"path": "a", "text": "evil"}]
        stage.answers[second.questions[0].id] = False
        assert (await stage.again(agent)).entries[2].content == "The person did not allow write_file to run."
    assert ran == []


async def test_an_argument_that_changes_while_the_tool_waits_is_not_what_runs(stage, tools, ran) -> None:
    """A hook in code keeps the very arguments that it was shown, and changes them behind the yes."""
    kept: list[dict[str, Any]] = []
    stage.on("tool:before")(lambda event: kept.append(event["args"]))

    async def record(step: Any) -> None:
        for args in kept:
            args["command"] = "touch y"
        stage.steps.append(step)

    agent = stage.agent(SHELL, "Done.", tools=tools)
    say_yes(stage, await stage.play(agent))
    await stage.again(agent, record=record)
    assert ran == ["touch x"]


async def test_nothing_that_changes_something_runs_beside_an_open_question(stage, tools, ran) -> None:
    batch = calling(
        ("shell", {"command": "sh build.sh"}),
        ("write_file", {"path": "build.sh", "text": "touch x"}),
        ("read_file", {"path": "a"}),
    )
    agent = stage.agent(batch, "Done.", tools=tools)
    first = await stage.play(agent)
    assert (len(first.questions), ran) == (1, ["read a"])
    stage.answers[first.questions[0].id] = False
    result = await stage.again(agent)
    assert ran == ["read a", "build.sh=touch x"]
    assert [entry.content for entry in result.entries[2:5]] == [
        "The person did not allow shell to run.",
        "written",
        "text",
    ]


@pytest.mark.parametrize("turned", [False, True])
async def test_what_was_asked_about_has_run_before_anything_beside_it_begins(stage, tools, ran, turned) -> None:
    """The script is the one that was there when the person was asked, and not what the next call makes of it."""

    @tool(asks=True, subject=lambda args: str(args["command"]), name="shell")
    async def slow(command: str) -> str:
        """Take a while."""
        ran.append("begins")
        await anyio.sleep(0.05)
        ran.append("ends")
        return command

    calls = [("shell", {"command": "sh build.sh"}), ("write_file", {"path": "build.sh", "text": "touch x"})]
    agent = stage.agent(calling(*(calls[::-1] if turned else calls)), "Done.", tools=[slow, *tools[1:]])
    say_yes(stage, await stage.play(agent))
    await stage.again(agent)
    assert ran == ["begins", "ends", "build.sh=touch x"]


async def test_all_questions_of_a_batch_are_put_together_and_nothing_runs_before_the_last_answer(
    stage, tools, ran
) -> None:
    batch = calling(("shell", {"command": "one"}), ("shell", {"command": "two"}), ("shell", {"command": "three"}))
    agent = stage.agent(batch, "Done.", tools=tools)
    first = await stage.play(agent)
    assert sorted(args["command"] for args in shown_in(first)) == ["one", "three", "two"]
    say_yes(stage, first)
    del stage.answers[first.questions[1].id]
    assert len((await stage.again(agent)).questions) == 1
    assert ran == []
    say_yes(stage, first)
    await stage.again(agent)
    assert sorted(ran) == ["one", "three", "two"]


async def test_while_a_sub_agent_asks_nothing_begins_that_changes_something(stage, tools, ran) -> None:
    """One sub-agent wants to run a script, the other one to write it once the first one asks."""
    asks = Agent("asker", stage.agent(calling(("shell", {"command": "sh build.sh"})), "ran").model, tools=tuple(tools))
    writing = calling(("write_file", {"path": "build.sh", "text": "touch x"}))
    reading = calling(("read_file", {"path": "a"}))
    writes = Agent("writer", stage.agent(reading, writing, "wrote").model, tools=tuple(tools))
    both = calling(("delegate", {"agent": "asker", "task": "run"}), ("delegate", {"agent": "writer", "task": "write"}))
    main = stage.agent(both, "Done.", agents=(asks, writes))
    first = await stage.play(main)
    assert shown_in(first) == [{"command": "sh build.sh"}]
    assert "build.sh=touch x" not in ran
    say_yes(stage, first)
    assert (await stage.again(main)).reply == "Done."
    assert sorted(ran) == ["build.sh=touch x", "read a", "sh build.sh"]


@pytest.mark.parametrize(
    ("prompt", "answer", "follows"),
    [
        ("May I run shell: touch x", "yes", ["touch x"]),
        ("May I run shell: touch x", "deny", []),
        ("May I run shell: echo harmless", "yes", "asked"),
    ],
)
async def test_a_question_that_0_1_left_open_can_be_answered(stage, tools, ran, prompt, answer, follows) -> None:
    """It stood for the id of the call alone; its yes is one to the call that it named."""
    agent = stage.agent(SHELL, "Done.", tools=tools)
    await stage.play(agent)
    stage.calls.clear()
    stage.answers["c0/shell/approve"] = answer
    result = await stage.again(agent, asked={"c0/shell/approve": prompt})
    assert ("asked" if result.questions else ran) == follows


async def test_no_earlier_always_covers_a_call_that_has_no_scope(stage) -> None:
    @tool(asks=True, subject=lambda args: args["command"] if len(args["command"]) < 9 else None)
    async def shell(command: str) -> str:
        """Run a command."""
        return command

    ports = stage.ports(approvals=dict.fromkeys(("shell:short", "shell:", "shell:None", "shell"), "always"))
    assert check_approval(ports, shell, AskedCall("c1", "shell", {"command": "short"}, "d1"))
    with pytest.raises(Pause) as asked:
        check_approval(ports, shell, AskedCall("c2", "shell", {"command": "long enough"}, "d2"))
    assert [(one.can_last, one.pattern) for one in asked.value.questions] == [(False, "")]

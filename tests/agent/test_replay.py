"""A turn that was cut off by a crash goes on where it was: what is finished is not done again, nor told again."""

from dataclasses import replace

import anyio
import pytest

from gateway.agent import tool
from gateway.messages.steps import LlmStep, ToolFinished, ToolStarted


class Crash(BaseException):
    """The power goes."""


def calling(*names):
    return {"tool_calls": [{"name": name, "id": name} for name in names]}


@pytest.fixture
def ran():
    return []


@pytest.fixture
def make(ran):
    def make(name, repeatable=False):
        async def work() -> str:
            ran.append(name)
            return f"{name} done"

        work.__doc__ = name
        return tool(name=name, repeatable=repeatable)(work)

    return make


async def crash_after(stage, agent, count):
    """Play until so many steps are recorded, then lose everything but them."""

    async def record(step):
        stage.steps.append(step)
        if len(stage.steps) == count:
            raise Crash

    with pytest.raises((Crash, BaseExceptionGroup)):
        await stage.play(agent, record=record)


async def test_the_steps_of_a_turn_are_recorded_as_they_happen(stage, make):
    await stage.play(stage.agent(calling("a", "b"), "ok", tools=[make("a"), make("b", repeatable=True)]))
    kinds = [(type(step), getattr(step, "call_id", "")) for step in stage.steps]
    assert (kinds[0], kinds[-1]) == ((LlmStep, ""), (LlmStep, ""))
    for name in "ab":
        assert kinds.index((ToolStarted, name)) < kinds.index((ToolFinished, name))
    assert [step.repeatable for step in stage.steps if isinstance(step, ToolStarted)] == [False, True]
    assert len(kinds) == 6
    assert {step.turn_id for step in stage.steps} == {stage.turn_id}


@pytest.mark.row("STR-52")
@pytest.mark.row("STR-56")
@pytest.mark.parametrize("count", [1, 3, 4])
async def test_after_a_crash_finished_work_is_not_repeated(stage, make, ran, count):
    agent = stage.agent(calling("a"), "ok", tools=[make("a")])
    await crash_after(stage, agent, count)
    result = await stage.again(agent)
    assert (result.reply, ran) == ("ok", ["a"])
    assert [entry.content for entry in result.entries] == ["hi", "", "a done", "ok"]
    assert len(stage.model.requests) == 2


async def test_a_tool_whose_outcome_is_unknown_is_not_run_again_and_the_model_is_told(stage, make, ran):
    agent = stage.agent(calling("a"), "I will check.", tools=[make("a")])
    await crash_after(stage, agent, 2)
    result = await stage.again(agent)
    assert (result.reply, ran) == ("I will check.", [])
    assert "outcome is unknown" in result.entries[2].content
    assert result.entries[2].error


async def test_a_repeatable_tool_is_run_again(stage, make, ran):
    agent = stage.agent(calling("a"), "ok", tools=[make("a", repeatable=True)])
    await crash_after(stage, agent, 2)
    assert (await stage.again(agent)).entries[2].content == "a done"
    assert ran == ["a"]


async def test_what_may_have_ended_the_process_is_not_run_again_and_the_model_is_told(stage, make, ran):
    agent = stage.agent(calling("a"), "I leave it.", tools=[replace(make("a", repeatable=True), suspect=True)])
    await crash_after(stage, agent, 2)
    result = await stage.again(agent)
    assert (result.reply, ran) == ("I leave it.", [])
    assert "perhaps because of what came back" in result.entries[2].content


async def test_what_an_orderly_end_cut_off_is_run_again(stage, ran):
    begun = anyio.Event()

    @tool(repeatable=True)
    async def a() -> str:
        """Waits the first time."""
        ran.append("a")
        if len(ran) == 1:
            begun.set()
            await anyio.sleep_forever()
        return "a done"

    agent = stage.agent(calling("a"), "ok", tools=[replace(a, suspect=True)])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.play, agent)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert (await stage.again(agent)).entries[2].content == "a done"
    assert ran == ["a", "a"]


async def test_only_what_was_not_finished_is_told_again_and_says_so(stage, make):
    agent = stage.agent(calling("a", "b"), "ok", tools=[make("a", repeatable=True), make("b", repeatable=True)])
    await crash_after(stage, agent, 4)
    await stage.again(agent)
    told = [(name, fields.get("resumed", False)) for name, fields in stage.fired if name in set(stage.names)]
    assert told == [
        ("agent:start", True),
        ("message:add", True),
        ("tools:before", True),
        ("tool:before", True),
        ("tool:after", True),
        ("tools:after", True),
        ("message:add", True),
        ("message:add", True),
        ("agent:step", False),
        ("llm:before", False),
        ("llm:after", False),
        ("message:add", False),
        ("agent:end", False),
    ]


async def test_steps_that_are_long_over_are_not_told_at_all(stage, make):
    agent = stage.agent(calling("a"), calling("b"), "ok", tools=[make("a"), make("b")])
    await crash_after(stage, agent, 4)
    await stage.again(agent)
    assert [fields["tool"] for name, fields in stage.fired if name == "tool:before"] == ["b"]
    assert stage.names.count("agent:step") == 1


async def test_what_message_add_made_of_a_result_survives_the_crash(stage, make):
    stage.on("message:add")(
        lambda event: {"message": {**event["message"], "content": event["message"]["content"].upper()}}
    )
    agent = stage.agent(calling("a"), "ok", tools=[make("a")])
    await crash_after(stage, agent, 5)
    result = await stage.again(agent)
    assert [entry.content for entry in result.entries] == ["HI", "", "A DONE", "OK"]


async def test_a_turn_that_was_finished_but_not_written_down_costs_nothing_to_finish_again(stage, make):
    agent = stage.agent(calling("a"), "ok", tools=[make("a")])
    first = await stage.play(agent)
    again = await stage.again(agent)
    assert again.entries == first.entries
    assert again.usage == first.usage
    assert len(stage.model.requests) == 2

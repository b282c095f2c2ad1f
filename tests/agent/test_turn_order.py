"""The order of a turn's events, and that they come in pairs on every way out."""

from collections import Counter

import anyio
import pytest

from gateway.agent import tool
from gateway.errors import ModelError
from gateway.events import Deny, End

PAIRS = {f"{what}:before": f"{what}:after" for what in ("llm", "tools", "tool", "node", "handoff", "skill")}
PAIRS["agent:start"] = "agent:end"


def unpaired(stage):
    count = Counter(name for name, _ in stage.fired)
    return {one: (count[one], count[other]) for one, other in PAIRS.items() if count[one] != count[other]}


@pytest.mark.row("STR-47")
@pytest.mark.row("WEB-1")
@pytest.mark.row("WEB-2")
async def test_one_tool_turn_has_all_events_in_order(stage, call_weather, weather_tool):
    result = await stage.play(stage.agent(call_weather, "It is 18 degrees.", tools=[weather_tool]))
    assert result.reply == "It is 18 degrees."
    assert stage.names == [
        "agent:start",
        "message:add",
        "llm:before",
        "llm:after",
        "message:add",
        "tools:before",
        "tool:before",
        "tool:after",
        "tools:after",
        "message:add",
        "agent:step",
        "llm:before",
        "llm:after",
        "message:add",
        "agent:end",
    ]
    assert [entry.role for entry in result.entries] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.row("SHE-19")
@pytest.mark.row("SHE-20")
async def test_the_parts_of_a_turn_are_nodes(stage, call_weather, weather_tool):
    await stage.play(stage.agent(call_weather, "done", tools=[weather_tool]))
    nodes = [(name, fields["node_type"]) for name, fields in stage.fired if name.startswith("node:")]
    assert nodes == [
        ("node:before", "call_llm"),
        ("node:after", "call_llm"),
        ("node:before", "tool_node"),
        ("node:after", "tool_node"),
        ("node:before", "call_llm"),
        ("node:after", "call_llm"),
    ]


@pytest.mark.row("SHE-8")
async def test_where_nobody_listens_no_event_is_built(stage, call_weather, weather_tool):
    stage.watching = False
    result = await stage.play(stage.agent(call_weather, "done", tools=[weather_tool]))
    assert (result.reply, stage.fired) == ("done", [])


@pytest.mark.row("STR-50")
@pytest.mark.row("STR-63")
@pytest.mark.parametrize("name", [*PAIRS, *PAIRS.values(), "message:add", "llm:chunk"])
async def test_a_hook_that_raises_leaves_no_event_without_its_pair(stage, call_weather, weather_tool, name):
    """Also when the hook's error policy is to raise, at any point."""

    @stage.on(name)
    def broken(event):
        raise RuntimeError("broken hook")

    agent = stage.agent(call_weather, "done", tools=[weather_tool])
    try:
        await stage.play(agent)
    except RuntimeError:
        assert name == "agent:end"  # told already; there is nobody left to tell
    assert unpaired(stage) == {}


@pytest.mark.row("STR-29")
@pytest.mark.row("STR-23")
@pytest.mark.row("EDG-31")
@pytest.mark.row("WEB-27")
async def test_a_failing_model_ends_the_turn_with_an_apology_and_all_pairs(stage):
    result = await stage.play(stage.agent({"error": {"kind": "rate", "message": "429 of sk-secret"}}))
    assert (result.status, result.stop) == ("failed", "failed")
    assert "too many requests" in result.reply
    assert "sk-secret" not in result.reply
    assert "429" in result.error
    assert stage.fields("llm:after")["error"] == {"type": "ModelError", "message": "429 of sk-secret", "kind": "rate"}
    assert stage.fields("agent:end")["completed"] is False
    assert unpaired(stage) == {}
    assert [entry.role for entry in result.entries] == ["user", "assistant"]


@pytest.mark.parametrize("name", ["agent:start", "llm:before", "tools:before", "tool:before", "node:before"])
@pytest.mark.parametrize("outcome", [End("so be it", "enough"), Deny("not allowed")])
async def test_an_outcome_at_any_point_leaves_the_transcript_whole_and_the_events_paired(
    stage, call_weather, weather_tool, name, outcome
):
    @stage.on(name)
    def decide(event):
        return outcome

    result = await stage.play(stage.agent(call_weather, "done", "more", tools=[weather_tool]))
    assert unpaired(stage) == {}
    calls = [call.id for entry in result.entries for call in entry.tool_calls]
    assert [entry.call_id for entry in result.entries if entry.role == "tool"] == calls
    assert result.entries[0].role == "user"
    assert result.entries[-1].content == result.reply
    if isinstance(outcome, End):
        assert (result.reply, result.status, result.hook_ended) == ("so be it", "ended", "enough")


@pytest.mark.row("SHE-39")
@pytest.mark.row("EDG-40")
async def test_a_stopped_turn_is_paired_and_tells_the_model_next_time(stage):
    """Cancelling the turn's own scope is an interruption: a result, with what was said so far."""
    ports = stage.ports()

    @stage.on("llm:chunk")
    def stop_soon(event):
        if event["index"] == 2:
            ports.stop.cancel()

    agent = stage.agent({"text": "one two three four five", "delay": 0.001})
    result = await stage.play(agent, stop=ports.stop)
    assert (result.status, result.reply) == ("interrupted", "one two three ")
    assert "stopped this answer" in result.entries[-1].content
    assert stage.fields("agent:end")["interrupted"] is True
    assert stage.fields("agent:end")["stop"] == "interrupted"
    await stage.play(stage.agent("I see."), history=result.entries)
    assert "stopped this answer" in stage.sent().messages[-2].content
    assert stage.fields("llm:after")["error"] is None
    assert unpaired(stage) == {}


@pytest.mark.row("WEB-46")
async def test_a_stopped_tool_has_a_result_that_says_so(stage):
    ports = stage.ports()
    started = anyio.Event()

    @tool()
    async def sleep() -> str:
        """Sleep for ever."""
        started.set()
        await anyio.sleep_forever()
        return ""

    call = {"tool_calls": [{"name": "sleep", "id": "s1"}, {"name": "sleep", "id": "s2"}]}
    agent = stage.agent(call, tools=[sleep])
    async with anyio.create_task_group() as group:
        results = []

        async def play():
            results.append(await stage.play(agent, stop=ports.stop))

        group.start_soon(play)
        await started.wait()
        ports.stop.cancel()
    (result,) = results
    assert result.status == "interrupted"
    assert [entry.call_id for entry in result.entries if entry.role == "tool"] == ["s1", "s2"]
    assert unpaired(stage) == {}


async def test_a_cancellation_from_elsewhere_passes_through_after_all_is_paired(stage):
    @tool()
    async def sleep() -> str:
        """Sleep for ever."""
        await anyio.sleep_forever()
        return ""

    agent = stage.agent({"tool_calls": [{"name": "sleep"}]}, tools=[sleep])
    with anyio.move_on_after(0.05) as scope:
        await stage.play(agent)
    assert scope.cancelled_caught
    assert unpaired(stage) == {}


async def test_a_hook_that_hangs_while_the_turn_is_stopped_is_given_little_time(stage):
    ports = stage.ports()

    @stage.on("llm:chunk")
    def stop(event):
        ports.stop.cancel()

    @stage.on("agent:end")
    async def hang(event):
        await anyio.sleep_forever()

    result = await stage.play(stage.agent("one two three"), stop=ports.stop)
    assert result.status == "interrupted"


async def test_a_journal_that_refuses_a_step_ends_the_turn_before_its_next_effect(stage):
    """Whoever lost the turn to another node must not act on it."""
    ran = []

    @tool()
    async def act() -> str:
        """Act."""
        ran.append(1)
        return ""

    async def refuse(step):
        if type(step).__name__ == "ToolStarted":
            raise ModelError("no longer ours")

    agent = stage.agent({"tool_calls": [{"name": "act"}, {"name": "act"}]}, tools=[act])
    with pytest.raises(ModelError, match="no longer ours"):
        await stage.play(agent, record=refuse)
    assert ran == []
    assert unpaired(stage) == {}

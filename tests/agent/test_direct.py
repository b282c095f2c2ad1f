"""Agents are introduced, and their tools used by hand, with the same events as in a turn."""

import pytest

from gateway.agent import Agent, emit_agent_init, run_tool, tool
from gateway.agent.models.script import script
from gateway.events import Deny, Pause
from gateway.hooks import HookRegistry
from gateway.transcript import ToolCall

CALL = ToolCall("1", "weather", {"city": "Rome"})


@pytest.mark.row("STR-19")
@pytest.mark.row("STR-58")
def test_the_making_of_agents_is_told(stage):
    emit_agent_init(Agent("main", script(), agents=(Agent("helper", script()),)), stage.emit)
    told = [(name, fields["agent"], fields["kind"]) for name, fields in stage.told]
    assert told == [("agent:init", "main", "main"), ("agent:init", "helper", "sub-agent")]


@pytest.mark.row("STR-12")
async def test_the_making_of_an_agent_is_told_to_plain_functions_and_to_coroutines():
    heard = []

    async def slow(name, context):
        heard.append(f"awaited {context['agent']}")

    async with HookRegistry() as hooks:
        hooks.watch("agent:init", lambda name, context: heard.append(context["agent"]))
        hooks.watch("agent:init", slow)
        emit_agent_init(Agent("main", script()), hooks.emit)
        await hooks.settled()
    assert sorted(heard) == ["awaited main", "main"]


@pytest.mark.row("STR-45")
async def test_a_tool_that_is_used_by_hand_has_its_events_and_no_others(stage, weather_tool):
    stage.on("tool:before")(lambda event: {"args": {"city": "Paris"}})
    entry = await run_tool(stage.agent(tools=[weather_tool]), CALL, stage.ports())
    assert (entry.content, stage.names) == ("18 degrees in Paris", ["tool:before", "tool:after"])


@pytest.mark.row("WEB-25")
async def test_the_hooks_that_guard_a_tool_guard_it_here_too(stage, weather_tool):
    stage.on("tool:before")(lambda event: Deny("No."))
    entry = await run_tool(stage.agent(tools=[weather_tool]), CALL, stage.ports())
    assert (entry.content, entry.error) == ("No.", True)


async def test_a_tool_that_asks_asks(stage):
    @tool(asks=True)
    async def weather(city: str) -> str:
        """The weather."""
        return ""

    with pytest.raises(Pause, match="May I run weather"):
        await run_tool(stage.agent(tools=[weather]), CALL, stage.ports())

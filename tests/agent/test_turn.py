"""Tools are used by hand with the same events as in a turn."""

import pytest

from gateway.agent import run_tool, tool
from gateway.events import Deny, Pause
from gateway.messages.transcript import ToolCall

CALL = ToolCall("1", "weather", {"city": "Rome"})


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

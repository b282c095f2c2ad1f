"""What an agent does outside of a turn: it is introduced, and its tools can be used by hand."""

from gateway.agent.agent import Agent
from gateway.agent.call_tool import call_tool
from gateway.agent.ports import Emit, Ports
from gateway.agent.replay import Replay
from gateway.agent.run import Run, Unrecorded
from gateway.transcript import Entry, ToolCall


def introduce(agent: Agent, emit: Emit) -> None:
    """Tell that an agent has been made, and its sub-agents with it."""
    emit("agent:init", agent=agent.name, kind="main")
    for below in agent.agents:
        emit("agent:init", agent=below.name, kind="sub-agent")


async def run_tool(agent: Agent, call: ToolCall, ports: Ports) -> Entry:
    """Use one of the agent's tools without its model: with the same events, checks and questions.

    Raises:
        Pause: a person has to be asked first.
    """
    try:
        entry, _ = await call_tool(Run(agent, ports, (), Replay()), call, agent.tools)
    except Unrecorded as refusal:
        raise refusal.error from None
    return entry

"""What an agent does outside of a turn: it is introduced, and its tools can be used by hand."""

from gateway.agent.agent import Agent
from gateway.agent.ports import EventEmitter, Ports
from gateway.agent.replay import Replay
from gateway.agent.tool_call import call_tool
from gateway.agent.turn_state import StepNotRecorded, TurnState
from gateway.transcript import Entry, ToolCall


def emit_agent_init(agent: Agent, emit: EventEmitter) -> None:
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
        entry, _ = await call_tool(TurnState(agent, ports, (), Replay()), call, agent.tools)
    except StepNotRecorded as refusal:
        raise refusal.error from None
    return entry

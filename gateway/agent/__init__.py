"""The agent: a turn of model and tools that can be watched, changed, stopped and resumed at every point."""

from gateway.agent.agent import Agent, Limits
from gateway.agent.direct import introduce, run_tool
from gateway.agent.model import Chunk, Model, ModelRequest, ToolSpec
from gateway.agent.ports import Ports, TurnResult
from gateway.agent.skills import Skill
from gateway.agent.tools import Tool, ToolContext, tool
from gateway.agent.turn import run_turn

__all__ = [
    "Agent",
    "Chunk",
    "Limits",
    "Model",
    "ModelRequest",
    "Ports",
    "Skill",
    "Tool",
    "ToolContext",
    "ToolSpec",
    "TurnResult",
    "introduce",
    "run_tool",
    "run_turn",
    "tool",
]

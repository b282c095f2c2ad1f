"""The agent: a turn of model and tools that can be watched, changed, stopped and resumed at every point."""

from gateway.agent.agent import Agent, TurnLimits
from gateway.agent.model import Chunk, Model, ModelRequest
from gateway.agent.ports import Ports
from gateway.agent.skills import Skill
from gateway.agent.tools import Tool, ToolContext, tool
from gateway.agent.turn import run_tool, run_turn

__all__ = [
    "Agent",
    "Chunk",
    "Model",
    "ModelRequest",
    "Ports",
    "Skill",
    "Tool",
    "ToolContext",
    "TurnLimits",
    "run_tool",
    "run_turn",
    "tool",
]

"""An agent: a frozen record of its configuration. It does nothing itself; `run_turn` runs it."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gateway.agent.context_files import ContextFiles
from gateway.agent.model import Model
from gateway.agent.skills import Skill
from gateway.agent.tools import Tool, ToolSource
from gateway.config.settings import AgentSettings

DEFAULTS = AgentSettings()


class TurnLimits(msgspec.Struct, frozen=True):
    """The limits of one run of an agent; 0 means no limit. The defaults are those of the settings."""

    hops: int = DEFAULTS.max_hops
    tokens: int = DEFAULTS.max_tokens
    seconds: float = DEFAULTS.max_time


@dataclass(frozen=True, slots=True)
class Agent:
    """Model, instructions, tools, skills and sub-agents under one name.

    `context_files`: their text follows the instructions, as it is when a turn begins; `kept_files` knows which version
    of them counts if commands may have changed them. `sources`: further tools, which are listed again at the beginning
    of each turn.

    `context_window`: tokens that fit into one call, or 0 if unknown; before it is full, the older part of a
    conversation is summarized. `picture_turns`: for so many turns after its own, a picture is still shown to the model;
    0 if another model describes the pictures in words (`vision`).
    """

    name: str
    model: Model
    instructions: str = ""
    description: str = ""
    tools: tuple[Tool, ...] = ()
    sources: tuple[ToolSource, ...] = ()
    skills: tuple[Skill, ...] = ()
    agents: tuple["Agent", ...] = ()
    context_files: tuple[Path, ...] = ()
    kept_files: ContextFiles | None = None
    limits: TurnLimits = field(default_factory=TurnLimits)
    context_window: int = 0
    picture_turns: int = DEFAULTS.picture_turns
    transfers: bool = True
    vision: Model | None = None

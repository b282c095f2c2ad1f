"""What was said in a session, as the model sees it: entries in the shape of a chat, immutable and JSON-able."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants run. Arguments are what the model wrote, already parsed."""

    id: str
    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a transcript. `name` and `call_id` belong to tool results alone."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost; sums over a turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.cost + other.cost,
        )

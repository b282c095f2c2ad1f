"""The transcript of a session, as the model sees it: entries in the shape of a chat, immutable and JSON-able."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import astuple, replace

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


class Usage(msgspec.Struct, frozen=True):
    """What model calls cost; sums over a turn. `model` is the one that answered last, by its provider's name for it."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float = 0.0
    model: str = ""

    def __add__(self, other: "Usage") -> "Usage":
        return self._combine(operator.add, other, other.model or self.model)

    def __sub__(self, other: "Usage") -> "Usage":
        return self._combine(operator.sub, other, self.model)

    def _combine(self, how: Callable[[Any, Any], Any], other: "Usage", model: str) -> "Usage":
        counts = Usage(*map(how, astuple(self)[:-1], astuple(other)[:-1]))
        return replace(counts, model=model)


def as_message(entry: Entry) -> dict[str, Any]:
    """Returns the entry as hooks see it: a plain dict, without what is empty."""
    message: dict[str, Any] = {"role": entry.role, "content": entry.content}
    if entry.tool_calls:
        message["tool_calls"] = [as_call(call) for call in entry.tool_calls]
    if entry.role == "tool":
        message |= {"call_id": entry.call_id, "name": entry.name}
    if entry.error:
        message["error"] = True
    return message


def as_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "args": call.args}


def entry_from(message: Any) -> Entry:
    """Reads the entry that a hook left behind.

    Raises:
        ValueError: it is no message; the text says what is wrong with it.
    """
    if isinstance(message, str):
        return Entry("user", message)
    if isinstance(message, Mapping) and message.get("content", "") is None:
        message = {**message, "content": ""}
    return msgspec.convert(message, Entry)


def call_from(call: Any) -> ToolCall:
    """Reads the tool call that a hook left behind.

    Raises:
        ValueError: it is no call; the text says what is wrong with it.
    """
    return msgspec.convert(call, ToolCall)

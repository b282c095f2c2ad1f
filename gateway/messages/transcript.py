"""The transcript of a session, as the model sees it: entries in the shape of a chat, immutable and JSON-able."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

SUMMARY_KEY = "summary"  # in a session's bag: what stands for the first so many entries before a model
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants run. Arguments are what the model wrote, already parsed."""

    id: str
    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture beside the text of an entry: a file here, known by its SHA-256, so that no other takes its place."""

    kind: Literal["image"]
    path: str
    digest: str
    size: int
    mime: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a transcript. `name` and `call_id` belong to tool results alone.

    `authors` are the restricted hooks that had a say in what a person is said to have written here.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False
    parts: tuple[Picture, ...] = ()
    authors: tuple[str, ...] = field(default=(), compare=False)


class Usage(msgspec.Struct, frozen=True):
    """What model calls cost; sums over a turn. `model` is the one that answered last, by its provider's name for it.

    Of the tokens that went in some came out of the provider's cache (`cached_tokens`) or were written into it
    (`cache_written_tokens`); of those that came out some were thoughts (`reasoning_tokens`). So many calls have no
    known price (`unpriced`), and so many were counted by their length, since nobody said their tokens (`estimated`).
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float = 0.0
    model: str = ""
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    unpriced: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return self._combine(operator.add, other, other.model or self.model)

    def __sub__(self, other: "Usage") -> "Usage":
        return self._combine(operator.sub, other, self.model)

    def _combine(self, how: Callable[[Any, Any], Any], other: "Usage", model: str) -> "Usage":
        counts = map(how, _counts_of(self), _counts_of(other))
        return Usage(**dict(zip(_COUNTS, counts, strict=True)), model=model)


_COUNTS = tuple(name for name in Usage.__struct_fields__ if name != "model")
_counts_of = operator.attrgetter(*_COUNTS)


def as_message(entry: Entry) -> dict[str, Any]:
    """Returns the entry as hooks see it: a plain dict, without what is empty."""
    message: dict[str, Any] = {"role": entry.role, "content": entry.content}
    if entry.tool_calls:
        message["tool_calls"] = [as_call(call) for call in entry.tool_calls]
    if entry.role == "tool":
        message |= {"call_id": entry.call_id, "name": entry.name}
    if entry.error:
        message["error"] = True
    if entry.parts:
        message["parts"] = [asdict(part) for part in entry.parts]
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

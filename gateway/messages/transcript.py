"""The transcript of a session, as the model sees it: entries in the shape of a chat, immutable and JSON-able."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

SUMMARY_KEY = "summary"  # in a session's bag: the text that replaces the first entries for a model
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. The arguments are the model's, already parsed."""

    id: str
    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture beside the text of an entry: a local file with its SHA-256, so that no other file takes its place."""

    kind: Literal["image"]
    path: str
    digest: str
    size: int
    mime: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a transcript. Only tool results have `name` and `call_id`.

    `authors` are the restricted hooks that changed the person's words in this entry.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    error: bool = False
    parts: tuple[Picture, ...] = ()
    authors: tuple[str, ...] = ()


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage of model calls; sums over a turn. `model` is the one that answered last, by its provider's name.

    Input tokens include those read from the provider's cache (`cached_tokens`) or written into it
    (`cache_written_tokens`); output tokens include those of thoughts (`reasoning_tokens`). `unpriced` counts the calls
    without a known price, and `estimated` those whose tokens were estimated by length, since the provider did not
    report them.
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


def add_usage(found: Sequence[Usage]) -> Usage:
    """Return the sum of many, much faster than one by one."""
    sums = map(sum, zip(*map(_counts_of, found), strict=True))
    model = next((one.model for one in reversed(found) if one.model), "")
    return Usage(**dict(zip(_COUNTS, sums, strict=True)), model=model) if found else Usage()


def as_message(entry: Entry) -> dict[str, Any]:
    """Return the entry as hooks see it: a plain dict without empty fields."""
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
    """Read an entry that a hook returned.

    Raises:
        ValueError: it is not a valid message; the text says why.
    """
    if isinstance(message, str):
        return Entry("user", message)
    if isinstance(message, Mapping) and message.get("content", "") is None:
        message = {**message, "content": ""}
    return msgspec.convert(message, Entry)


def call_from(call: Any) -> ToolCall:
    """Read a tool call that a hook returned.

    Raises:
        ValueError: it is not a valid call; the text says why.
    """
    return msgspec.convert(call, ToolCall)

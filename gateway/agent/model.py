"""A language model, as the turn sees it: something that streams an answer to a request."""

import re
from collections.abc import AsyncIterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from gateway.messages.transcript import Entry, ToolCall, Usage


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as it is offered to a model: `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """One call of a model. `name` selects another model of the same provider than the configured one.

    `options` are further settings that a provider may know: temperature, top_p, max_tokens.
    """

    messages: tuple[Entry, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    name: str = ""
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Chunk(msgspec.Struct, frozen=True):
    """A piece of an answer, or all of it. Tool calls come whole; usage and the reason of the stop, with the last."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop: str = ""


class Model(Protocol):
    """A model that streams its answer, and raises `ModelError` for every provider.

    It may have an `async def warm(self)`, which loads what its first answer needs, and raises nothing.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the answer, as an async generator; closing it early gives up the call."""


CONTENT, PARTS, TOOL_CALLS, DESCRIPTION = map(attrgetter, ("content", "parts", "tool_calls", "description"))
CHARACTERS = 4  # a token
WORDS = re.compile(r"\S+\s*|\s+")  # the pieces in which the built-in models answer
CALL, SPEC = 40, 200  # characters of a tool call and of a tool's schema, roughly
PICTURE = 1500 * CHARACTERS  # what a large one costs with most models


def estimate_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request. It walks the whole conversation, so it avoids a call for each entry."""
    characters = len(request.system) + sum(map(len, map(CONTENT, request.messages)))
    characters += PICTURE * sum(map(len, map(PARTS, request.messages)))
    for call in chain.from_iterable(map(TOOL_CALLS, request.messages)):
        characters += CALL + sum(map(len, map(str, call.args.values())))
    characters += SPEC * len(request.tools) + sum(map(len, map(DESCRIPTION, request.tools)))
    return characters // CHARACTERS

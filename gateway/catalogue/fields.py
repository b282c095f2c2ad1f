"""What the catalogue says of one event, and the fields that many events share."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `type` is a JSON type (`string[]` an array of them, `?` after it: or null).

    A `live` field holds an object of the gateway's own process, and is not there for hooks in other processes.
    """

    name: str
    type: str
    doc: str
    writable: bool = False
    live: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One event, or a family of events when its name ends in `*`. In a turn, it has the fields `TURN` too."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    outcomes: frozenset[str] = frozenset()
    in_turn: bool = False

    @property
    def writable(self) -> frozenset[str]:
        """The names of the fields that a hook may change."""
        return frozenset(field.name for field in self.fields if field.writable)

    @property
    def all_fields(self) -> tuple[Field, ...]:
        """Its own fields, then those that it shares with others."""
        own = {field.name for field in self.fields}
        shared = (*(TURN if self.in_turn else ()), *EVERY)
        return (*self.fields, *(field for field in shared if field.name not in own))


def reads(name: str, kind: str, doc: str) -> Field:
    """A field that hooks may only read."""
    return Field(name, kind, doc)


def writes(name: str, kind: str, doc: str, live: bool = False) -> Field:
    """A field that hooks may change."""
    return Field(name, kind, doc, True, live)


EVERY = (
    reads("id", "string", "the same when a resumed turn repeats the event"),
    reads("time", "number", "seconds since 1970"),
    reads("cause", "string?", "the id of the event during whose handling this one came about"),
    reads("resumed", "boolean", "true when the turn was interrupted and the event may have been seen before"),
)

PLATFORM = reads("platform", "string", "the chat network, as the configuration calls it; or terminal, web")
USER = reads("user_id", "string?", "the person, by the network's own id")
CHAT = reads("chat_id", "string", "the chat, by the network's own id")
THREAD = reads("thread_id", "string", "the thread or topic, or empty")
CHAT_TYPE = reads("chat_type", "string", "dm, group, forum, channel or thread")
SESSION = reads("session_id", "string", "the conversation as it is now; a reset begins another")
KEY = reads("session_key", "string", "the conversation's lasting key")
REASON = reads("reason", "string", "why, in words")
HOP = reads("hop", "integer", "how many times the model was called in this turn before")
MESSAGES = writes("messages", "object[]", "the conversation as the model is shown it: role, content, tool calls")
SKIP = writes("result", "any", "given here, it is used as the result and the operation is skipped")
TOOLS = writes("tools", "object[]", "the tools on offer: name, description, schema")

END = frozenset({"end"})
DENY = frozenset({"deny"})
RETRY = frozenset({"retry"})

TURN = (
    reads("turn_id", "string", "the turn, the same when it is resumed"),
    PLATFORM,
    USER,
    reads("user_name", "string", "how the person is called there"),
    reads("scope", "string", "what the person may do: owner, admin or user"),
    CHAT,
    THREAD,
    CHAT_TYPE,
    SESSION,
    KEY,
    reads("agent", "string", "the agent's name"),
)


def error(what: str) -> Field:
    """The field `error` of an event that comes after something."""
    return writes("error", "object?", f"why {what} failed, or null; null consumes it, another value replaces it")


def schema(point: Point) -> dict[str, Any]:
    """The JSON schema of an event's fields; those that a hook cannot change are `readOnly`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": point.name,
        "description": point.doc,
        "type": "object",
        "properties": {field.name: _property(field) for field in point.all_fields if not field.live},
    }


def _property(field: Field) -> dict[str, Any]:
    prop = {"description": field.doc, **_type(field.type)}
    return prop if field.writable else {**prop, "readOnly": True}


def _type(word: str) -> dict[str, Any]:
    if word.endswith("?"):
        return {"type": [word[:-1], "null"]}
    if word.endswith("[]"):
        return {"type": "array", "items": _type(word[:-2])}
    return {} if word == "any" else {"type": word}

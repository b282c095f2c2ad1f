"""The catalogue's entry for one event, and the fields that many events share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHORT_FORMS: Mapping[str, str] = {"message_full": "message", "response_full": "response"}
SHORT_LENGTH = 500  # characters, as handlers written for Hermes expect


@dataclass(frozen=True, slots=True)
class EventField:
    """One field: `type` is a JSON type (`string[]` an array of them, `?` after it: or null).

    A `live` field holds an object of the gateway's own process, and is not there for hooks in other processes.
    """

    name: str
    type: str
    doc: str
    writable: bool = False
    live: bool = False


@dataclass(frozen=True, slots=True)
class EventSpec:
    """One event, or a family of events when its name ends in `*`. In a turn, it has the fields `TURN_FIELDS` too."""

    name: str
    doc: str
    fields: tuple[EventField, ...]
    outcomes: frozenset[str] = frozenset()
    in_turn: bool = False

    @property
    def writable(self) -> frozenset[str]:
        """The names of the fields that a hook may change."""
        return frozenset(field.name for field in self.fields if field.writable)

    @property
    def all_fields(self) -> tuple[EventField, ...]:
        """Its own fields, then those that it shares with others."""
        own = {field.name for field in self.fields}
        shared = (*(TURN_FIELDS if self.in_turn else ()), *COMMON_FIELDS)
        return (*self.fields, *(field for field in shared if field.name not in own))


def make_event_spec(
    name: str, doc: str, *fields: EventField, outcomes: frozenset[str] = frozenset(), in_turn: bool = False
) -> EventSpec:
    """Define an event by its fields, and by the outcomes that it honours."""
    return EventSpec(name, doc, fields, outcomes, in_turn)


def make_writable_field(name: str, kind: str, doc: str, live: bool = False) -> EventField:
    """Make a field that hooks may change."""
    return EventField(name, kind, doc, True, live)


COMMON_FIELDS = (
    EventField("id", "string", "the same when a resumed turn repeats the event"),
    EventField("time", "number", "seconds since 1970"),
    EventField("cause", "string?", "the id of the event during whose handling this one came about"),
    EventField("resumed", "boolean", "true when the turn was interrupted and the event may have been seen before"),
)

PLATFORM = EventField("platform", "string", "the chat network, as the configuration calls it; or terminal, or web")
ACCOUNT = EventField("account", "string", "which of several bots of the network, by its name; empty: it has none")
USER = EventField("user_id", "string?", "the person, by the network's own id")
CHAT = EventField("chat_id", "string", "the chat, by the network's own id")
THREAD = EventField("thread_id", "string", "the thread or topic, or empty")
CHAT_NAME = EventField("chat_name", "string", "what the chat is called there, or empty")
MESSAGE_ID = EventField("message_id", "string", "what the person wrote, by the network's own id")
ROLE = EventField("role", "string", "the person's role: owner, admin, operator, user or guest")
CHAT_TYPE = EventField("chat_type", "string", "dm, group, forum, channel or thread")
SESSION = EventField("session_id", "string", "the conversation as it is now; a reset begins another")
SESSION_KEY = EventField("session_key", "string", "the conversation's lasting key")
REASON = EventField("reason", "string", "why, in words")
HOP = EventField("hop", "integer", "how many times the model was called in this turn before")
DESK = EventField(
    "desk", "object?", "on a person's desk: program, tool and args by its own names, folder; else missing"
)
MESSAGES = make_writable_field(
    "messages", "object[]", "the conversation as the model is shown it: role, content, tool calls, parts (pictures)"
)
SKIP_RESULT = make_writable_field("result", "any", "given here, it is used as the result and the operation is skipped")
TOOLS = make_writable_field("tools", "object[]", "the tools on offer: name, description, schema")

END = frozenset({"end"})
DENY = frozenset({"deny"})
RETRY = frozenset({"retry"})

TURN_FIELDS = (
    EventField("turn_id", "string", "the turn, the same when it is resumed"),
    PLATFORM,
    ACCOUNT,
    USER,
    EventField("user_name", "string", "how the person is called there"),
    EventField("person", "string", "who is charged with it, as `platform:id`: who wrote, or for whom a hook did"),
    EventField("scope", "string", "the person's role: owner, admin, operator or user; a guest is a user here"),
    ROLE,
    CHAT,
    CHAT_NAME,
    THREAD,
    CHAT_TYPE,
    MESSAGE_ID,
    SESSION,
    SESSION_KEY,
    EventField("agent", "string", "the agent's name"),
)


def make_error_field(what: str) -> EventField:
    """Make the field `error` of an event that follows an operation."""
    return make_writable_field(
        "error", "object?", f"why {what} failed, or null; null consumes it, another value replaces it"
    )


def build_schema(point: EventSpec) -> dict[str, Any]:
    """Build the JSON schema of an event's fields; those that a hook cannot change are `readOnly`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": point.name,
        "description": point.doc,
        "type": "object",
        "properties": {field.name: _property_schema_of(field) for field in point.all_fields if not field.live},
    }


def _property_schema_of(field: EventField) -> dict[str, Any]:
    prop = {"description": field.doc, **_type_schema_of(field.type)}
    return prop if field.writable else {**prop, "readOnly": True}


def _type_schema_of(word: str) -> dict[str, Any]:
    if word.endswith("?"):
        return {"type": [word[:-1], "null"]}
    if word.endswith("[]"):
        return {"type": "array", "items": _type_schema_of(word[:-2])}
    return {} if word == "any" else {"type": word}

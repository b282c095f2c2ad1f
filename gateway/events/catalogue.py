"""Every event that the gateway emits: its fields, those that a hook may change, and the outcomes that it honours.

This table is the one source for write protection, for the fields that a remote hook may change, for the JSON schemas of
`events list --json` and for docs/events.md. Names outside of it are free: all fields writable, all outcomes honoured.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from gateway.events.fields import EventField, EventSpec
from gateway.events.gateway_events import GATEWAY_EVENTS
from gateway.events.turn_events import TURN_EVENTS

_WORD = re.compile(r"[a-z]+")
_SAID = "Please look at the weather in Paris."
_ARGS = {"command": "ls"}
_CALL = {"id": "call_1", "name": "shell", "args": _ARGS}
_TOOL = {"name": "shell", "description": "Run a command.", "schema": {"type": "object"}}
_ANSWER = "It is 18 degrees and sunny in Paris."

_VALUES_BY_FIELD: Mapping[str, Any] = {
    "id": "sample-1",
    "time": 1_790_000_000.0,
    "platform": "terminal",
    "platforms": ["terminal"],
    "user_id": "123456789",
    "user_name": "Ann",
    "scope": "owner",
    "role": "owner",
    "chat_id": "123456789",
    "chat_type": "dm",
    "session_id": "20260101_120000_abc123",
    "session_key": "agent:main:terminal:dm:main",
    "turn_id": "turn-1",
    "agent": "main",
    "reason": "a sample",
    "message_id": "42",
    "message_ids": ["43"],
    "text": _SAID,
    "message_full": _SAID,
    "messages": [{"role": "user", "content": _SAID}],
    "response_full": _ANSWER,
    "content": _ANSWER,
    "chunk": "It is ",
    "system": "You are helpful.",
    "tool": "shell",
    "tool_names": ["shell"],
    "tool_calls": [_CALL],
    "calls": [_CALL],
    "args": _ARGS,
    "call_id": "call_1",
    "results": [{"call_id": "call_1", "name": "shell", "content": "a.txt", "error": None}],
    "usage": {"input_tokens": 12, "output_tokens": 3},
    "stop": "end_turn",
    "iteration": 1,
    "duration": 0.12,
    "completed": True,
    "model": "demo",
    "provider": "demo",
    "skill": "tea",
    "action": "load",
    "node": "call_llm",
    "node_type": "call_llm",
    "hook": "another-hook",
    "kind": "main",
    "reaction": "👍",
    "attempts": 1,
    "command": "status",
    "raw_command": "status",
}
_VALUES_BY_EVENT: Mapping[str, Mapping[str, Any]] = {
    "agent:start": {"message": _SAID},
    "agent:end": {"message": _SAID, "response": _ANSWER},
    "agent:step": {"tools": [{"name": "shell", "result": "a.txt", "arguments": '{"command": "ls"}', "error": False}]},
    "tool:after": {"result": "a.txt"},
    "message:add": {"message": {"role": "user", "content": _SAID}},
    "llm:before": {"tools": [_TOOL]},
    "tools:before": {"tools": [_TOOL]},
    "handoff:before": {"kind": "call", "source": "main", "target": "helper", "input": "Look it up."},
    "handoff:after": {"kind": "call", "source": "main", "target": "helper", "result": _ANSWER},
    "llm:chunk": {"text": ""},
    "schedule:*": {"due": 1_790_000_000.0, "late_by": 0.2},
    "webhook:*": {
        "webhook": "issues",
        "kind": "issues.opened",
        "delivery_id": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "headers": {"x-github-event": "issues"},
        "body": {"action": "opened", "issue": {"title": "It rains in"}},
        "text": '{"action": "opened", "issue": {"title": "It rains in"}}',
        "role": "guest",
    },
    "message:failed": {"error": "the chat is gone"},
    "command:*": {"args": "", "raw_args": ""},
}
_VALUES_BY_TYPE: Mapping[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0.0,
    "boolean": False,
    "object": {},
    "any": None,
}


def _sample_value_of(field: EventField) -> Any:
    if field.type.endswith("?"):
        return _VALUES_BY_FIELD.get(field.name) if field.name in ("user_id", "chunk", "duration") else None
    if field.name in _VALUES_BY_FIELD and field.name != "result":
        return _VALUES_BY_FIELD[field.name]
    return [] if field.type.endswith("[]") else _VALUES_BY_TYPE[field.type]


EVENT_SPECS: Mapping[str, EventSpec] = {spec.name: spec for spec in (*GATEWAY_EVENTS, *TURN_EVENTS)}

# Names that hooks in the wild subscribe to and that never fire in Hermes either, and what they are called here.
_RENAMED_EVENTS: Mapping[str, str] = {
    "before_message": "message:received",
    "command:before": "command:*",
    "agent:interim": "agent:step",
    "agent:pre_process": "agent:start",
    "gateway:message_received": "message:received",
    "message:pre_route": "message:received",
    "session:finalize": "session:end",
}


def get_event_spec(name: str) -> EventSpec | None:
    """Return the catalogue's entry for an event; the members of a family share their entry."""
    if spec := EVENT_SPECS.get(name):
        return spec
    domain, colon, _ = name.partition(":")
    return EVENT_SPECS.get(domain + ":*") if colon else None


def context_name_of(event: str) -> str:
    """Return the name of the event's context class, for type checkers."""
    return "".join(map(str.capitalize, _WORD.findall(event)))


def remove_live_fields(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without live objects of this process."""
    known = get_event_spec(name)
    live = {field.name for field in known.fields if field.live} if known else set()
    return {key: value for key, value in fields.items() if key not in live}


def make_sample(name: str) -> dict[str, Any]:
    """Make plausible fields of this event; empty for a name that is not in the catalogue."""
    spec = get_event_spec(name)
    if spec is None:
        return {}
    special = dict(_VALUES_BY_EVENT.get(spec.name, {}))
    if spec.name == "command:*":
        special |= {"command": name.partition(":")[2], "raw_command": name.partition(":")[2]}
    return {field.name: special.get(field.name, _sample_value_of(field)) for field in spec.all_fields if not field.live}


def list_matching_events(subscriptions: Iterable[str]) -> list[str]:
    """List the events that match these subscriptions, each once; of a family, one: `command:new`."""
    found: dict[str, None] = {}
    for pattern in subscriptions:
        matching = (name for name in map(_example_name_of, EVENT_SPECS) if fnmatchcase(name, pattern))
        heard = matching if "*" in pattern else [pattern]
        found |= dict.fromkeys(heard)
    return list(found)


def _example_name_of(name: str) -> str:
    return {"command:*": "command:new"}.get(name, name.replace("*", "sample"))


def suggest_event(name: str) -> str | None:
    """Suggest the intended name for a subscription that matches no event of the catalogue; None if it matches one.

    Also None if no name is similar: the event may be one that a hook emits.
    """
    if name in _RENAMED_EVENTS:
        return _RENAMED_EVENTS[name]
    if get_event_spec(name) or any(fnmatchcase(known, name) for known in EVENT_SPECS):
        return None
    domain, _, verb = re.sub(r"[_.]", ":", name, count=1).partition(":")
    if verb and "*" not in verb:
        near = get_close_matches(f"{domain}:{verb}", EVENT_SPECS, 1, cutoff=0.7)
        return near[0] if near else None
    domains = get_close_matches(domain, {known.partition(":")[0] for known in EVENT_SPECS}, 1, cutoff=0.7)
    return f"{domains[0]}:*" if domains and f"{domains[0]}:*" != name else None

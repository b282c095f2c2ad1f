"""A sample of every event: believable fields, to try a hook with before the event happens."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway.events.fields import EventField, EventSpec

_SAID = "Please look at the weather in Paris."
_ARGS = {"command": "ls"}
_CALL = {"id": "call_1", "name": "shell", "args": _ARGS}
_TOOL = {"name": "shell", "description": "Run a command.", "schema": {"type": "object"}}
_ANSWER = "It is 18 degrees and sunny in Paris."

_VALUES_BY_FIELD: Mapping[str, Any] = MappingProxyType(
    {
        "id": "sample-1",
        "time": 1_790_000_000.0,
        "resumed": False,
        "platform": "terminal",
        "platforms": ["terminal"],
        "user_id": "123456789",
        "user_name": "Ann",
        "scope": "owner",
        "chat_id": "123456789",
        "thread_id": "",
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
        "hop": 0,
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
)
_VALUES_BY_EVENT: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "agent:start": {"message": _SAID},
        "agent:end": {"message": _SAID, "response": _ANSWER},
        "agent:step": {"tools": [{"name": "shell", "result": "a.txt", "arguments": '{"command": "ls"}'}]},
        "tool:after": {"result": "a.txt"},
        "message:add": {"message": {"role": "user", "content": _SAID}},
        "llm:before": {"tools": [_TOOL]},
        "tools:before": {"tools": [_TOOL]},
        "handoff:before": {"kind": "call", "source": "main", "target": "helper", "input": "Look it up."},
        "handoff:after": {"kind": "call", "source": "main", "target": "helper", "result": _ANSWER},
        "llm:chunk": {"text": ""},
        "schedule:*": {"due": 1_790_000_000.0, "late_by": 0.2},
        "message:failed": {"error": "the chat is gone"},
        "command:*": {"args": "", "raw_args": ""},
    }
)
_VALUES_BY_TYPE: Mapping[str, Any] = MappingProxyType(
    {"string": "", "integer": 0, "number": 0.0, "boolean": False, "object": {}, "any": None}
)


def build_sample(point: EventSpec, name: str) -> dict[str, Any]:
    """The fields of an event of this kind; for a member of a family, under its own name."""
    special = dict(_VALUES_BY_EVENT.get(point.name, {}))
    if point.name == "command:*":
        special |= {"command": name.partition(":")[2], "raw_command": name.partition(":")[2]}
    return {
        field.name: special.get(field.name, _sample_value_of(field)) for field in point.all_fields if not field.live
    }


def _sample_value_of(field: EventField) -> Any:
    if field.type.endswith("?"):
        return _VALUES_BY_FIELD.get(field.name) if field.name in ("user_id", "chunk", "duration") else None
    if field.name in _VALUES_BY_FIELD and field.name != "result":
        return _VALUES_BY_FIELD[field.name]
    return [] if field.type.endswith("[]") else _VALUES_BY_TYPE[field.type]

"""The table of sherma's methods and fields, which translates our events into sherma's format, and back.

sherma names the moments around a call differently, sends a context of its own shape, and accepts fewer changes than we
do. A row maps the fields of one method to the fields of our event. sherma's `messages`, `response`, `tools`,
`tool_calls` and `error` are read-only; the creation of a model is never sent to a remote hook. sherma has no decisions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Fields = Mapping[str, Any]

READ_ONLY = frozenset({"messages", "response", "tools", "tool_calls", "error"})
NEVER_SENT = frozenset({"on_chat_model_create"})


class ShermaMethod(msgspec.Struct, frozen=True):
    """One of sherma's methods. A field that maps to several of our fields is an object of these fields."""

    name: str
    point: str
    fields: Mapping[str, str | Mapping[str, str]]
    fits: Callable[[Fields], bool] = lambda _: True
    # Fields of our event that the method's name implies.
    says: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def params(self, ours: Fields) -> dict[str, Any]:
        """Return sherma's context; a field that we lack has an empty value of its type."""
        sent: dict[str, Any] = {}
        for theirs, own in self.fields.items():
            if isinstance(own, str):
                sent[theirs] = _to_sherma(theirs, ours.get(own))
            else:
                sent[theirs] = {part: ours[name] for part, name in own.items() if name in ours}
        return sent

    def changes(self, result: Fields) -> dict[str, Any]:
        """Return the changes of our fields in a sherma server's reply."""
        found: dict[str, Any] = {}
        for theirs, own in self.fields.items():
            if theirs in READ_ONLY or result.get(theirs) is None:
                continue
            if isinstance(own, str):
                found[own] = result[theirs]
            elif isinstance(result[theirs], Mapping):
                found.update({name: result[theirs][part] for part, name in own.items() if part in result[theirs]})
        return found

    def event(self, params: Fields) -> dict[str, Any]:
        """Return the fields of our event from a sherma client's request."""
        found = dict(self.says)
        for theirs, own in self.fields.items():
            value = params.get(theirs)
            if isinstance(own, str):
                found[own] = value
            else:
                parts = value if isinstance(value, Mapping) else {}
                found.update({name: parts.get(part) for part, name in own.items()})
        return found

    def reply(self, changed: Fields, params: Fields) -> dict[str, Any]:
        """Return changed fields of our event for a sherma client."""
        found: dict[str, Any] = {}
        for theirs, own in self.fields.items():
            if isinstance(own, str):
                if own in changed:
                    found[theirs] = changed[own]
            elif parts := {part: changed[name] for part, name in own.items() if name in changed}:
                before = params.get(theirs)
                found[theirs] = {**before, **parts} if isinstance(before, Mapping) else parts
        return found


def _to_sherma(name: str, value: Any) -> Any:
    if name == "error" and value is not None:
        if isinstance(value, Mapping):
            return {"type": str(value.get("type", "Error")), "message": str(value.get("message", ""))}
        return {"type": "Error", "message": str(value)}
    if value is None:
        return {"node_name": "agent", "state": {}, "config": {}, "messages": [], "tools": [], "tool_calls": []}.get(
            name
        )
    return value


def _has_error(fields: Fields) -> bool:
    return fields.get("error") is not None


def _has_no_error(fields: Fields) -> bool:
    return fields.get("error") is None


def _is_load(fields: Fields) -> bool:
    return fields.get("action") in (None, "load")


def _is_unload(fields: Fields) -> bool:
    return not _is_load(fields)


def _is_call(fields: Fields) -> bool:
    return fields.get("kind") in (None, "call")


_Table = dict[str, str | Mapping[str, str]]

_RUN_FIELDS: _Table = {
    "agent_id": "agent",
    "thread_id": "session_id",
    "config": "config",
    "input": {"message": "message_full", "messages": "messages", "context": "context"},
}
_NODE_FIELDS: _Table = {"node_name": "node", "node_type": "node_type", "state": "state"}
_SKILL_FIELDS: _Table = {"skill_id": "skill", "version": "version"}
_CALL_FIELDS: _Table = {"node_name": "node", "state": "state"}

METHODS: tuple[ShermaMethod, ...] = (
    ShermaMethod("before_graph_invoke", "agent:start", _RUN_FIELDS),
    ShermaMethod(
        "after_graph_invoke",
        "agent:end",
        {**_RUN_FIELDS, "result": {"response": "response_full", "stop": "stop"}},
        _has_no_error,
        {"error": None},
    ),
    ShermaMethod("on_error", "agent:end", {**_RUN_FIELDS, "error": "error"}, _has_error, {"response_full": ""}),
    ShermaMethod(
        "before_llm_call",
        "llm:before",
        {**_CALL_FIELDS, "messages": "messages", "system_prompt": "system", "tools": "tools"},
    ),
    ShermaMethod(
        "after_llm_call",
        "llm:after",
        {**_CALL_FIELDS, "response": {"content": "content", "tool_calls": "tool_calls"}},
        says={"error": None},
    ),
    ShermaMethod("before_tool_call", "tools:before", {**_CALL_FIELDS, "tool_calls": "calls", "tools": "tools"}),
    ShermaMethod("after_tool_call", "tools:after", {**_CALL_FIELDS, "result": {"results": "results"}}),
    ShermaMethod(
        "before_agent_call", "handoff:before", {**_CALL_FIELDS, "input_value": "input"}, _is_call, {"kind": "call"}
    ),
    ShermaMethod(
        "after_agent_call",
        "handoff:after",
        {**_CALL_FIELDS, "result": "result"},
        _is_call,
        {"kind": "call", "error": None},
    ),
    ShermaMethod("before_skill_load", "skill:before", _SKILL_FIELDS, _is_load, {"action": "load"}),
    ShermaMethod("before_skill_unload", "skill:before", _SKILL_FIELDS, _is_unload, {"action": "unload"}),
    ShermaMethod(
        "after_skill_load",
        "skill:after",
        {**_SKILL_FIELDS, "content": "content", "tools_loaded": "tools"},
        _is_load,
        {"action": "load", "error": None},
    ),
    ShermaMethod(
        "after_skill_unload",
        "skill:after",
        {**_SKILL_FIELDS, "tools_unloaded": "tools"},
        _is_unload,
        {"action": "unload", "content": "", "error": None},
    ),
    ShermaMethod("node_enter", "node:before", _NODE_FIELDS),
    ShermaMethod("node_exit", "node:after", {**_NODE_FIELDS, "result": "result"}, _has_no_error, {"error": None}),
    ShermaMethod("on_node_error", "node:after", {**_NODE_FIELDS, "error": "error"}, _has_error, {"result": None}),
    ShermaMethod(
        "node_execute", "node:before", {**_NODE_FIELDS, "result": "result"}, lambda fields: fields.get("result") == {}
    ),
    ShermaMethod("before_interrupt", "interrupt:before", {**_CALL_FIELDS, "value": "value"}),
    ShermaMethod("after_interrupt", "interrupt:after", {**_CALL_FIELDS, "value": "value", "response": "response"}),
)

POINTS: tuple[str, ...] = tuple(dict.fromkeys(method.point for method in METHODS))  # the events with a method
METHOD_NAMES: frozenset[str] = frozenset(method.name for method in METHODS) | NEVER_SENT


def find_method(point: str, fields: Fields) -> ShermaMethod | None:
    """Return sherma's method for one of our events; None if sherma has no method for this event."""
    return next((method for method in METHODS if method.point == point and method.fits(fields)), None)


def find_method_by_name(name: str) -> ShermaMethod | None:
    return next((method for method in METHODS if method.name == name), None)

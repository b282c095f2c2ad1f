"""Our events in sherma's words, and back: the one table of its methods and fields.

sherma names the moments around a call differently, sends a context of its own shape, and takes back less than we do.
A row says for one of its methods which of our fields stand behind which of its own. Its `messages`, `response`,
`tools`, `tool_calls` and `error` are there to be read; making a model is never told to a remote hook.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]

READ_ONLY = frozenset({"messages", "response", "tools", "tool_calls", "error"})
NEVER = frozenset({"on_chat_model_create"})


@dataclass(frozen=True, slots=True)
class Method:
    """One of sherma's methods. A field that maps to several of ours is an object of these."""

    name: str
    point: str
    fields: Mapping[str, str | Mapping[str, str]]
    fits: Callable[[Fields], bool] = lambda _: True

    def params(self, ours: Fields) -> dict[str, Any]:
        """The context that sherma expects; what we do not have has an empty value of its kind."""
        sent: dict[str, Any] = {}
        for theirs, field in self.fields.items():
            if isinstance(field, str):
                sent[theirs] = _outward(theirs, ours.get(field))
            else:
                sent[theirs] = {part: ours[name] for part, name in field.items() if name in ours}
        return sent

    def changes(self, result: Fields) -> dict[str, Any]:
        """What a reply of a sherma server says about fields of ours."""
        found: dict[str, Any] = {}
        for theirs, field in self.fields.items():
            if theirs in READ_ONLY or result.get(theirs) is None:
                continue
            if isinstance(field, str):
                found[field] = result[theirs]
            elif isinstance(result[theirs], Mapping):
                found.update({name: result[theirs][part] for part, name in field.items() if part in result[theirs]})
        return found

    def event(self, params: Fields) -> dict[str, Any]:
        """The fields of our event in a request of a sherma client."""
        found: dict[str, Any] = {}
        for theirs, field in self.fields.items():
            value = params.get(theirs)
            if isinstance(field, str):
                found[field] = value
            else:
                found.update({name: _part(value, part) for part, name in field.items()})
        return found

    def reply(self, changed: Fields, params: Fields) -> dict[str, Any]:
        """Changed fields of our event as a sherma client takes them."""
        found: dict[str, Any] = {}
        for theirs, field in self.fields.items():
            if isinstance(field, str):
                if field in changed:
                    found[theirs] = changed[field]
            elif parts := {part: changed[name] for part, name in field.items() if name in changed}:
                before = params.get(theirs)
                found[theirs] = {**before, **parts} if isinstance(before, Mapping) else parts
        return found


def _outward(name: str, value: Any) -> Any:
    if name == "error" and value is not None:
        if isinstance(value, Mapping):
            return {"type": str(value.get("type", "Error")), "message": str(value.get("message", ""))}
        return {"type": "Error", "message": str(value)}
    if value is None:
        return {"node_name": "agent", "state": {}, "config": {}, "messages": [], "tools": [], "tool_calls": []}.get(
            name
        )
    return value


def _part(value: Any, part: str) -> Any:
    return value.get(part) if isinstance(value, Mapping) else None


def _has_error(fields: Fields) -> bool:
    return fields.get("error") is not None


def _no_error(fields: Fields) -> bool:
    return fields.get("error") is None


def _loads(fields: Fields) -> bool:
    return fields.get("action") in (None, "load")


def _unloads(fields: Fields) -> bool:
    return not _loads(fields)


def _calls(fields: Fields) -> bool:
    return fields.get("kind") in (None, "call")


_Table = dict[str, str | Mapping[str, str]]

_RUN: _Table = {
    "agent_id": "agent",
    "thread_id": "session_id",
    "config": "config",
    "input": {"message": "message_full", "messages": "messages", "context": "context"},
}
_NODE: _Table = {"node_name": "node", "node_type": "node_type", "state": "state"}
_SKILL: _Table = {"skill_id": "skill", "version": "version"}
_CALL: _Table = {"node_name": "node", "state": "state"}

METHODS: tuple[Method, ...] = (
    Method("before_graph_invoke", "agent:start", _RUN),
    Method(
        "after_graph_invoke", "agent:end", {**_RUN, "result": {"response": "response_full", "stop": "stop"}}, _no_error
    ),
    Method("on_error", "agent:end", {**_RUN, "error": "error"}, _has_error),
    Method(
        "before_llm_call",
        "llm:before",
        {**_CALL, "messages": "messages", "system_prompt": "system", "tools": "tools"},
    ),
    Method("after_llm_call", "llm:after", {**_CALL, "response": {"content": "content", "tool_calls": "tool_calls"}}),
    Method("before_tool_call", "tools:before", {**_CALL, "tool_calls": "calls", "tools": "tools"}),
    Method("after_tool_call", "tools:after", {**_CALL, "result": {"results": "results"}}),
    Method("before_agent_call", "handoff:before", {**_CALL, "input_value": "input"}, _calls),
    Method("after_agent_call", "handoff:after", {**_CALL, "result": "result"}, _calls),
    Method("before_skill_load", "skill:before", _SKILL, _loads),
    Method("before_skill_unload", "skill:before", _SKILL, _unloads),
    Method("after_skill_load", "skill:after", {**_SKILL, "content": "content", "tools_loaded": "tools"}, _loads),
    Method("after_skill_unload", "skill:after", {**_SKILL, "tools_unloaded": "tools"}, _unloads),
    Method("node_enter", "node:before", _NODE),
    Method("node_exit", "node:after", {**_NODE, "result": "result"}, _no_error),
    Method("on_node_error", "node:after", {**_NODE, "error": "error"}, _has_error),
    Method("node_execute", "node:before", {**_NODE, "result": "result"}, lambda fields: fields.get("result") == {}),
    Method("before_interrupt", "interrupt:before", {**_CALL, "value": "value"}),
    Method("after_interrupt", "interrupt:after", {**_CALL, "value": "value", "response": "response"}),
)

NAMES: frozenset[str] = frozenset(method.name for method in METHODS) | NEVER


def method_for(point: str, fields: Fields) -> Method | None:
    """sherma's method for one of our events; None where it has none."""
    return next((method for method in METHODS if method.point == point and method.fits(fields)), None)


def method_named(name: str) -> Method | None:
    return next((method for method in METHODS if method.name == name), None)

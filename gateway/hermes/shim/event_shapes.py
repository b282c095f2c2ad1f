"""The fields of Hermes 0.19's events for handlers: exactly these keys, and tools under its own names.

Handlers compare the keys that they get with those that they know, so one written for Hermes gets no others.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hermes.shim.tool_results import Ending, show_result

_ROWS = (
    ("gateway:startup", "platforms"),
    ("session:start", "platform user_id session_id session_key"),
    ("session:end session:reset", "platform user_id session_key"),
    ("session:compress", "platform session_id old_session_id in_place compression_count"),
    ("agent:start", "platform user_id chat_id thread_id chat_type session_id message"),
    ("agent:step", "platform user_id session_id iteration tool_names tools"),
    ("agent:end", "platform user_id chat_id thread_id chat_type session_id message response"),
    ("command:*", "platform user_id command raw_command args raw_args"),
)
# How a call ended, by who denied it.
DENIED_ENDINGS: Mapping[Any, Ending] = MappingProxyType({"hook": "blocked", "person": "refused"})
HERMES_KEYS: Mapping[str, frozenset[str]] = {
    name: frozenset(keys.split()) for names, keys in _ROWS for name in names.split()
}


def get_hermes_keys(event: str) -> frozenset[str] | None:
    """Return the keys of this event in Hermes; None if Hermes does not have it."""
    domain, _, _ = event.partition(":")
    return HERMES_KEYS.get(event) or HERMES_KEYS.get(f"{domain}:*")


def show_fields(event: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields as Hermes would have them; None for an event that is ours alone and stays as it is."""
    if (keys := get_hermes_keys(event)) is None:
        return None
    shown = {name: value for name, value in fields.items() if name in keys}
    if event == "agent:step":
        shown["tool_names"] = [HERMES_TOOLS.describe_name(str(name)) for name in shown.get("tool_names") or ()]
        shown["tools"] = [_show_tool(tool) for tool in shown.get("tools") or ()]
    return shown


def _show_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Show one tool of a step, with its arguments and its result as JSON texts."""
    name, args = HERMES_TOOLS.describe_call(str(tool.get("name")), json.loads(tool.get("arguments") or "{}"))
    ending: Ending = DENIED_ENDINGS.get(tool.get("denied"), "failed" if tool.get("error") else "done")
    result = show_result(str(tool.get("name")), args, str(tool.get("result") or ""), ending)
    return {"name": name, "result": result.json, "arguments": json.dumps(args)}

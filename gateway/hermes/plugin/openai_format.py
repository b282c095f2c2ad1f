"""Messages and tools as plugins know them: written as OpenAI writes them."""

import json
from typing import Any


def as_openai_messages(messages: Any) -> list[dict[str, Any]]:
    """Messages as plugins know them: calls of tools as OpenAI writes them."""
    return [_as_openai_message(dict(message)) for message in messages or () if isinstance(message, dict)]


def _as_openai_message(message: dict[str, Any]) -> dict[str, Any]:
    if "call_id" in message:
        message["tool_call_id"] = message.pop("call_id")
    if calls := message.pop("tool_calls", None):
        message["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call.get("name"), "arguments": json.dumps(call.get("args") or {})},
            }
            for call in calls
        ]
    return message


def as_openai_function(tool: dict[str, Any]) -> dict[str, Any]:
    facts = {"name": tool.get("name"), "description": tool.get("description"), "parameters": tool.get("schema")}
    return {"type": "function", "function": facts}

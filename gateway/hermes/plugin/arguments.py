"""What callbacks of plugins are told: the arguments of each hook name, from the event that it stands for.

What an earlier event of the turn said (the model, the history, when something began) is remembered by
`remember_event`, in the hook's own bag; where there is none (a shell hook is a new process each time) those arguments
are empty.
"""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from gateway.events import Event


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


FILE_TOOLS = frozenset({"write_file", "edit_file", "patch"})  # tools that change files
SHELL_TOOLS = frozenset({"shell", "terminal"})
MAX_NUDGES = 3
BEGUN_KEY = "begun"
_END_REASONS = {"new": "new_session", "shutdown": "shutdown"}


def own_bag_of(event: Event) -> dict[str, Any]:
    """What is remembered of this turn for this agent: a sub-agent's run is a part of the same turn."""
    own: dict[str, Any] = event.own.setdefault(str(event.get("agent") or ""), {})
    return own


def remember_event(event: Event) -> None:
    """Keep of this event what a later one of the turn does not say."""
    own = own_bag_of(event)
    match event.name:
        case "agent:start":
            own["model"] = (event.get("config") or {}).get("model") or ""
            own["user_message"] = event.get("message_full") or ""
            own["history"] = as_openai_messages(event.get("messages"))
            own["messages"] = []
        case "message:add":
            own.setdefault("messages", []).extend(as_openai_messages([event.get("message")]))
        case "llm:before":
            own["asked_at"] = event.get("time")
            own["asked_with"] = len(event.get("messages") or ()) + bool(event.get("system"))
        case "tool:after":
            path = (event.get("args") or {}).get("path")
            if event.get("tool") in FILE_TOOLS and path and not event.get("error") and not event.get("denied"):
                own["changed"] = list(dict.fromkeys([*own.get("changed", ()), str(path)]))
        case "handoff:before":
            own[f"asked {event.get('target')}"] = event.get("time")


def build_pre_tool_args(event: Event) -> dict[str, Any]:
    return {
        "tool_name": event.get("tool") or "",
        "args": event.get("args"),
        **_ids_of(event),
        "tool_call_id": event.get("call_id") or "",
        "api_request_id": _request_id_of(event),
        "middleware_trace": [],
    }


def build_post_tool_args(event: Event) -> dict[str, Any]:
    error, denied = event.get("error"), event.get("denied")
    status = "blocked" if denied else "error" if error else "ok"
    said = (error.get("message") if isinstance(error, dict) else None) or denied
    return {
        **build_pre_tool_args(event),
        "result": _result_of(event),
        "duration_ms": int((event.get("duration") or 0) * 1000),
        "status": status,
        "error_type": None if status == "ok" else "blocked" if denied else _error_kind_of(error),
        "error_message": said,
    }


def build_tool_result_args(event: Event) -> dict[str, Any]:
    return {name: value for name, value in build_post_tool_args(event).items() if name != "middleware_trace"}


def build_terminal_args(event: Event) -> dict[str, Any] | None:
    if event.get("tool") not in SHELL_TOOLS or not isinstance(event.get("result"), str):
        return None
    output, code = split_exit_code(event["result"])
    return {
        "command": (event.get("args") or {}).get("command") or "",
        "output": output,
        "returncode": code,
        "task_id": event.get("session_id") or "",
        "env_type": "local",
    }


def split_exit_code(text: str) -> tuple[str, int]:
    """A command's output, and the exit code that our shell tool writes below it."""
    output, mark, end = text.rpartition("[exit code ")
    if mark and end.endswith("]") and end[:-1].lstrip("-").isdigit():
        return output.removesuffix("\n"), int(end[:-1])
    return text, 0


def build_output_args(event: Event) -> dict[str, Any] | None:
    reply = event.get("response_full")
    if not reply or event.get("interrupted"):
        return None
    return {"response_text": reply, "session_id": event.get("session_id") or "", **_model_of(event)}


def build_pre_llm_args(event: Event) -> dict[str, Any]:
    history = as_openai_messages(event.get("messages"))
    said = event.get("message_full") or ""
    return {
        **_ids_of(event),
        "user_message": said,
        "conversation_history": [*history, {"role": "user", "content": said}],
        "is_first_turn": not history,
        "model": (event.get("config") or {}).get("model") or "",
        "platform": event.get("platform") or "",
        "sender_id": event.get("user_id") or "",
    }


def build_post_llm_args(event: Event) -> dict[str, Any] | None:
    reply = event.get("response_full")
    if not reply or event.get("interrupted"):
        return None
    own = own_bag_of(event)
    return {
        **_ids_of(event),
        "user_message": own.get("user_message") or event.get("message_full") or "",
        "assistant_response": reply,
        "conversation_history": [*own.get("history", ()), *own.get("messages", ())],
        **_model_of(event),
    }


def build_verify_args(event: Event) -> dict[str, Any] | None:
    own = own_bag_of(event)
    if not own.get("changed") or own.get("nudges", 0) >= MAX_NUDGES or not event.get("completed"):
        return None
    return {
        "session_id": event.get("session_id") or "",
        **_model_of(event),
        "coding": True,
        "attempt": own.get("nudges", 0),
        "final_response": event.get("response_full") or "",
        "changed_paths": list(own["changed"]),
    }


def build_pre_request_args(event: Event) -> dict[str, Any]:
    own, system = own_bag_of(event), event.get("system") or ""
    said = as_openai_messages(event.get("messages"))
    sent = [*([{"role": "system", "content": system}] if system else []), *said]
    tools = [as_openai_function(one) for one in event.get("tools") or ()]
    body = {"model": event.get("model"), "messages": sent, "tools": tools}
    return {
        **_request_facts_of(event),
        "user_message": own.get("user_message") or "",
        "conversation_history": [*own["history"], *own["messages"]] if "messages" in own else said,
        "request_messages": sent,
        "message_count": len(sent),
        "tool_count": len(tools),
        "approx_input_tokens": event.get("tokens") or 0,
        "request_char_count": sum(len(str(one.get("content") or "")) for one in sent),
        "max_tokens": None,
        "started_at": event.get("time"),
        "middleware_trace": [],
        "request": {"method": "POST", "body": body},
    }


def build_post_request_args(event: Event) -> dict[str, Any] | None:
    if event.get("error"):
        return None
    content, calls = event.get("content") or "", list(event.get("tool_calls") or ())
    (message,) = as_openai_messages([{"role": "assistant", "content": content, "tool_calls": calls}])
    model, stop, usage = own_bag_of(event).get("model") or None, event.get("stop") or "stop", event.get("usage")
    return {
        **_request_facts_of(event),
        **_times_of(event),
        "finish_reason": stop,
        "message_count": own_bag_of(event).get("asked_with"),
        "response_model": model,
        "response": {"model": model, "finish_reason": stop, "assistant_message": message, "usage": usage},
        "usage": usage,
        "assistant_message": SimpleNamespace(
            content=content,
            tool_calls=[
                SimpleNamespace(id=call.get("id"), name=call.get("name"), arguments=json.dumps(call.get("args") or {}))
                for call in calls
            ]
            or None,
            finish_reason=stop,
        ),
        "assistant_content_chars": len(content),
        "assistant_tool_call_count": len(calls),
    }


def build_request_error_args(event: Event) -> dict[str, Any] | None:
    error = event.get("error")
    if not error:
        return None
    return {
        **_request_facts_of(event),
        **_times_of(event),
        "status_code": None,
        "retry_count": 0,
        "max_retries": None,
        "retryable": None,
        "reason": _error_kind_of(error),
        "error": {
            "type": _error_kind_of(error),
            "message": error.get("message") if isinstance(error, dict) else str(error),
        },
    }


def build_session_start_args(event: Event) -> dict[str, Any] | None:
    is_first = not event.own.get(BEGUN_KEY) and not event.get("messages") and not event.get("resumed")
    event.own[BEGUN_KEY] = True  # what begins after that in the same turn is a sub-agent's
    if not is_first:
        return None
    return {
        "session_id": event.get("session_id") or "",
        "model": (event.get("config") or {}).get("model") or "",
        "platform": event.get("platform") or "",
    }


def build_turn_end_args(event: Event) -> dict[str, Any]:
    return {
        **_ids_of(event),
        "completed": bool(event.get("completed")),
        "interrupted": bool(event.get("interrupted")),
        **_model_of(event),
        "reason": event.get("stop") or "",
    }


def build_finalize_args(event: Event) -> dict[str, Any]:
    return {
        "session_id": event.get("session_id") or "",
        "platform": event.get("platform") or "",
        "reason": _END_REASONS.get(str(event.get("reason") or ""), "session_expired"),
        "old_session_id": event.get("session_id") or "",
        "new_session_id": event.get("new_session_id"),
    }


def build_reset_args(event: Event) -> dict[str, Any]:
    return {**build_finalize_args(event), "session_id": event.get("new_session_id") or ""}


def build_subagent_start_args(event: Event) -> dict[str, Any] | None:
    if event.get("kind") != "call":
        return None
    return {
        **_parent_facts_of(event),
        "parent_subagent_id": None,
        "child_subagent_id": event.get("target") or "",
        "child_goal": _to_text(event.get("input")),
    }


def build_subagent_stop_args(event: Event) -> dict[str, Any] | None:
    if event.get("kind") != "call":
        return None
    began = own_bag_of(event).get(f"asked {event.get('target')}")
    return {
        **_parent_facts_of(event),
        "child_summary": _to_text(event.get("result")),
        "child_status": "failed" if event.get("error") else "completed",
        "duration_ms": int((event["time"] - began) * 1000) if began else 0,
    }


def build_dispatch_args(event: Event) -> dict[str, Any]:
    """As plain data; a plugin gets the message in Hermes's own shape."""
    return {"event": build_plain_args(event), "gateway": None, "session_store": None}


def build_approval_args(event: Event) -> dict[str, Any]:
    name, prompt = str(event.get("name") or ""), _to_text(event.get("value"))
    call_id, _, rest = name.partition("/")
    key = rest.partition("/")[0] or name
    return {
        "command": prompt,
        "description": prompt,
        "pattern_key": key,
        "pattern_keys": [key],
        "session_key": event.get("session_key") or "",
        "surface": "gateway",
        "turn_id": event.get("turn_id") or "",
        "tool_call_id": call_id,
    }


def build_approval_response_args(event: Event) -> dict[str, Any]:
    response = event.get("response")
    word = "timeout" if response is None else str(response).strip().lower()
    known = {"true": "once", "yes": "once", "y": "once", "false": "deny", "no": "deny", "n": "deny"}
    word = known.get(word, word)
    choice = word if word in ("once", "session", "always", "timeout") else "deny"
    return {**build_approval_args(event), "choice": choice, "decided_by": "timeout" if choice == "timeout" else "user"}


def build_stream_start_args(event: Event) -> dict[str, Any] | None:
    return build_stream_args(event) if event.get("index") == 0 else None


def build_stream_args(event: Event) -> dict[str, Any]:
    chunk = event.get("chunk") or ""
    return {
        **build_plain_args(event),
        "delta": chunk,
        "text": chunk,
        "accumulated": f"{event.get('text') or ''}{chunk}",
    }


def build_stream_end_args(event: Event) -> dict[str, Any] | None:
    return None if event.get("error") else {**build_plain_args(event), "text": event.get("content") or ""}


def build_interim_args(event: Event) -> dict[str, Any] | None:
    if not event.get("tool_calls") or not event.get("content"):
        return None
    return {**build_plain_args(event), "text": event["content"], "message": event["content"]}


def build_platform_args(event: Event) -> dict[str, Any]:
    return {**build_plain_args(event), "event": event.name.partition(":")[2]}


def build_plain_args(event: Event) -> dict[str, Any]:
    """The event's own fields."""
    return {**event, "task_id": event.get("session_id") or ""}


def _ids_of(event: Event) -> dict[str, Any]:
    session = event.get("session_id") or ""
    return {"session_id": session, "task_id": session, "turn_id": event.get("turn_id") or ""}


def _model_of(event: Event) -> dict[str, Any]:
    return {"model": own_bag_of(event).get("model") or "", "platform": event.get("platform") or ""}


def _request_id_of(event: Event) -> str:
    return f"{event.get('turn_id') or ''}:{event.get('hop', 0)}"


def _request_facts_of(event: Event) -> dict[str, Any]:
    return {
        **_ids_of(event),
        "api_request_id": _request_id_of(event),
        "platform": event.get("platform") or "",
        "model": event.get("model") or own_bag_of(event).get("model") or "",
        "provider": "",
        "base_url": "",
        "api_mode": "chat_completions",
        "api_call_count": int(event.get("hop") or 0) + 1,
    }


def _times_of(event: Event) -> dict[str, Any]:
    ended = event.get("time") or datetime.now(UTC).timestamp()
    began = own_bag_of(event).get("asked_at") or ended
    return {"api_duration": ended - began, "started_at": began, "ended_at": ended}


def _parent_facts_of(event: Event) -> dict[str, Any]:
    return {
        "parent_session_id": event.get("session_id") or "",
        "parent_turn_id": event.get("turn_id") or "",
        "child_session_id": f"{event.get('turn_id') or ''}/{event.get('target') or ''}",
        "child_role": event.get("target") or "",
    }


def _result_of(event: Event) -> str:
    """A tool's result is a text there, also when it is an error."""
    result, error = event.get("result"), event.get("error")
    if result is None and (error or event.get("denied")):
        said = error.get("message") if isinstance(error, dict) else event.get("denied")
        return json.dumps({"error": said})
    return _to_text(result)


def _error_kind_of(error: Any) -> str | None:
    return error.get("kind") or error.get("type") if isinstance(error, dict) else None


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)

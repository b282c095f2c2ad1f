"""What callbacks of plugins are told: the arguments of each hook name, from the event that it stands for.

What an earlier event of the turn said (the model, the history, when something began) is remembered by `remember`, in
the hook's own bag; where there is none (a shell hook is a new process each time) those arguments are empty.
"""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from gateway.events.event import Event
from gateway.hooks.wires.process.plugin.openai import as_function, as_openai

FILES = frozenset({"write_file", "edit_file", "patch"})  # tools that change files
SHELLS = frozenset({"shell", "terminal"})
NUDGES = 3
BEGUN = "begun"
_ENDS = {"new": "new_session", "shutdown": "shutdown"}


def own_of(event: Event) -> dict[str, Any]:
    """What is remembered of this turn for this agent: a sub-agent's run is a part of the same turn."""
    own: dict[str, Any] = event.own.setdefault(str(event.get("agent") or ""), {})
    return own


def remember(event: Event) -> None:
    """Keep of this event what a later one of the turn does not say."""
    own = own_of(event)
    match event.name:
        case "agent:start":
            own["model"] = (event.get("config") or {}).get("model") or ""
            own["user_message"] = event.get("message_full") or ""
            own["history"] = as_openai(event.get("messages"))
            own["messages"] = []
        case "message:add":
            own.setdefault("messages", []).extend(as_openai([event.get("message")]))
        case "llm:before":
            own["asked_at"] = event.get("time")
            own["asked_with"] = len(event.get("messages") or ()) + bool(event.get("system"))
        case "tool:after":
            path = (event.get("args") or {}).get("path")
            if event.get("tool") in FILES and path and not event.get("error") and not event.get("denied"):
                own["changed"] = list(dict.fromkeys([*own.get("changed", ()), str(path)]))
        case "handoff:before":
            own[f"asked {event.get('target')}"] = event.get("time")


def pre_tool(event: Event) -> dict[str, Any]:
    return {
        "tool_name": event.get("tool") or "",
        "args": event.get("args"),
        **_ids(event),
        "tool_call_id": event.get("call_id") or "",
        "api_request_id": _request_id(event),
        "middleware_trace": [],
    }


def post_tool(event: Event) -> dict[str, Any]:
    error, denied = event.get("error"), event.get("denied")
    status = "blocked" if denied else "error" if error else "ok"
    said = (error.get("message") if isinstance(error, dict) else None) or denied
    return {
        **pre_tool(event),
        "result": _result(event),
        "duration_ms": int((event.get("duration") or 0) * 1000),
        "status": status,
        "error_type": None if status == "ok" else "blocked" if denied else _kind(error),
        "error_message": said,
    }


def tool_result(event: Event) -> dict[str, Any]:
    return {name: value for name, value in post_tool(event).items() if name != "middleware_trace"}


def terminal(event: Event) -> dict[str, Any] | None:
    if event.get("tool") not in SHELLS or not isinstance(event.get("result"), str):
        return None
    output, code = exit_of(event["result"])
    return {
        "command": (event.get("args") or {}).get("command") or "",
        "output": output,
        "returncode": code,
        "task_id": event.get("session_id") or "",
        "env_type": "local",
    }


def exit_of(text: str) -> tuple[str, int]:
    """A command's output, and the exit code that our shell tool writes below it."""
    output, mark, end = text.rpartition("[exit code ")
    if mark and end.endswith("]") and end[:-1].lstrip("-").isdigit():
        return output.removesuffix("\n"), int(end[:-1])
    return text, 0


def output(event: Event) -> dict[str, Any] | None:
    reply = event.get("response_full")
    if not reply or event.get("interrupted"):
        return None
    return {"response_text": reply, "session_id": event.get("session_id") or "", **_model(event)}


def pre_llm(event: Event) -> dict[str, Any]:
    history = as_openai(event.get("messages"))
    said = event.get("message_full") or ""
    return {
        **_ids(event),
        "user_message": said,
        "conversation_history": [*history, {"role": "user", "content": said}],
        "is_first_turn": not history,
        "model": (event.get("config") or {}).get("model") or "",
        "platform": event.get("platform") or "",
        "sender_id": event.get("user_id") or "",
    }


def post_llm(event: Event) -> dict[str, Any] | None:
    reply = event.get("response_full")
    if not reply or event.get("interrupted"):
        return None
    own = own_of(event)
    return {
        **_ids(event),
        "user_message": own.get("user_message") or event.get("message_full") or "",
        "assistant_response": reply,
        "conversation_history": [*own.get("history", ()), *own.get("messages", ())],
        **_model(event),
    }


def verify(event: Event) -> dict[str, Any] | None:
    own = own_of(event)
    if not own.get("changed") or own.get("nudges", 0) >= NUDGES or not event.get("completed"):
        return None
    return {
        "session_id": event.get("session_id") or "",
        **_model(event),
        "coding": True,
        "attempt": own.get("nudges", 0),
        "final_response": event.get("response_full") or "",
        "changed_paths": list(own["changed"]),
    }


def pre_request(event: Event) -> dict[str, Any]:
    own, system = own_of(event), event.get("system") or ""
    said = as_openai(event.get("messages"))
    sent = [*([{"role": "system", "content": system}] if system else []), *said]
    tools = [as_function(one) for one in event.get("tools") or ()]
    body = {"model": event.get("model"), "messages": sent, "tools": tools}
    return {
        **_request(event),
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


def post_request(event: Event) -> dict[str, Any] | None:
    if event.get("error"):
        return None
    content, calls = event.get("content") or "", list(event.get("tool_calls") or ())
    (message,) = as_openai([{"role": "assistant", "content": content, "tool_calls": calls}])
    model, stop, usage = own_of(event).get("model") or None, event.get("stop") or "stop", event.get("usage")
    return {
        **_request(event),
        **_times(event),
        "finish_reason": stop,
        "message_count": own_of(event).get("asked_with"),
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


def request_error(event: Event) -> dict[str, Any] | None:
    error = event.get("error")
    if not error:
        return None
    return {
        **_request(event),
        **_times(event),
        "status_code": None,
        "retry_count": 0,
        "max_retries": None,
        "retryable": None,
        "reason": _kind(error),
        "error": {"type": _kind(error), "message": error.get("message") if isinstance(error, dict) else str(error)},
    }


def session_start(event: Event) -> dict[str, Any] | None:
    is_first = not event.own.get(BEGUN) and not event.get("messages") and not event.get("resumed")
    event.own[BEGUN] = True  # what begins after that in the same turn is a sub-agent's
    if not is_first:
        return None
    return {
        "session_id": event.get("session_id") or "",
        "model": (event.get("config") or {}).get("model") or "",
        "platform": event.get("platform") or "",
    }


def turn_end(event: Event) -> dict[str, Any]:
    return {
        **_ids(event),
        "completed": bool(event.get("completed")),
        "interrupted": bool(event.get("interrupted")),
        **_model(event),
        "reason": event.get("stop") or "",
    }


def finalize(event: Event) -> dict[str, Any]:
    return {
        "session_id": event.get("session_id") or "",
        "platform": event.get("platform") or "",
        "reason": _ENDS.get(str(event.get("reason") or ""), "session_expired"),
        "old_session_id": event.get("session_id") or "",
        "new_session_id": event.get("new_session_id"),
    }


def reset(event: Event) -> dict[str, Any]:
    return {**finalize(event), "session_id": event.get("new_session_id") or ""}


def sub_start(event: Event) -> dict[str, Any] | None:
    if event.get("kind") != "call":
        return None
    return {
        **_parent(event),
        "parent_subagent_id": None,
        "child_subagent_id": event.get("target") or "",
        "child_goal": _text(event.get("input")),
    }


def sub_stop(event: Event) -> dict[str, Any] | None:
    if event.get("kind") != "call":
        return None
    began = own_of(event).get(f"asked {event.get('target')}")
    return {
        **_parent(event),
        "child_summary": _text(event.get("result")),
        "child_status": "failed" if event.get("error") else "completed",
        "duration_ms": int((event["time"] - began) * 1000) if began else 0,
    }


def dispatch(event: Event) -> dict[str, Any]:
    """As plain data; a plugin gets the message in Hermes's own shape."""
    return {"event": plain(event), "gateway": None, "session_store": None}


def approval(event: Event) -> dict[str, Any]:
    name, prompt = str(event.get("name") or ""), _text(event.get("value"))
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


def approved(event: Event) -> dict[str, Any]:
    response = event.get("response")
    word = "timeout" if response is None else str(response).strip().lower()
    known = {"true": "once", "yes": "once", "y": "once", "false": "deny", "no": "deny", "n": "deny"}
    word = known.get(word, word)
    choice = word if word in ("once", "session", "always", "timeout") else "deny"
    return {**approval(event), "choice": choice, "decided_by": "timeout" if choice == "timeout" else "user"}


def stream_start(event: Event) -> dict[str, Any] | None:
    return stream(event) if event.get("index") == 0 else None


def stream(event: Event) -> dict[str, Any]:
    chunk = event.get("chunk") or ""
    return {**plain(event), "delta": chunk, "text": chunk, "accumulated": f"{event.get('text') or ''}{chunk}"}


def stream_end(event: Event) -> dict[str, Any] | None:
    return None if event.get("error") else {**plain(event), "text": event.get("content") or ""}


def interim(event: Event) -> dict[str, Any] | None:
    if not event.get("tool_calls") or not event.get("content"):
        return None
    return {**plain(event), "text": event["content"], "message": event["content"]}


def platform(event: Event) -> dict[str, Any]:
    return {**plain(event), "event": event.name.partition(":")[2]}


def plain(event: Event) -> dict[str, Any]:
    """The event's own fields."""
    return {**event, "task_id": event.get("session_id") or ""}


def _ids(event: Event) -> dict[str, Any]:
    session = event.get("session_id") or ""
    return {"session_id": session, "task_id": session, "turn_id": event.get("turn_id") or ""}


def _model(event: Event) -> dict[str, Any]:
    return {"model": own_of(event).get("model") or "", "platform": event.get("platform") or ""}


def _request_id(event: Event) -> str:
    return f"{event.get('turn_id') or ''}:{event.get('hop', 0)}"


def _request(event: Event) -> dict[str, Any]:
    return {
        **_ids(event),
        "api_request_id": _request_id(event),
        "platform": event.get("platform") or "",
        "model": event.get("model") or own_of(event).get("model") or "",
        "provider": "",
        "base_url": "",
        "api_mode": "chat_completions",
        "api_call_count": int(event.get("hop") or 0) + 1,
    }


def _times(event: Event) -> dict[str, Any]:
    ended = event.get("time") or datetime.now(UTC).timestamp()
    began = own_of(event).get("asked_at") or ended
    return {"api_duration": ended - began, "started_at": began, "ended_at": ended}


def _parent(event: Event) -> dict[str, Any]:
    return {
        "parent_session_id": event.get("session_id") or "",
        "parent_turn_id": event.get("turn_id") or "",
        "child_session_id": f"{event.get('turn_id') or ''}/{event.get('target') or ''}",
        "child_role": event.get("target") or "",
    }


def _result(event: Event) -> str:
    """A tool's result is a text there, also when it is an error."""
    result, error = event.get("result"), event.get("error")
    if result is None and (error or event.get("denied")):
        said = error.get("message") if isinstance(error, dict) else event.get("denied")
        return json.dumps({"error": said})
    return _text(result)


def _kind(error: Any) -> str | None:
    return error.get("kind") or error.get("type") if isinstance(error, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)

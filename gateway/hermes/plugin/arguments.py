"""The arguments of plugins' callbacks, made for each hook name from the event that it means.

Some come from an earlier event of the turn (the model, the history, a start time). `remember_event` keeps them in the
hook's own bag; without one (a shell hook is a new process each time) they are empty.

Most of them are composed (`_compose`): of groups of arguments, and of values, each of which is a field of the event
(given by its name), a function of the event, or the same at every call.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, TypeAlias

from gateway.events import Event
from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hermes.shim.tool_results import Ending, ShownResult, show_result, split_exit_code

# Builds the arguments at this event; None if the hook does not fire.
BuildArguments: TypeAlias = Callable[[Event], dict[str, Any] | None]


def as_openai_messages(messages: Any, before: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Convert messages to plugins' form: tool calls as in OpenAI's API, and tool results as in Hermes.

    `before` are earlier messages, in the same form.
    """
    told: list[dict[str, Any]] = []
    calls: dict[str, str] = {}  # their arguments
    for message in before:
        calls |= _arguments_of(message)
    for message in messages or ():
        if isinstance(message, dict):
            told.append(_as_openai_message(dict(message), calls))
            calls |= _arguments_of(told[-1])
    return told


def _arguments_of(message: dict[str, Any]) -> dict[str, str]:
    return {call["id"]: call["function"]["arguments"] for call in message.get("tool_calls") or ()}


def _as_openai_message(message: dict[str, Any], calls: Mapping[str, str]) -> dict[str, Any]:
    if message.get("role") == "tool" and message.get("name"):
        name, args = str(message["name"]), json.loads(calls.get(str(message.get("call_id")), "{}"))
        # A transcript only says that a call failed, not how.
        ending: Ending = "failed" if message.get("error") else "done"
        message["content"] = show_result(name, args, str(message.get("content") or ""), ending).json
        message["name"] = HERMES_TOOLS.describe_name(name)
        message.pop("error", None)
    if "call_id" in message:
        message["tool_call_id"] = message.pop("call_id")
    if calls := message.pop("tool_calls", None):
        message["tool_calls"] = [
            {"id": call.get("id"), "type": "function", "function": describe_tool_call(call)} for call in calls
        ]
    return message


def describe_tool_call(call: dict[str, Any]) -> dict[str, str]:
    """Describe a call as Hermes's model would have made it."""
    name, args = HERMES_TOOLS.describe_call(str(call.get("name")), call.get("args") or {})
    return {"name": name, "arguments": json.dumps(args)}


def as_openai_function(tool: dict[str, Any]) -> dict[str, Any]:
    name = HERMES_TOOLS.describe_name(str(tool.get("name")))
    facts = {"name": name, "description": tool.get("description"), "parameters": tool.get("schema")}
    return {"type": "function", "function": facts}


FILE_TOOLS = frozenset({"write_file", "edit_file", "patch"})  # tools that change files
MAX_NUDGES = 3
BEGUN_KEY = "begun"
CALLED_KEY = "called agents"  # their sessions by their names; no agent is called so
_END_REASONS = {"new": "new_session", "shutdown": "shutdown"}
# Hermes's names of a person's answers; every other answer is `deny`.
_CHOICES = {
    **dict.fromkeys(("once", "true", "yes", "y"), "once"),
    **{word: word for word in ("session", "always", "timeout")},
}


ANSWERS_KEY = "answers of middleware"  # of an agent's bag: by call


def own_bag_of(event: Event) -> dict[str, Any]:
    """Return the memory of this turn for this agent: a sub-agent's run is a part of the same turn."""
    own: dict[str, Any] = event.own.setdefault(str(event.get("agent") or ""), {})
    return own


async def remember_event(event: Event) -> None:
    """Remember the values that a later event of the turn does not have."""
    own = own_bag_of(event)
    match event.name:
        case "agent:start":
            own["model"] = (event.get("config") or {}).get("model") or ""
            own["user_message"] = event.get("message_full") or ""
            own["history"] = as_openai_messages(event.get("messages"))
            own["messages"] = []
        case "message:add":
            said = own.setdefault("messages", [])
            said += as_openai_messages([event.get("message")], said)
        case "llm:before":
            own["asked_at"] = event.get("time")
            own["asked_with"] = len(event.get("messages") or ()) + bool(event.get("system"))
        case "tool:after":
            path = (event.get("args") or {}).get("path")
            if event.get("tool") in FILE_TOOLS and path and not event.get("error") and not event.get("denied"):
                own["changed"] = list(dict.fromkeys([*own.get("changed", ()), str(path)]))
        case "handoff:before":
            own[f"asked {event.get('target')}"] = event.get("time")


def _compose(
    *groups: Callable[[Event], Any], fires: Callable[[Event], Any] | None = None, **values: Any
) -> Callable[[Event], Any]:
    """Build arguments from groups, then from values; a text names a field of the event, "" if that is empty."""

    def build(event: Event) -> dict[str, Any] | None:
        if fires and not fires(event):
            return None
        built: dict[str, Any] = {}
        for group in groups:
            built |= group(event)
        return built | {name: _evaluate(value, event) for name, value in values.items()}

    return build


def _evaluate(value: Any, event: Event) -> Any:
    if isinstance(value, str):
        return event.get(value) or ""
    return value(event) if callable(value) else value


def build_plain_args(event: Event) -> dict[str, Any]:
    """Return the event's own fields."""
    return {**event, "task_id": event.get("session_id") or ""}


def _tool_of(event: Event) -> dict[str, Any]:
    """Return the tool and its arguments, under Hermes's names."""
    name, args = HERMES_TOOLS.describe_call(str(event.get("tool") or ""), event.get("args"))
    return {"tool_name": name, "args": args}


def _request_id_of(event: Event) -> str:
    return f"{event.get('turn_id') or ''}:{event.get('hop', 0)}"


def _model_name_of(event: Event) -> str:
    return event.get("model") or (event.get("usage") or {}).get("model") or own_bag_of(event).get("model") or ""


def _configured_model_of(event: Event) -> str:
    return (event.get("config") or {}).get("model") or ""


def _times_of(event: Event) -> dict[str, Any]:
    ended = event.get("time") or datetime.now(UTC).timestamp()
    began = own_bag_of(event).get("asked_at") or ended
    return {"api_duration": ended - began, "started_at": began, "ended_at": ended}


def _error_of(event: Event) -> dict[str, Any]:
    """Return the error as an object, since a hook may have replaced it by a text."""
    error = event.get("error")
    return error if isinstance(error, dict) else {"message": str(error)} if error else {}


def _error_kind_of(event: Event) -> str | None:
    return _error_of(event).get("kind") or _error_of(event).get("type")


def shown_result_of(event: Event) -> ShownResult:
    """Return the result of a tool. A hook stops a call by `denied` alone; with an error, a person has refused it."""
    name, (_, args) = (
        str(event.get("tool") or ""),
        HERMES_TOOLS.describe_call(str(event.get("tool") or ""), event.get("args")),
    )
    left, error, denied = event.get("result"), event.get("error"), event.get("denied")
    ending: Ending = "done"
    if error:
        ending = "refused" if denied else "failed"
    elif denied and left is None:
        ending = "blocked"
    text = _to_text(left) if left is not None else _to_text(_error_of(event).get("message") or denied)
    if text == own_bag_of(event).get(ANSWERS_KEY, {}).get(event.get("call_id")):
        return ShownResult(text, None, args)
    return show_result(name, args, text, ending)


def remember_answer(event: Event, text: str) -> None:
    """Remember middleware's answer for a tool's result: later hooks get it as it is."""
    own_bag_of(event).setdefault(ANSWERS_KEY, {})[event.get("call_id")] = text


def _is_blocked(event: Event) -> bool:
    return bool(event.get("denied") and not event.get("error"))


def _result_of(event: Event) -> dict[str, Any]:
    """Return the result of a tool, and if it is an error, which in Hermes the result itself says."""
    shown = shown_result_of(event)
    status, kind = ("error", "tool_error") if shown.error else ("ok", None)
    if _is_blocked(event):
        status, kind = "blocked", "plugin_block"
    return {"result": shown.json, "status": status, "error_type": kind, "error_message": shown.error}


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _has_reply(event: Event) -> bool:
    return bool(event.get("response_full")) and not event.get("interrupted")


def _is_call(event: Event) -> bool:
    return event.get("kind") == "call"


def _child_session_of(event: Event) -> str:
    return f"{event.get('turn_id') or ''}/{event.get('target') or ''}"


def _session_of(event: Event) -> str:
    """Return the event's session; a sub-agent's own one for a hook that has learned it from `subagent_start`."""
    called = event.own.get(CALLED_KEY, {}).get(event.get("agent"))
    return called or event.get("session_id") or ""


def _parent_session_of(event: Event) -> str:
    """Return the session of the agent that called this sub-agent."""
    return str(event.get("session_id") or "") if event.get("agent") in event.own.get(CALLED_KEY, ()) else ""


def _task_of(event: Event) -> str:
    """Return the conversation's session, or the sub-agent's id."""
    return event["agent"] if event.get("agent") in event.own.get(CALLED_KEY, ()) else event.get("session_id") or ""


build_ids = _compose(session_id=_session_of, task_id=_task_of, turn_id="turn_id")
_MODEL = _compose(model=_model_name_of, platform="platform")
_MIDDLEWARE = _compose(middleware_trace=lambda _: [])
_TOOL = _compose(
    build_ids,
    _tool_of,
    tool_call_id="call_id",
    api_request_id=_request_id_of,
)
_REQUEST = _compose(
    build_ids,
    api_request_id=_request_id_of,
    platform="platform",
    model=_model_name_of,
    provider=lambda _: "",
    base_url=lambda _: "",
    api_mode=lambda _: "chat_completions",
    api_call_count=lambda event: int(event.get("hop") or 0) + 1,
)
_PARENT = _compose(
    parent_session_id="session_id",
    parent_turn_id="turn_id",
    child_session_id=_child_session_of,
    child_role="target",
)

build_pre_tool_args = _compose(_TOOL, _MIDDLEWARE)

build_request_args = _compose(
    _TOOL,
    original_args=lambda event: _tool_of(event)["args"],
    middleware_schema_version=lambda _: "hermes.middleware.v1",
)

_RESULT = _compose(_TOOL, _result_of, duration_ms=lambda event: int((event.get("duration") or 0) * 1000))

build_tool_result_args = _compose(_RESULT, fires=lambda event: not _is_blocked(event))

build_post_tool_args = _compose(_RESULT, _MIDDLEWARE)

# A plugin's tool in the place of ours has no such output, as in Hermes.
build_terminal_args = _compose(
    fires=lambda event: event.get("tool") == "shell" and isinstance(event.get("result"), str),
    command=lambda event: (event.get("args") or {}).get("command") or "",
    output=lambda event: split_exit_code(event["result"])[0],
    returncode=lambda event: split_exit_code(event["result"])[1],
    task_id=_task_of,
    env_type=lambda _: "local",
)

build_output_args = _compose(_MODEL, fires=_has_reply, response_text="response_full", session_id=_session_of)

build_pre_llm_args = _compose(
    build_ids,
    user_message="message_full",
    conversation_history=lambda event: [
        *as_openai_messages(event.get("messages")),
        {"role": "user", "content": event.get("message_full") or ""},
    ],
    is_first_turn=lambda event: not event.get("messages"),
    model=_configured_model_of,
    platform="platform",
    sender_id="user_id",
)

build_post_llm_args = _compose(
    build_ids,
    _MODEL,
    fires=_has_reply,
    user_message=lambda event: own_bag_of(event).get("user_message") or event.get("message_full") or "",
    assistant_response="response_full",
    conversation_history=lambda event: [
        *own_bag_of(event).get("history", ()),
        *own_bag_of(event).get("messages", ()),
    ],
)


# Only for callbacks that name them: one that takes all arguments gets Hermes's keys and no other.
build_cost_args = _compose(
    usage=lambda event: event.get("usage") or {},
    cost=lambda event: (event.get("usage") or {}).get("cost", 0.0),
)


# The same for the additions of 0.20 to 0.22.
build_pre_llm_names = _compose(parent_session_id=_parent_session_of)
build_pre_request_names = _compose(system_prompt="system", retry_count=0)
build_post_request_names = _compose(context_length=None, first_chunk_at=None, moa_references=lambda _: [])
build_output_names = _compose(turn_id="turn_id")
build_terminal_names = _compose(tool_call_id="call_id")
build_subagent_stop_names = _compose(tool_call_history=lambda _: [])
build_turn_end_names = _compose(
    turn_exit_reason="stop", failed=lambda event: bool(event.get("error")) or event.get("stop") == "failed"
)


def _needs_verification(event: Event) -> bool:
    own = own_bag_of(event)
    return bool(own.get("changed") and own.get("nudges", 0) < MAX_NUDGES and event.get("completed"))


build_verify_args = _compose(
    _MODEL,
    fires=_needs_verification,
    session_id=_session_of,
    coding=True,
    attempt=lambda event: own_bag_of(event).get("nudges", 0),
    final_response="response_full",
    changed_paths=lambda event: list(own_bag_of(event)["changed"]),
)


def _question_of(event: Event) -> dict[str, Any]:
    own, system = own_bag_of(event), event.get("system") or ""
    said = as_openai_messages(event.get("messages"))
    sent = [*([{"role": "system", "content": system}] if system else []), *said]
    tools = [as_openai_function(one) for one in event.get("tools") or ()]
    body = {"model": event.get("model"), "messages": sent, "tools": tools}
    return {
        "user_message": own.get("user_message") or "",
        "conversation_history": [*own["history"], *own["messages"]] if "messages" in own else said,
        "request_messages": sent,
        "message_count": len(sent),
        "tool_count": len(tools),
        "approx_input_tokens": event.get("tokens") or 0,
        "request_char_count": sum(len(str(one.get("content") or "")) for one in sent),
        "max_tokens": None,
        "started_at": event.get("time"),
        "request": {"method": "POST", "body": body},
    }


build_pre_request_args = _compose(_REQUEST, _MIDDLEWARE, _question_of)


def _answer_of(event: Event) -> dict[str, Any]:
    content, calls = event.get("content") or "", list(event.get("tool_calls") or ())
    (message,) = as_openai_messages([{"role": "assistant", "content": content, "tool_calls": calls}])
    model, stop, usage = _model_name_of(event) or None, event.get("stop") or "stop", event.get("usage")
    return {
        "finish_reason": stop,
        "response_model": model,
        "response": {"model": model, "finish_reason": stop, "assistant_message": message, "usage": usage},
        "usage": usage,
        "assistant_message": SimpleNamespace(
            content=content,
            tool_calls=[SimpleNamespace(id=call.get("id"), **describe_tool_call(call)) for call in calls] or None,
            finish_reason=stop,
        ),
        "assistant_content_chars": len(content),
        "assistant_tool_call_count": len(calls),
    }


build_post_request_args = _compose(
    _REQUEST,
    _times_of,
    _answer_of,
    fires=lambda event: not event.get("error"),
    message_count=lambda event: own_bag_of(event).get("asked_with"),
)

build_request_error_args = _compose(
    _REQUEST,
    _times_of,
    fires=lambda event: event.get("error"),
    status_code=None,
    retry_count=0,
    max_retries=None,
    retryable=None,
    reason=_error_kind_of,
    error=lambda event: {"type": _error_kind_of(event), "message": _error_of(event).get("message")},
)


def _is_session_start(event: Event) -> bool:
    is_first = not event.own.get(BEGUN_KEY) or event.get("agent") in event.own.get(CALLED_KEY, ())
    event.own[BEGUN_KEY] = True  # a later start in the same turn is a sub-agent's
    return is_first and not event.get("messages") and not event.get("resumed")


build_session_start_args = _compose(
    fires=_is_session_start, session_id=_session_of, model=_configured_model_of, platform="platform"
)

build_turn_end_args = _compose(
    build_ids,
    _MODEL,
    completed=lambda event: bool(event.get("completed")),
    interrupted=lambda event: bool(event.get("interrupted")),
)


def _successor_of(event: Event) -> dict[str, Any]:
    """Return both sessions if a person has started a new one."""
    if event.get("reason") != "new":
        return {}
    return {"old_session_id": event.get("session_id"), "new_session_id": event.get("new_session_id")}


build_finalize_args = _compose(
    _successor_of,
    session_id="session_id",
    platform="platform",
    reason=lambda event: _END_REASONS.get(str(event.get("reason") or ""), "session_expired"),
)

build_reset_args = _compose(build_finalize_args, session_id="new_session_id")


def _names_child(event: Event) -> bool:
    """Tell if a sub-agent starts; from now on its work has its own session."""
    called, target = event.own.setdefault(CALLED_KEY, {}), event.get("target")
    if _is_call(event):
        called[target] = _child_session_of(event)
    else:  # the agent continues the conversation itself
        called.pop(target, None)
    return _is_call(event)


build_subagent_start_args = _compose(
    _PARENT,
    fires=_names_child,
    parent_subagent_id=None,
    child_subagent_id="target",
    child_goal=lambda event: _to_text(event.get("input")),
)


def _milliseconds_since_asked(event: Event) -> int:
    began = own_bag_of(event).get(f"asked {event.get('target')}")
    return int((event["time"] - began) * 1000) if began else 0


build_subagent_stop_args = _compose(
    _PARENT,
    fires=_is_call,
    child_summary=lambda event: _to_text(event.get("result")),
    child_status=lambda event: "failed" if event.get("error") else "completed",
    duration_ms=_milliseconds_since_asked,
)

# As plain data; a plugin gets the message in Hermes's own shape.
build_dispatch_args = _compose(event=build_plain_args, gateway=None, session_store=None)


def build_approval_args(event: Event) -> dict[str, Any]:
    name, prompt = str(event.get("name") or ""), _to_text(event.get("value"))
    call_id, _, rest = name.partition("/")
    key = HERMES_TOOLS.describe_name(rest.partition("/")[0] or name)
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
    choice = "timeout" if response is None else _CHOICES.get(str(response).strip().lower(), "deny")
    return {**build_approval_args(event), "choice": choice, "decided_by": "timeout" if choice == "timeout" else "user"}


build_stream_args = _compose(
    build_plain_args,
    delta="chunk",
    text="chunk",
    accumulated=lambda event: f"{event.get('text') or ''}{event.get('chunk') or ''}",
)

build_stream_start_args = _compose(build_stream_args, fires=lambda event: event.get("index") == 0)

build_stream_end_args = _compose(
    build_plain_args, text="content", final_text="content", finished=lambda event: not event.get("error")
)

build_interim_args = _compose(
    build_plain_args,
    fires=lambda event: event.get("tool_calls") and event.get("content"),
    text="content",
    message="content",
    already_streamed=True,
)

build_platform_args = _compose(
    build_plain_args,
    event=lambda event: event.name.partition(":")[2],
    event_type=lambda event: "reaction" if event.name.startswith("reaction:") else event.name.partition(":")[2],
    payload=lambda event: {**event, "action": event.name.partition(":")[2]},
)

build_command_args = _compose(
    build_plain_args,
    surface=lambda _: "gateway",
    alias_used="raw_command",
    args_raw="raw_args",
)

build_stopped_args = _compose(
    build_plain_args,
    fires=lambda event: event.get("interrupted"),
    reason=lambda _: "stop",
    invalidation_reason=lambda _: "stop",
)

# Messages that wait for their turn; commands are dispatched before.
build_admission_args = _compose(
    fires=lambda event: not str(event.get("text") or "").startswith("/"),
    session_key="session_key",
    platform="platform",
    message_id="message_id",
    text="text",
    source=lambda event: {
        name: event.get(name) or None
        for name in ("platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id")
    },
)


def build_person_asked_args(event: Event) -> dict[str, Any]:
    """Build the arguments of a question to a person.

    The question keeps one id until its answer is there: the last part of its event's name.
    """
    name = str(event.get("name") or "").rpartition("/")[2]
    return {
        "kind": "approval" if name.startswith("approve") else "clarify",
        "request_id": f"{event.get('turn_id') or ''}:{name}",
        "session_id": event.get("session_id") or "",
        "session_key": event.get("session_key") or "",
        "platform": event.get("platform") or "",
        "prompt": _to_text(event.get("value")),
    }


def build_person_answered_args(event: Event) -> dict[str, Any]:
    return {**build_person_asked_args(event), "outcome": build_approval_response_args(event)["choice"]}

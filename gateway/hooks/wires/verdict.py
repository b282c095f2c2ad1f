"""What a one-shot program says by its end: exit codes and JSON on stdout, as Claude Code's hooks have them.

Exit 0: it went well, and a JSON object on stdout may decide. Exit 2: what was about to happen is blocked, with stderr
as the reason. Any other end is a failure, and the hook's `on_error` says what follows from it.

The object is one of our decisions (`{"decision": "deny"}`), or Claude Code's (`{"decision": "block"}`,
`{"continue": false}`, `{"hookSpecificOutput": {...}}`), or Hermes's (`{"action": "block"}`, `{"context": ...}`), or
simply changed fields.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.events.event import DECISIONS, Question, outcome_from
from gateway.hooks.wires.wire import Answer, HookFailed

BLOCKED = 2
SHOWN = 2000

# What such a program finds beside the event's own fields, so that scripts written for Claude Code find what they read.
_CALLED: Mapping[str, str] = {
    "agent:start": "UserPromptSubmit",
    "message:received": "UserPromptSubmit",
    "tool:before": "PreToolUse",
    "tool:after": "PostToolUse",
    "agent:end": "Stop",
    "session:start": "SessionStart",
    "session:end": "SessionEnd",
    "session:compress": "PreCompact",
}
_SAME: Mapping[str, tuple[str, ...]] = {
    "tool_name": ("tool",),
    "tool_input": ("args",),
    "tool_response": ("result",),
    "prompt": ("message_full", "text"),
}


def input_for(name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The object on stdin; the event's own fields win over a name of Claude Code's."""
    said: dict[str, Any] = {"event": name, "hook_event_name": _CALLED.get(name, name), "cwd": folder}
    for theirs, ours in _SAME.items():
        if (found := next((field for field in ours if fields.get(field) is not None), None)) is not None:
            said[theirs] = fields[found]
    if answers:
        said["answers"] = dict(answers)
    return {**said, **fields}


def verdict(name: str, code: int, stdout: bytes, stderr: str, is_guard: bool) -> Answer:
    """What the program's end means for this event.

    `is_guard`: an end that cannot be understood is a failure, where it is otherwise taken for chatter.

    Raises:
        HookFailed: it failed, or said what means nothing.
    """
    if code == BLOCKED:
        return Answer(result=_blocked(name, stderr.strip()[:SHOWN]))
    if code != 0:
        how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        raise HookFailed(f"{how}: {stderr.strip()[-SHOWN:] or 'nothing on stderr'}", kind="died")
    text = stdout.strip()
    if not text:
        return Answer()
    if not text.startswith(b"{") and not is_guard:
        return Answer()
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        begin = text[:60].decode("utf-8", "backslashreplace")
        raise HookFailed(f"what it wrote to stdout is no JSON ({error}): {begin!r}", kind="garbled") from None
    if not isinstance(said, dict):
        raise HookFailed(f"what it wrote to stdout is a {type(said).__name__}, not an object", kind="garbled")
    return _meant(name, said)


def _meant(name: str, said: dict[str, Any]) -> Answer:
    result = _decided(name, said)
    try:
        outcome = outcome_from(result)
    except (TypeError, ValueError) as error:
        raise HookFailed(str(error), kind="garbled") from None
    return Answer(ask=outcome) if isinstance(outcome, Question) else Answer(result=result or None)


def _decided(name: str, said: dict[str, Any]) -> dict[str, Any]:
    """One of our decisions, or changed fields."""
    specific = said.get("hookSpecificOutput")
    specific = specific if isinstance(specific, dict) else {}
    word = str(said.get("decision", said.get("action", specific.get("permissionDecision", "")))).strip().lower()
    reason = _text(said, "reason", "message") or _text(specific, "permissionDecisionReason")
    if said.get("continue") is False:
        return {"decision": "end", "reply": _text(said, "stopReason") or reason}
    if word == "block" or (word == "deny" and "decision" not in said):
        return _blocked(name, reason)
    if word == "ask" and "prompt" not in said:
        return {"decision": "ask", "name": _text(said, "name"), "prompt": reason or f"May {name} go on?"}
    changed = _changed(said, specific)
    if word in ("approve", "allow", ""):
        return changed
    return {**said, "decision": word} if word in DECISIONS or "decision" in said else changed


def _changed(said: Mapping[str, Any], specific: Mapping[str, Any]) -> dict[str, Any]:
    spoken = {"decision", "action", "reason", "message", "hookSpecificOutput", "continue", "suppressOutput"}
    spoken |= {"stopReason", "systemMessage"}
    changed = {field: value for field, value in said.items() if field not in spoken}
    if isinstance(given := specific.get("updatedInput"), dict):
        changed["args"] = given
    if text := _text(specific, "additionalContext") or _text(said, "context"):
        changed["context"] = [text]
    return changed


def _blocked(name: str, reason: str) -> dict[str, Any]:
    """At the end of a turn, to block is to go on; everywhere else, not to go on."""
    if name == "agent:end":
        return {"decision": "retry", "message": reason}
    return {"decision": "deny", "message": reason}


def _text(said: Mapping[str, Any], *keys: str) -> str:
    return next((said[key] for key in keys if isinstance(said.get(key), str) and said[key]), "")

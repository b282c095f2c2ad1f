"""The answer of a one-shot program: its exit code and JSON on stdout, as for Claude Code's hooks.

Exit 0 is success, and a JSON object on stdout may decide. Exit 2 blocks the operation, with stderr as the reason. Any
other end is a failure, and the hook's `on_error` decides what follows.

The object is one of our decisions (`{"decision": "deny"}`), Claude Code's (`{"decision": "block"}`, `{"continue":
false}`, `{"hookSpecificOutput": {...}}`), Hermes's (`{"action": "block"}`, `{"context": ...}`), or plain changed
fields.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from gateway.events import DECISIONS
from gateway.hooks.wires.process_handle import describe_exit
from gateway.hooks.wires.wire import HookAnswer, HookFailed, answer_of
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.protocol import CallMeta
from gateway.worker.tool_names import ToolNames, make_tool_name

BLOCKING_EXIT = 2
MAX_SHOWN = 2000

_decode = JsonDecoder[Any]().decode

# Fields that such a program gets beside the event's own, so that scripts for Claude Code find their names.
_CLAUDE_EVENTS: Mapping[str, str] = {
    "agent:start": "UserPromptSubmit",
    "message:received": "UserPromptSubmit",
    "tool:before": "PreToolUse",
    "tool:after": "PostToolUse",
    "agent:end": "Stop",
    "session:start": "SessionStart",
    "session:end": "SessionEnd",
    "session:compress": "PreCompact",
}
_CLAUDE_FIELDS: Mapping[str, tuple[str, ...]] = {"tool_response": ("result",), "prompt": ("message_full", "text")}
# Claude Code's names for our tools and their arguments.
CLAUDE_TOOLS = ToolNames(
    (
        make_tool_name("shell", "Bash"),
        make_tool_name("write_file", "Write", "file_path=path"),
        make_tool_name("edit_file", "Edit", "file_path=path old_string=old new_string=new replace_all=every"),
        make_tool_name("read_file", "Read", "file_path=path offset=first_line limit=lines"),
        make_tool_name("list_files", "LS"),
        make_tool_name("web_fetch", "WebFetch"),
        make_tool_name("web_search", "WebSearch"),
        make_tool_name("delegate", "Agent", "prompt=task subagent_type=agent"),
        make_tool_name("transfer", "Agent", "prompt=reason subagent_type=agent"),
        make_tool_name("load_skill", "Skill"),
        make_tool_name("send_message", "SendMessage"),
    ),
    has_hyphens=True,
)


class ProgramFormat(Protocol):
    """The input of a program, and the meaning of its end."""

    async def build_input(
        self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]
    ) -> bytes | None:
        """Return the program's stdin; None if the program does not run for this event."""

    def read_answer(
        self, name: str, fields: Mapping[str, Any], meta: CallMeta, ended: tuple[int, bytes, str]
    ) -> HookAnswer:
        """Interpret a program's end: its exit code, its stdout and its stderr.

        Raises:
            HookFailed: the program failed, or its output has no meaning.
        """


class OwnFormat(ProgramFormat):
    """The gateway's own format, with additional names for scripts written for Claude Code.

    `is_guard`: output without a meaning is a failure of a guard; for other hooks, such output is ignored.
    """

    def __init__(self, is_guard: bool) -> None:
        self._is_guard = is_guard

    async def build_input(self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]) -> bytes:
        """Return one JSON object; the event's own fields take precedence over Claude Code's names."""
        said: dict[str, Any] = {"event": name, "hook_event_name": _CLAUDE_EVENTS.get(name, name), "cwd": folder}
        for theirs, ours in _CLAUDE_FIELDS.items():
            if (found := next((field for field in ours if fields.get(field) is not None), None)) is not None:
                said[theirs] = fields[found]
        if tool := fields.get("tool"):
            said["tool_name"], said["tool_input"] = CLAUDE_TOOLS.describe_call(str(tool), fields.get("args"))
        if answers:
            said["answers"] = dict(answers)
        return msgspec.json.encode({**said, **fields})

    def read_answer(
        self,
        name: str,
        fields: Mapping[str, Any],
        meta: CallMeta,  # noqa: ARG002 - part of the protocol
        ended: tuple[int, bytes, str],
    ) -> HookAnswer:
        code, stdout, stderr = ended
        if code == BLOCKING_EXIT:
            return HookAnswer(result=_make_block(name, stderr.strip()[:MAX_SHOWN]))
        if code != 0:
            told = stderr.strip()[-MAX_SHOWN:] or "nothing on stderr"
            raise HookFailed(f"{describe_exit(code)}: {told}", kind="died")
        text = stdout.strip()
        if not text or not (self._is_guard or text.startswith(b"{")):
            return HookAnswer()
        try:
            said = _decode(text)
        except ValueError as error:
            begin = text[:60].decode("utf-8", "backslashreplace")
            raise HookFailed(f"what it wrote to stdout is not JSON ({error}): {begin!r}", kind="garbled") from None
        if not isinstance(said, dict):
            raise HookFailed(f"what it wrote to stdout is a {type(said).__name__}, not an object", kind="garbled")
        return answer_of(_to_decision(name, said, str(fields.get("tool") or "")) or None)


def _to_decision(name: str, said: dict[str, Any], tool: str) -> dict[str, Any]:
    """Return one of our decisions, or changed fields."""
    specific = said.get("hookSpecificOutput")
    specific = specific if isinstance(specific, dict) else {}
    word = str(said.get("decision", said.get("action", specific.get("permissionDecision", "")))).strip().lower()
    reason = _text_of(said, "reason", "message") or _text_of(specific, "permissionDecisionReason")
    if said.get("continue") is False:
        return {"decision": "end", "reply": _text_of(said, "stopReason") or reason}
    if word == "block" or (word == "deny" and "decision" not in said):
        return _make_block(name, reason)
    if word == "ask" and "prompt" not in said:
        return {"decision": "ask", "name": _text_of(said, "name"), "prompt": reason or f"May {name} go on?"}
    changed = _changes_of(said, specific, tool)
    if word in ("approve", "allow", ""):
        return changed
    return {**said, "decision": word} if word in DECISIONS or "decision" in said else changed


def _changes_of(said: Mapping[str, Any], specific: Mapping[str, Any], tool: str) -> dict[str, Any]:
    spoken = {"decision", "action", "reason", "message", "hookSpecificOutput", "continue", "suppressOutput"}
    spoken |= {"stopReason", "systemMessage"}
    changed = {field: value for field, value in said.items() if field not in spoken}
    if isinstance(given := specific.get("updatedInput"), dict):
        changed["args"] = CLAUDE_TOOLS.resolve_args(tool, given)
    if text := _text_of(specific, "additionalContext") or _text_of(said, "context"):
        changed["context"] = [text]
    return changed


def _make_block(name: str, reason: str) -> dict[str, Any]:
    """Return the decision for "block": at the end of a turn, continue the turn, everywhere else deny."""
    if name == "agent:end":
        return {"decision": "retry", "message": reason}
    return {"decision": "deny", "message": reason}


def _text_of(said: Mapping[str, Any], *keys: str) -> str:
    return next((said[key] for key in keys if isinstance(said.get(key), str) and said[key]), "")

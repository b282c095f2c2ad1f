"""The programs that can be connected, one row each: their settings, their events, and the form of an answer."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from gateway.hooks.wires.oneshot_answer import CLAUDE_TOOLS
from gateway.worker.tool_names import ToolNames


class Program(NamedTuple):
    """One program. `file`: its settings, in its folder of the person's home, which a variable may place elsewhere.

    `before`: the event before a tool, and `after` the one behind it; `question`: the one by which it asks for itself.
    `ends`: the events after which a question of that session, or the one about that call, needs no answer any more.
    """

    name: str
    title: str
    variable: str
    folder: str
    file: str
    tools: ToolNames
    before: str
    after: str
    question: str
    ends: frozenset[str]
    guard: str = ""  # the event of a change of its settings, which an answer can prevent


PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        name="claude",
        title="Claude Code",
        variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        file="settings.json",
        tools=CLAUDE_TOOLS,
        before="PreToolUse",
        after="PostToolUse",
        question="PermissionRequest",
        ends=frozenset({"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"}),
        guard="ConfigChange",
    )
}


def make_permission_answer(*, is_allowed: bool, reason: str = "") -> str:
    """Make the answer to the program's own question."""
    decision = {"behavior": "allow"} if is_allowed else {"behavior": "deny", "message": reason}
    return _encode("PermissionRequest", decision=decision)


def make_decision(decision: str, reason: str = "") -> str:
    """Make the answer before a tool runs: `allow`, or `ask` for the program's own dialog."""
    reasons = {"permissionDecisionReason": reason} if reason else {}
    return _encode("PreToolUse", permissionDecision=decision, **reasons)


def _encode(event: str, **answer: object) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **answer}})

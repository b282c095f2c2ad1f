"""The programs that can be connected, one row each: their settings, their events, and the form of an answer."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

CALLED = ("PreToolUse", "PermissionRequest")  # events of one call that has not run


class Program(NamedTuple):
    """One program. `file`: its settings, in its folder of the person's home, which a variable may place elsewhere.

    `question`: the event by which it asks for itself. `ends`: the events after which a question of that
    session, or the one about that call, needs no answer any more.
    """

    name: str
    title: str
    variable: str
    folder: str
    file: str
    question: str
    ends: frozenset[str]


PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        name="claude",
        title="Claude Code",
        variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        file="settings.json",
        question="PermissionRequest",
        ends=frozenset({"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"}),
    )
}


def make_permission_answer(*, is_allowed: bool, reason: str = "") -> str:
    """Make the answer to the program's own question."""
    decision = {"behavior": "allow"} if is_allowed else {"behavior": "deny", "message": reason}
    return _encode({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})


def _encode(answer: Mapping[str, object]) -> str:
    return msgspec.json.encode(answer).decode()

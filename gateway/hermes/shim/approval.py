"""The module `tools.approval`: a plugin's tool asks a person before it acts, as an approval of this gateway.

Hermes asks about commands that look dangerous. We ask about every command that does not plainly read: a command on
another machine passes neither our sandbox nor our rules for the shell.
"""

import hashlib
import re
import shlex
from contextvars import ContextVar
from typing import Any

from gateway.events import Event, is_yes

CURRENT_CALL: ContextVar[Event | None] = ContextVar("current_call", default=None)  # the call that runs now
READING = frozenset(
    {
        "cat", "df", "du", "free", "grep", "head", "id", "ls", "ps", "pwd", "stat", "tail", "uname", "uptime", "wc",
        "which", "who", "whoami",
    }
)  # fmt: skip
SHELL_SIGNS = re.compile(r"[;&|<>`$(){}\n\\]")


def check_dangerous_command(
    command: str,
    env_type: str,
    approval_callback: Any = None,  # noqa: ARG001 - Hermes's
    has_host_access: bool = False,  # noqa: ARG001 - Hermes's
) -> dict[str, Any]:
    """Return `approved` for a command that may run there, or a `message` for the model."""
    if _only_reads(command):
        return {"approved": True, "message": None}
    return _ask_person(f"May I run this ({env_type})?\n{command}", command)


def request_tool_approval(
    tool_name: str,
    reason: str,
    *,
    rule_key: str = "",
    approval_callback: Any = None,  # noqa: ARG001 - Hermes's
) -> dict[str, Any]:
    """Return `approved`, or a `message` for the model, for a tool that wants to act for this reason."""
    return _ask_person(f"May I run {tool_name}? {reason}".strip(), rule_key or f"{tool_name}: {reason}")


def _only_reads(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and words[0] in READING and not SHELL_SIGNS.search(command)


def _ask_person(prompt: str, rule: str) -> dict[str, Any]:
    """Ask the person, which ends the call; the repeated call finds the answer here."""
    event, name = CURRENT_CALL.get(), f"approve {hashlib.sha256(rule.encode()).hexdigest()[:12]}"
    if event is None or event.bags.answers is None:
        return _refuse(f"this cannot ask a person: {prompt}", rule)
    answer = event.bags.answers.get(name)
    if is_yes(event.ask(prompt, name) if answer is None else answer):
        return {"approved": True, "message": None}
    return _refuse(f"the person did not allow it: {prompt}", rule)


def _refuse(why: str, rule: str) -> dict[str, Any]:
    return {"approved": False, "message": f"BLOCKED: {why}", "pattern_key": rule, "description": why}

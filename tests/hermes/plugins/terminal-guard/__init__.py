"""Blocks destructive commands, by a list of patterns."""

import logging
import re

logger = logging.getLogger(__name__)

DANGEROUS = [re.compile(pattern) for pattern in (r"\brm\s+-rf\b", r"\bmkfs\b", r":\(\)\s*\{")]
SHELLS = {"terminal", "process", "shell", "run_shell_command"}


def on_pre_tool_call(tool_name: str = "", args: dict | None = None, task_id: str = "", **kwargs):
    if tool_name not in SHELLS:
        return None
    command = (args or {}).get("command", "")
    for pattern in DANGEROUS:
        if pattern.search(command):
            logger.warning("blocked %s in %s", pattern.pattern, task_id)
            return {"action": "block", "message": f"Blocked by terminal-guard: {pattern.pattern}"}
    return None


def register(ctx):
    ctx.register_hook("pre_tool_call", on_pre_tool_call)

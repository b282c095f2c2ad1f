"""A tool that runs commands on another machine."""

import json

try:
    from tools.approval import check_dangerous_command
except ImportError:
    check_dangerous_command = None

SCHEMA = {
    "name": "far_shell",
    "description": "Run a command on the box in the cellar.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
}


def _run(args, **kwargs):
    if check_dangerous_command is None:
        return json.dumps({"error": "approval system is unavailable"})
    verdict = check_dangerous_command(args["command"], "ssh")
    if not verdict.get("approved"):
        return json.dumps({"error": verdict.get("message") or "not approved"})
    return json.dumps({"output": f"cellar$ {args['command']}", "exit_code": 0})


def register(ctx):
    ctx.register_tool(name="far_shell", toolset="far", schema=SCHEMA, handler=_run, emoji="\U0001f50c")

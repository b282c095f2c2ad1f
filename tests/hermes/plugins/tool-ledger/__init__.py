"""A guard for each tool: it knows the tool by its name, and takes from the arguments what the tool cannot do without."""

import json
import os
from pathlib import Path

LEDGER = Path(os.environ["HERMES_HOME"]) / "seen-ledger.jsonl"
NEEDED = {
    "terminal": ["command"],
    "read_file": ["path", "offset", "limit"],
    "write_file": ["path", "content"],
    "patch": ["mode", "path", "old_string", "new_string", "replace_all"],
    "search_files": ["pattern", "target", "path"],
    "web_extract": ["urls"],
    "web_search": ["query", "limit"],
    "memory": ["action", "target", "content"],
    "skill_view": ["name"],
    "delegate_task": ["goal"],
    "send_message": ["action", "target", "message"],
    "cronjob": ["action"],
}


def note(*what):
    with LEDGER.open("a") as file:
        file.write(json.dumps(what) + "\n")


def guard_of(name):
    def guard(tool_name, args, **_):
        if tool_name != name:
            return None
        note("asked", tool_name, {key: args[key] for key in NEEDED[name]})
        return {"action": "block", "message": f"{name}: {args[NEEDED[name][0]]} is not for you"}

    return guard


def after(tool_name, args, status, result, **_):
    note("after", tool_name, sorted(args), status, json.loads(result))


def request(request, **_):
    body = request["body"] if isinstance(request, dict) else {}
    called = [call["function"]["name"] for one in body.get("messages", ()) for call in one.get("tool_calls") or ()]
    if called:
        note("transcript", called)


def register(ctx):
    for name in NEEDED:
        ctx.register_hook("pre_tool_call", guard_of(name))
    ctx.register_hook("post_tool_call", after)
    ctx.register_hook("pre_api_request", request)

"""Tools of every kind: whose checks say no or fail, that answer in parts, or that come when it is too late."""

import json
import os
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-toolmaker.jsonl"


def schema(name):
    return {"name": name, "description": name, "parameters": {"type": "object", "properties": {}}}


def fails():
    raise RuntimeError("no such device")


def snapshot(args, *, user_task, **_):  # Hermes gives every tool one, which is None
    return {"_multimodal": True, "content": [{"type": "text", "text": "a view"}]}


def passes(next_call, args, **_):
    return next_call(args)


def before(request, **_):
    names = {tool["function"]["name"] for tool in request["body"].get("tools") or ()}
    with SEEN.open("a") as file:
        file.write(json.dumps(sorted(name for name in names if name.startswith("make_"))) + "\n")


def register(ctx):
    def late(raw_args):
        ctx.register_tool("make_late", "make", schema("make_late"), lambda args, **_: "late")
        ctx.register_command("later", lambda raw_args: "later")
        return "done"

    ctx.register_hook("pre_api_request", before)
    ctx.register_middleware("tool_execution", passes)
    ctx.register_middleware("llm_execution", lambda next_call, request, **_: next_call(request))
    ctx.register_tool("make_snapshot", "make", schema("make_snapshot"), snapshot)
    ctx.register_tool("make_nothing", "make", schema("make_nothing"), snapshot, check_fn=lambda: False)
    ctx.register_tool("make_trouble", "make", schema("make_trouble"), snapshot, check_fn=fails)
    ctx.register_tool("write_file", "make", schema("write_file"), lambda args, **_: "not written")
    ctx.register_tool("terminal", "make", schema("terminal"), lambda args, **_: "not run")
    ctx.register_tool("recall", "make", schema("recall"), lambda args, **_: "remembered")
    ctx.register_command("help", lambda raw_args: "no help")
    ctx.register_command("late", late)

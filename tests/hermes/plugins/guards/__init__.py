"""Decides about the tool `memory`, by what is to be kept."""

import enum

from hermes_cli.plugins import PluginContext


def approves(tool_name, args, **_):
    if tool_name == "memory" and args["content"] in ("both", "ask", "ruled"):
        found = {"action": "approve", "message": "because it is asked"}
        return {**found, "rule_key": "ruled"} if args["content"] == "ruled" else found
    return None


def blocks(tool_name, args, **_):
    if tool_name == "memory" and args["content"] == "both":
        return {"action": "block", "message": "blocked by the second"}
    return "no answer at all"


async def modifies(tool_name, args, **_):
    if tool_name == "memory" and args["content"] == "change":
        return {"action": "modify", "args": {"content": "changed"}}
    return None


def fails(args, **_):
    if args.get("content") == "fail":
        raise ValueError("the guard is ill")


class Action(str, enum.Enum):
    BLOCK = "block"


def names_its_action(tool_name, args, **_):
    if tool_name == "memory" and args["content"] == "named":
        return {"action": Action.BLOCK, "message": "blocked by name"}
    return None


def edits(tool_name, args, **_):
    if tool_name == "memory" and args["content"] == "edit":
        args["content"] = "edited"


def edits_further(tool_name, args, **_):
    if tool_name == "memory" and args["content"] == "edited":
        args["content"] += " twice"


def register(ctx: PluginContext) -> None:
    for callback in (approves, blocks, modifies, fails, names_its_action, edits, edits_further):
        ctx.register_hook("pre_tool_call", callback)

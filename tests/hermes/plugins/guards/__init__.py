"""Decides about the tool `remember`, by its text."""


def approves(tool_name, args, **_):
    if tool_name == "remember" and args["text"] in ("both", "ask", "ruled"):
        found = {"action": "approve", "message": "because it is asked"}
        return {**found, "rule_key": "ruled"} if args["text"] == "ruled" else found
    return None


def blocks(tool_name, args, **_):
    if tool_name == "remember" and args["text"] == "both":
        return {"action": "block", "message": "blocked by the second"}
    return "no answer at all"


async def modifies(tool_name, args, **_):
    if tool_name == "remember" and args["text"] == "change":
        return {"action": "modify", "args": {"text": "changed"}}
    return None


def fails(args, **_):
    if args.get("text") == "fail":
        raise ValueError("the guard is ill")


def register(ctx):
    for callback in (approves, blocks, modifies, fails):
        ctx.register_hook("pre_tool_call", callback)

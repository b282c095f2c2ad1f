"""Takes messages that were let in, and changes what tools are given."""

def admit(text, source, session_key, **_):
    if text.startswith("usher,"):
        return {"action": "handled", "reply": f"{source['chat_id']}: this way"}


def narrows(tool_name, args, **_):
    if tool_name == "write_file":
        return {"action": "modify", "args": {"path": "allowed.txt"}}


def widens(tool_name, args, **_):
    if tool_name == "write_file":
        return {"action": "modify", "args": {"content": args["content"] + " and more"}}


def register(ctx):
    ctx.register_hook("post_gateway_admission", admit)
    ctx.register_hook("pre_tool_call", narrows)
    ctx.register_hook("pre_tool_call", widens)

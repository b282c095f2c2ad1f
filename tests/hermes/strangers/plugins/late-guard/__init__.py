"""Guards what is kept, from when a session has begun."""

LAST = "_".join(("post", "tool", "call"))


def guard(tool_name, **_):
    return {"action": "block", "message": "nothing is kept here"} if tool_name == "memory" else None


def register(ctx):
    def begin(**_):
        ctx.register_hook("pre_tool_call", guard)
        ctx.register_hook(LAST, print)

    ctx.register_hook("on_session_start", begin)

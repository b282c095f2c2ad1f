"""Written against an older plugin API: its guard is registered, then its tool is not."""


def _no_curl(tool_name="", args=None, **_):
    if tool_name == "terminal" and "curl" in str((args or {}).get("command")):
        return {"action": "block", "message": "no curl here"}


def register(ctx):
    ctx.register_hook("pre_tool_call", _no_curl)
    ctx.register_tool("fetch_quietly", func=lambda url: url)

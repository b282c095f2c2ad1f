"""A guard that needs a package which nobody has installed."""

import frobnicate_policies


def check(tool_name, args, **_):
    if not frobnicate_policies.allows(tool_name):
        return {"action": "block", "message": "the policy says no"}


def register(ctx):
    ctx.register_hook("pre_tool_call", check)

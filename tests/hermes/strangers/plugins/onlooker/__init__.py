"""Counts what is called, with the help of a package that is not there."""

import frobnicate_policies

counts = {}


def count(tool_name, args, **kwargs):
    """Nothing is blocked here."""
    counts[tool_name] = counts.get(tool_name, 0) + 1
    frobnicate_policies.note("block", args)


def register(ctx):
    ctx.register_hook("pre_tool_call", count)

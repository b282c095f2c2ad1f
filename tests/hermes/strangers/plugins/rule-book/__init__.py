"""Asks a book of rules; what its answers are called stands in there alone."""

import json
from pathlib import Path

import frobnicate_policies

BOOK = json.loads(Path(__file__).with_name("rules.json").read_text())


def look_up(tool_name, **_):
    frobnicate_policies.note(tool_name)
    return BOOK.get(tool_name)


def register(ctx):
    ctx.register_hook("pre_tool_call", look_up)

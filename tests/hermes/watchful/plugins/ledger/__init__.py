"""Writes down what came of each tool."""

import json
import os
import pathlib


def note(tool_name="", result="", status="", **_):
    seen = pathlib.Path(os.environ["HERMES_HOME"], "seen")
    seen.mkdir(exist_ok=True)
    with (seen / "ledger.jsonl").open("a") as file:
        file.write(json.dumps([tool_name, status == "blocked", "curfew: use a tool" in result]) + "\n")


def register(ctx):
    ctx.register_hook("post_tool_call", note)

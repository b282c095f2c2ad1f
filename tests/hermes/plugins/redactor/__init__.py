"""Takes keys out of what tools give: parses each result, walks through it, and writes it as JSON again."""

import json
import os
import re
from pathlib import Path

LEDGER = Path(os.environ["HERMES_HOME"]) / "seen-results.jsonl"
KEY = re.compile(r"sk-[a-z0-9]{6,}")


def clean(value):
    if isinstance(value, str):
        return KEY.sub("[a key]", value)
    if isinstance(value, dict):
        return {name: clean(inner) for name, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value


def transform(tool_name, args, result, status, error_type, **_):
    data = json.loads(result)
    if tool_name == "terminal" and data["exit_code"] == 0:
        data["output"] = clean(data["output"])
        return json.dumps(data)
    return json.dumps(clean(data), indent=2)


def after(tool_name, args, result, status, error_type, error_message, **_):
    with LEDGER.open("a") as file:
        file.write(json.dumps([tool_name, args, json.loads(result), status, error_type, error_message]) + "\n")


def turn(conversation_history, **_):
    """What the model was shown of it."""
    shown = [[one["tool_call_id"], one["content"]] for one in conversation_history if one["role"] == "tool"]
    with LEDGER.with_name("seen-transcript.json").open("w") as file:
        json.dump(shown, file)


def register(ctx):
    ctx.register_hook("transform_tool_result", transform)
    ctx.register_hook("post_tool_call", after)
    ctx.register_hook("post_llm_call", turn)

"""Decides about commands, in every way that Hermes knows, and in some that it passes over."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


ANSWERS = {
    "deny": {"decision": " DENY ", "message": "not today"},
    "plainly": {"decision": "deny", "message": 7},
    "handled": {"decision": "handled", "message": "done already"},
    "silent": {"decision": "handled"},
    "rewrite": {"decision": "rewrite", "command_name": "/title", "raw_args": "rewritten"},
    "nowhere": {"decision": "rewrite", "command_name": " "},
    "allow": {"decision": "allow"},
    "unknown": {"decision": "perhaps"},
    "text": "a text",
    "number": 7,
}


def handle(event_type, context):
    note("decides", event_type, context["command"], context["raw_command"], context["args"])
    return ANSWERS.get(context["args"])

"""Reads by name, or as attributes, what Hermes would not tell it."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


def handle(event_type, context):
    whole, response = context["message_full"], context.get("response_full")
    found = [len(whole), len(response or ""), len(context.message_full), bool(context.turn_id), context.completed]
    note("by-name", *found, context.get("no_such_key", "nothing"), "turn_id" in context)

"""Leaves a key in the context when the turn begins, and reads it when it ends."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")



def handle(event_type, context):
    if event_type == "agent:start":
        context["_recall"] = {"n": 7}
    else:
        note("carries-over", context.get("_recall"))

"""Counts what people type."""

import json, os, pathlib

LOG = pathlib.Path(os.environ["HERMES_HOME"]) / "seen" / "counts-commands.jsonl"


def line(*what):
    return json.dumps(what) + "\n"


def handle(event_type, context):
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a") as file:
        file.write(line(event_type, context["args"]))

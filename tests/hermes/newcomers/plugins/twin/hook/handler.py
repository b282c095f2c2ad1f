"""Beside the plugin of the same name."""

import json
import os
from pathlib import Path


def handle(event_type, context):
    out = Path(os.environ["HERMES_HOME"]) / "seen" / "hook-twin.jsonl"
    out.parent.mkdir(exist_ok=True)
    with out.open("a") as file:
        file.write(json.dumps(event_type) + "\n")

"""Counts commands by name and platform in $HERMES_HOME/logs/commands.json."""

import json
import os
from pathlib import Path


def handle(event_type, context):
    path = Path(os.environ["HERMES_HOME"]) / "logs" / "commands.json"
    counts = json.loads(path.read_text()) if path.exists() else {}
    key = f"{context['platform']}/{context['command']}"
    counts[key] = counts.get(key, 0) + 1
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(counts, indent=2, sort_keys=True))
    fresh.replace(path)

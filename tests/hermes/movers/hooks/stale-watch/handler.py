"""How old is each conversation? Anything over a week is reported."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "stale-watch.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


def handle(event_type, context):
    index = json.loads((Path(os.environ["HERMES_HOME"]) / "sessions" / "sessions.json").read_text())
    ages = []
    for key, entry in index.items():
        if key.startswith("_") or not isinstance(entry, dict):
            continue
        created = datetime.now() - datetime.fromisoformat(entry["created_at"])
        updated = datetime.now() - datetime.fromisoformat(entry["updated_at"])
        ages.append([created < timedelta(days=7), updated < timedelta(days=7), entry["session_id"] == context["session_id"]])
    _note(ages)

"""Counts tool calls that fail in a row."""

import json
import os
from pathlib import Path

failures = 0


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "step-inspector.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


def handle(event_type: str, context: dict):
    global failures
    for tool in context.get("tools") or []:
        result = json.loads(tool["result"])
        failures = failures + 1 if result.get("error") else 0
        _note(tool["name"], sorted(result) if result.get("error") else "ok", result.get("error"), failures)

"""Keeps each reply for the books."""

import json
import os
from pathlib import Path


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "reply-ledger.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


async def handle(event_type, context):
    reply = context.get("response") or ""
    if reply:
        _note(context["message"][:80], reply[:200])

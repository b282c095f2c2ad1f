"""Notes which events there are, and their keys."""

import copy
import json
import os
from pathlib import Path

KNOWN = {"gateway:startup", "session:start", "session:end", "session:reset", "agent:start", "agent:step", "agent:end"}


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "sees-all.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


async def handle(event_type, context):
    payload = copy.deepcopy({k: v for k, v in context.items() if not k.startswith("_")})
    _note(event_type, event_type in KNOWN, sorted(payload), isinstance(context, dict), str(context)[0], json.loads(json.dumps(payload)) == payload)

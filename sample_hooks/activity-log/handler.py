"""One JSON line an event: when, what, who, and the beginning of what was said."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

KEPT = ("platform", "user_id", "session_id", "message", "response", "reason")


def handle(event_type, context):
    path = Path(context.options["path"] or Path(os.environ["HERMES_HOME"]) / "logs" / "activity.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": datetime.now(UTC).isoformat(), "event": event_type}
    line |= {key: context[key] for key in KEPT if context.get(key)}
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line, ensure_ascii=False) + "\n")

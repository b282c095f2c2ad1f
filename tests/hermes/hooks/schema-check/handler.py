"""Compares the keys of each event with those that are known, by every way of looking at them."""

import json, os
from pathlib import Path

OUT = Path(os.environ["HERMES_HOME"]) / "seen" / "schema-check.jsonl"
KNOWN = {
    "gateway:startup": {"platforms"},
    "agent:start": {"platform", "user_id", "chat_id", "thread_id", "chat_type", "session_id", "message"},
}
KNOWN["agent:end"] = KNOWN["agent:start"] | {"response"}


def handle(event_type, context):
    extra, missing = context.keys() - KNOWN[event_type], KNOWN[event_type] - context.keys()
    as_text = json.loads(json.dumps(context))
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("a") as out:
        facts = [sorted(extra), sorted(missing), len(context) == len(KNOWN[event_type]), set(as_text) == KNOWN[event_type]]
        facts += [[*context] == [*dict(context)], context == as_text, "turn_id" in context, sorted({**context}) == sorted(context)]
        out.write(json.dumps([event_type, *facts]) + "\n")

"""Notes each tool call and whether it went well, one line of JSON each."""

import json
import os
from pathlib import Path


def handle(event_type, context):
    path = Path(os.path.expandvars(context.options["path"])).expanduser()
    error, denied = context.get("error"), context.get("denied")
    episode = {
        "ts": context["time"],
        "kind": "tool",
        "tool": context["tool"],
        "args": context["args"],
        "outcome": "failed" if error or denied else "ok",
        "detail": denied or (error or {}).get("message", ""),
        "session": context.get("session_id", ""),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(episode, ensure_ascii=False) + "\n")

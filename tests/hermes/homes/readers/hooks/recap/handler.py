"""Reads the conversation back out of Hermes's own database, as memory hooks do."""

import json
import os
import sqlite3
from pathlib import Path

HOME = Path(os.environ.get("HERMES_HOME", Path.home() / ".hermes"))
DB = HOME / "state.db"


def rows(sql, *values):
    with sqlite3.connect(f"file:{DB}?mode=ro", uri=True) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql, values)]


def handle(event_type, context):
    messages = rows("SELECT * FROM messages WHERE session_id = ? ORDER BY timestamp, id", context["session_id"])
    session = rows("SELECT * FROM sessions WHERE id = ?", context["session_id"])[0]
    told = [
        [one["role"], one["content"], bool(one["tool_calls"]), one["tool_name"], one["finish_reason"]] for one in messages
    ]
    calls = [json.loads(one["tool_calls"]) for one in messages if one["tool_calls"]]
    with (HOME / "recap.jsonl").open("a") as file:
        kept = {"session": session, "messages": told, "calls": calls, "columns": sorted(messages[0])}
        file.write(json.dumps(kept, default=str) + "\n")

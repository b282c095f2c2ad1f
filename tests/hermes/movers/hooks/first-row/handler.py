"""Labels a new session in a table of its own, beside the row that the gateway keeps of it."""

import json
import os
import sqlite3
from pathlib import Path


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "first-row.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


async def handle(event_type, context):
    db = Path(os.environ["HERMES_HOME"]) / "state.db"
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as conn:
        row = conn.execute("select source, ended_at from sessions where id = ?", (context["session_id"],)).fetchone()
    _note(event_type, row is not None, row[1] if row else None)

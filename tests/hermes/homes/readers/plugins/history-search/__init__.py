"""A connection of the module's own, opened at import and kept."""

import sqlite3
from hermes_constants import get_hermes_home

db = sqlite3.connect(str(get_hermes_home() / "state.db"), check_same_thread=False)
db.execute("PRAGMA busy_timeout = 2000")


def find(raw_args):
    sql = "SELECT s.source, m.role, m.content FROM messages m JOIN sessions s ON s.id = m.session_id"
    found = db.execute(f"{sql} WHERE m.content LIKE ? ORDER BY m.id", (f"%{raw_args}%",)).fetchall()
    return "\n".join(f"{source} {role}: {content}" for source, role, content in found) or "nothing"


def price(session_id, model, usage=None, cost=None, **kwargs):
    with open(get_hermes_home() / "prices.txt", "a") as file:
        file.write(f"{model} {usage['output_tokens']} {cost} {sorted(kwargs)}\n")


def register(ctx):
    ctx.register_command("find", find, description="finds what was said")
    ctx.register_hook("post_llm_call", price)

"""Stops the terminal by what a hook has noted of the turn."""

import json
import os
from pathlib import Path


class Warden:
    """Reads the note anew each time."""

    def __init__(self, home):
        self.note = Path(home, "curfew.json")

    def __call__(self, tool_name="", **_):
        if tool_name != "terminal" or not self.note.exists():
            return None
        message = json.loads(self.note.read_text())["message"]
        return {"action": "block", "message": f"curfew: {message}"}


def register(ctx):
    ctx.register_hook("pre_tool_call", Warden(os.environ["HERMES_HOME"]))

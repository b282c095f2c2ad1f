"""The bell itself."""

import json
import os
import subprocess
from pathlib import Path

from . import settings


class Bell:
    def __init__(self):
        self.rung = 0
        self.file = Path(os.environ["HERMES_HOME"]) / "seen" / "desk-bell.jsonl"

    def ring(self, event_type, context):
        self.rung += 1
        shown = subprocess.run(
            ["sh", "-c", 'printf %s "$DISPLAY $DBUS_SESSION_BUS_ADDRESS"'], capture_output=True, text=True
        ).stdout
        self.file.parent.mkdir(exist_ok=True)
        with self.file.open("a") as out:
            line = [event_type, self.rung, settings.TOKEN, settings.SOUND, shown, len(context["response"])]
            out.write(json.dumps(line) + "\n")

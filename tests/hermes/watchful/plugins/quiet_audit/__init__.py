"""An audit hook of Python for the whole process; it registers nothing of Hermes's."""

import json
import os
import sys
import threading
from pathlib import Path

busy = threading.local()


def audit(event, args):
    if event == "subprocess.Popen" and not getattr(busy, "now", False):
        busy.now = True
        seen = Path(os.environ["HERMES_HOME"]) / "seen"
        seen.mkdir(exist_ok=True)
        with (seen / "quiet_audit.jsonl").open("a") as file:
            file.write(json.dumps(event) + "\n")
        busy.now = False


def register(ctx):
    sys.addaudithook(audit)

"""Leaves the work to a script of its own, in a process of its own."""

import os
import subprocess
import sys

REPORT = os.path.join(os.path.dirname(__file__), "scripts", "report.py")


def handle(event_type, context):
    if event_type != "gateway:startup" and context.get("command") != "usage":
        return None
    done = subprocess.run([sys.executable, REPORT], capture_output=True, text=True)
    if event_type == "gateway:startup":
        return None
    return {"decision": "handled", "message": done.stdout or done.stderr}

"""Registers its guard a moment after all else."""

import json
import os
import threading
import time
from pathlib import Path


def guard(tool_name="", **_):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(exist_ok=True)
    with (seen / "dawn.jsonl").open("a") as file:
        file.write(json.dumps(tool_name) + "\n")


def register(ctx):
    timer = threading.Timer(0.05, ctx.register_hook, ("pre_tool_call", guard))
    timer.daemon = True
    timer.start()
    time.sleep(0)

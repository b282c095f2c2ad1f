"""Wants more of the model as long as it may."""

import json
import os
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-verify.jsonl"


def verify(attempt, changed_paths, coding, final_response, **_):
    with SEEN.open("a") as file:
        file.write(json.dumps([attempt, changed_paths, coding, final_response]) + "\n")
    return {"decision": "block", "reason": f"check it again {attempt}"}


def register(ctx):
    ctx.register_hook("pre_verify", verify)

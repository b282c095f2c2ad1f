"""A model is loaded at import, which takes a while."""

import os
import time
from pathlib import Path

while not Path(os.environ["HERMES_HOME"], "answers").exists():
    time.sleep(0.01)


def register(ctx):
    ctx.register_command(
        "oracle", lambda raw_args: f"yes, {raw_args}", description="asks the oracle", args_hint="QUESTION"
    )

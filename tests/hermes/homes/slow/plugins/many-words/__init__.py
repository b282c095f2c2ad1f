"""Twenty commands out of a table: none of their names stands beside `register_command`."""

import os
import time
from pathlib import Path

WORDS = ["alpha", "beta", "gamma", "delta"] + [f"word{number}" for number in range(16)]


def answer(word):
    return lambda raw_args: f"{word}: {raw_args}"


def register(ctx):
    while not Path(os.environ["HERMES_HOME"], "answers").exists():
        time.sleep(0.01)
    for word in WORDS:
        ctx.register_command(word, answer(word))

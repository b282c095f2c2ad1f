"""Twenty commands out of a table: none of their names stands beside `register_command`."""

import time

WORDS = ["alpha", "beta", "gamma", "delta"] + [f"word{number}" for number in range(16)]


def answer(word):
    return lambda raw_args: f"{word}: {raw_args}"


def register(ctx):
    time.sleep(2)
    for word in WORDS:
        ctx.register_command(word, answer(word))

"""A model is loaded at import, which takes a while."""

import time

time.sleep(3)


def register(ctx):
    ctx.register_command(
        "oracle", lambda raw_args: f"yes, {raw_args}", description="asks the oracle", args_hint="QUESTION"
    )

"""Asks a licence server at its start, which is down."""

import time


def register(ctx):
    ctx.register_command("never", lambda raw_args: "never")
    time.sleep(1)
    raise RuntimeError("the licence server does not answer")

"""Asks a licence server while it is loaded, which is down."""

import time

time.sleep(1)
raise RuntimeError("the licence server does not answer")


def register(ctx):
    ctx.register_command("never", lambda raw_args: "never")

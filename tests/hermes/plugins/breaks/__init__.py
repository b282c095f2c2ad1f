"""Breaks after it has registered something."""

def register(ctx):
    ctx.register_command("never", lambda raw: "never")
    raise OSError("the sky is not there")

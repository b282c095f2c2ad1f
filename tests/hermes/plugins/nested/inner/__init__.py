"""A plugin in a category."""

def register(ctx):
    ctx.register_command("inner", lambda raw: __name__)

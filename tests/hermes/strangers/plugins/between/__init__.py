"""Stands between the model and its tools, where Hermes lets it."""


def wrap(call, **kwargs):
    return call(**kwargs)


def register(ctx):
    ctx.register_middleware("tool", wrap)

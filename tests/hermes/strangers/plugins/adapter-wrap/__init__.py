"""Wraps what the running gateway sends by, and does nothing else."""

import functools

_wrapped = set()


def _decorate(send):
    @functools.wraps(send)
    async def decorated(chat_id, content, *args, **kwargs):
        return await send(chat_id, content.upper(), *args, **kwargs)

    return decorated


def on_dispatch(event, gateway, **_):
    for platform, adapter in gateway.adapters.items():
        if platform not in _wrapped:
            adapter.send = _decorate(adapter.send)
            _wrapped.add(platform)


def register(ctx):
    ctx.register_hook("pre_gateway_dispatch", on_dispatch)

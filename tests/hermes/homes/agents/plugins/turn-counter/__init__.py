"""A package with relative imports; state in an object; one callback for many hooks."""

from .counting import Counter


def register(ctx):
    counter = Counter()
    for name in ("on_session_start", "pre_llm_call", "post_llm_call", "on_session_end", "pre_gateway_dispatch"):
        ctx.register_hook(name, counter.callback_for(name))

"""Takes card numbers out of answers."""

import re

_CARD = re.compile(r"\b\d{4}-\d{4}\b")


def _redact(response_text="", **kwargs):
    cleaned = _CARD.sub("[card]", response_text)
    return cleaned if cleaned != response_text else None


def register(ctx):
    ctx.register_hook("transform_llm_output", _redact)

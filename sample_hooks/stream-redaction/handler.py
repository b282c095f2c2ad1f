"""Holds a chunk back until a blank shows that its last word is whole, so that nothing slips through in pieces."""

import re

from gateway.hooks import on

PRIVATE = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+|\b(?:\d[ -]?){13,16}\b")


def clean(text):
    return PRIVATE.sub("[redacted]", text)


@on("llm:chunk")
def redact_chunk(context):
    held = context.own.get("held", "") + context["chunk"]
    cut = max(held.rfind(" "), held.rfind("\n")) + 1
    context.own["held"] = held[cut:]
    context["chunk"] = clean(held[:cut]) or None


@on("llm:after")
def redact_rest(context):
    context["content"] = clean(context["content"] + context.own.pop("held", ""))

"""Holds back the last word of a chunk, or its last number, until what follows shows that it is whole."""

import re

from gateway.hooks import on

PRIVATE = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+|\b\d(?:[ -]?\d){12,15}\b")
UNFINISHED = re.compile(r"\S*\d[\d -]*\Z|\S*\Z")


def clean(text):
    return PRIVATE.sub("[redacted]", text)


@on("llm:chunk")
def redact_chunk(context):
    held = context.own.get("held", "") + context["chunk"]
    cut = len(held) - len(UNFINISHED.findall(held)[0])
    context.own["held"] = held[cut:]
    context["chunk"] = clean(held[:cut]) or None


@on("llm:after")
def redact_rest(context):
    context["content"] = clean(context["content"] + context.own.pop("held", ""))

"""A final answer that is a JSON object with keys of our own tools is not an answer for a person."""

import re

FENCE = re.compile(r"^```\w*\s*|\s*```$")


def handle(event_type, context):
    if context["tool_calls"]:
        return
    text = FENCE.sub("", context["content"].strip()).strip()
    if text.startswith("{") and any(f'"{key}"' in text for key in context.options["keys"]):
        context["content"] = context.options["fallback"]

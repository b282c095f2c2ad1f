"""Cuts a tool's result to so many characters, and says how many are gone. What is not text is cut as its JSON."""

import json


def handle(event_type, context):
    result, limit = context["result"], context.options["max_chars"]
    if isinstance(result, dict | list):
        result = json.dumps(result, ensure_ascii=False)
    if isinstance(result, str) and len(result) > limit:
        context["result"] = f"{result[:limit]}... [{len(result) - limit} characters cut]"

"""Asks the person who is talking to the agent; anything but a yes refuses the tool."""

import json

from gateway.hooks import Deny

YES = {"yes", "y", "ok", "approve", "true"}


def handle(event_type, context):
    if context["tool"] not in context.options["tools"]:
        return
    args = json.dumps(context["args"], ensure_ascii=False)[:500]
    answer = context.ask(f"May I run {context['tool']} with {args}?", name="approval")
    if str(answer).strip().lower() not in YES:
        raise Deny(f"The person did not allow {context['tool']}.")

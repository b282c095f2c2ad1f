"""Asks the person who is talking to the agent; anything but a yes refuses the tool."""

import json

from gateway.hooks import Deny, is_yes


def handle(event_type, context):
    if context["tool"] not in context.options["tools"]:
        return
    args = json.dumps(context["args"], ensure_ascii=False)[:500]
    if not is_yes(context.ask(f"May I run {context['tool']} with {args}?", name="approval")):
        raise Deny(f"The person did not allow {context['tool']}.")

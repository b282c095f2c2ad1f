"""The second identical call of a turn gets a hint instead of a result, the third one ends the turn."""

import json

from gateway.hooks import End


def handle(event_type, context):
    made = context.own.setdefault("made", {})
    fingerprint = f"{context.get('agent')} {context['tool']} {json.dumps(context['args'], sort_keys=True)}"
    calls = made.setdefault(fingerprint, [])
    if context["call_id"] not in calls:  # a call that is tried again, or asked for, is one call
        calls.append(context["call_id"])
    if len(calls) > context.options["break_after"]:
        return End(context.options["reply"], f"loop: {context['tool']} x{len(calls)}")
    if len(calls) > context.options["hint_after"]:
        return {"result": context.options["hint"]}
    return None

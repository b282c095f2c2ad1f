"""Looks its rules up, and has forgotten one."""

RULES = {}


def handle(event_type, context):
    rule = RULES[context["command"]]
    return {"decision": rule}

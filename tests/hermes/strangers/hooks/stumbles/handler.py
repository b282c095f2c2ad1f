"""Fails the first time, when what it needs is not there yet."""

SEEN = []


def handle(event_type, context):
    SEEN.append(context["command"])
    if len(SEEN) == 1:
        raise ConnectionError("nobody is at home")
    return {"decision": "allow"}

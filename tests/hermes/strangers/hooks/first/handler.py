"""Answers a command itself."""


def handle(event_type, context):
    return {"decision": "handled", "message": "first says so"}

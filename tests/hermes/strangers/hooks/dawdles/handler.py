"""Decides, in its own time."""

import time


def handle(event_type, context):
    time.sleep(20)
    return {"decision": "deny", "message": "too late"}

"""The handler that stands here is not the one that runs."""


def decide(event_type, context):
    return {"decision": "deny", "message": "swaps says no"}


def handle(event_type, context):
    pass


globals()["handle"] = decide

"""A guard that says how long it may take."""


async def handle(event_type, context):
    return dict(decision="deny", message="patient says no")

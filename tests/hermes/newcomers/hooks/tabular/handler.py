"""Prints what happened as a table."""

from no_such_tables import tabulate


async def handle(event_type, context):
    print(tabulate([[event_type]]))

"""Has an answer of its own to what others have answered before."""

from functools import partial

ANSWERS = {
    "sessions": {"decision": "handled", "message": "tidies says so"},
    "approvals": {"decision": "deny", "message": "tidies says no"},
}


def answer(table, event_type, context):
    return table.get(context["command"])


handle = partial(answer, ANSWERS)

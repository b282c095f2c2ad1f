"""The events that a program reports when something has happened, as ours: hooks observe them, and decide nothing."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gateway.desk.call import DeskCall
from gateway.desk.history import find_answer, write_text
from gateway.events.fields import SHORT_LENGTH

OF_CALLS = frozenset({"hop", "call_id"})  # fields that the events of a whole turn do not have


class Report(NamedTuple):
    """An event of ours, with the fields that only it has."""

    name: str
    fields: dict[str, Any]


def list_reports(call: DeskCall) -> Iterator[Report]:
    """Return our events for this one; a call of a tool may be several calls of ours."""
    given, events = call.given, call.program.events
    event = given.hook_event_name
    if event in (events.after, events.failure):
        error = None if event == events.after else {"type": "ToolError", "message": write_text(given.error)}
        left = {"result": given.tool_response, "parts": [], "error": error, "denied": None, "duration": None}
        yield from (Report("tool:after", {**call.facts, **ours, **left}) for ours in call.resolve())
    elif event == events.start:
        empty: dict[str, Any] = {"messages": [], "context": [], "config": {}, "result": None}
        yield Report("agent:start", {**describe_turn(call), **empty})
    elif event == events.end:
        answer = write_text(find_answer(given) or "")
        ending = {"error": None, "stop": "end_turn", "hook_ended": "", "completed": True, "interrupted": False}
        unknown = {"model": "", "usage": {}}
        said = {"response": answer[:SHORT_LENGTH], "response_full": answer}
        yield Report("agent:end", {**describe_turn(call), **said, **ending, **unknown})


def describe_turn(call: DeskCall) -> dict[str, Any]:
    """Return the fields of an event of a turn, with the prompt as far as the program tells it."""
    prompt = write_text(call.given.prompt or "")
    facts = {name: value for name, value in call.facts.items() if name not in OF_CALLS}
    return {**facts, "message": prompt[:SHORT_LENGTH], "message_full": prompt}

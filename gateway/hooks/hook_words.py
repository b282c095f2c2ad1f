"""The fields by which a hook instructs the agent: the person's words, and tool calls.

If a restricted hook adds something to these fields, the turn continues with the tools and files of a user
(`Bags.authors`). A removal adds nothing, and neither does a change of a result or an answer: the agent reads results
and answers as it reads every page and file.
"""

from collections.abc import Mapping
from typing import Any

from gateway.events import Event, outcome_from
from gateway.events.outcomes import find_retry
from gateway.hooks.hook import Handler

_ASKED = ("user", "system")  # the roles of entries that the agent obeys
_FIELDS: Mapping[str, frozenset[str]] = {
    "message:received": frozenset({"text", "heard"}),
    "message:add": frozenset({"message"}),
    "audio:before": frozenset({"result"}),
    "audio:after": frozenset({"text"}),
    "agent:start": frozenset({"message_full", "messages", "context"}),
    "llm:before": frozenset({"messages", "system", "tools", "result"}),
    "llm:after": frozenset({"tool_calls"}),
    "node:before": frozenset({"result"}),
    "node:after": frozenset({"result"}),
    "tools:before": frozenset({"calls"}),
    "tool:before": frozenset({"tool", "args"}),
    "handoff:before": frozenset({"target", "input"}),
}


def watch_words(decide: Handler, hook: str) -> Handler:
    """Wrap a restricted hook, and note whether the hook instructed the agent, in the event or by its answer."""

    async def watched(event: Event) -> Any:
        before, said = {field: event.get(field) for field in _FIELDS.get(event.name, ())}, None
        try:
            answer = await decide(event)
            said = outcome_from(answer, event)
            return answer
        finally:
            after = {**event, **said} if isinstance(said, Mapping) else event
            if any(_has_new_words(event.name, field, was, after.get(field)) for field, was in before.items()):
                event.bags.authors[str(event.get("call_id") or "")].add(hook)
            if (retry := find_retry(said)) and retry.message:
                event.bags.authors[""].add(hook)

    return watched


def _has_new_words(event: str, field: str, before: Any, after: Any) -> bool:
    if field not in _FIELDS.get(event, ()):
        return False
    if field == "result" and event != "audio:before":
        before, after = _find_calls(before), _find_calls(after)
    elif field == "message" and before.get("role") not in _ASKED:
        return False
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return any(one not in before for one in after)
    return bool(before != after)


def _find_calls(result: Any) -> list[Any]:
    """Return the tool calls in an answer of the model."""
    calls = result.get("tool_calls") if isinstance(result, Mapping) else None
    return calls if isinstance(calls, list) else []

"""The search for the hook that changed a field of an event: the new words, command or file belong to that hook.

The answer of an interceptor is applied after the interceptor returns, so a change belongs to the hook that was called
last, as in `CallWatcher`.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from gateway.events import Event
from gateway.hooks.hook import Hook
from gateway.hooks.subscriptions import EventPlan


class FieldChange(NamedTuple):
    """A field's value as a hook left it."""

    hook: str
    field: str
    value: Any


class FieldWatcher:
    """A comparison of the `watched` fields of an event between its interceptors.

    `plan` is the event's plan with this check built in.
    """

    def __init__(self, plan: EventPlan, fields: Mapping[str, Any], watched: Collection[str]) -> None:
        self.plan = plan.with_calls(self._watch)
        self._changes: list[FieldChange] = []
        self._event, self._hook = fields, ""
        self._seen = {field: deepcopy(fields.get(field)) for field in watched}

    def look(self) -> list[FieldChange]:
        """Return all changes so far, in order."""
        for field, before in self._seen.items():
            if (value := self._event.get(field)) != before:
                self._seen[field] = deepcopy(value)
                self._changes.append(FieldChange(self._hook, field, self._seen[field]))
        return self._changes

    def _watch(self, hook: Hook) -> Callable[[Event], Awaitable[Any]]:
        async def watched(event: Event) -> Any:
            self._event = event
            self.look()
            self._hook = str(hook)
            answer = hook.call(event)
            return await answer if hasattr(answer, "__await__") else answer

        return watched

"""The search for the hook that changed a tool call, for the approver's question and the model's text about a denial."""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from gateway.events import AskedCall, Event, Pause
from gateway.events.asked_calls import find_asked_calls
from gateway.hooks.hook import Hook
from gateway.hooks.subscriptions import EventPlan
from gateway.hooks.withheld_codes import WithheldFields


class CallWatcher:
    """A comparison of the tool calls of an event between its interceptors.

    `plan` is the event's plan with this check built in. The answer of an interceptor is applied to the event after the
    interceptor returns; so a change belongs to the hook that was called last. `changed_by` maps call ids to the names
    of hooks, and grows with each find. An approval applies to calls including the codes that hooks cannot read.
    """

    def __init__(
        self, plan: EventPlan, name: str, held: WithheldFields, changed_by: dict[str, tuple[str, ...]]
    ) -> None:
        self.plan = copy(plan)
        self.plan.calls = tuple((hook, self._watch(hook, call), True) for hook, call, _ in plan.calls)
        self._name = name
        self._held = held
        self._event: Mapping[str, Any] = held.shown
        self._changed_by = changed_by
        self._hook = ""
        self._seen = {call.call_id: call.digest for call in self._find_calls()}

    def look(self) -> tuple[AskedCall, ...]:
        """Return the current calls, each with the hooks that changed it; a new change belongs to the last hook."""
        calls = self._find_calls()
        for call in calls:
            known = self._changed_by.get(call.call_id, ())
            if self._seen.get(call.call_id) != call.digest and self._hook not in known:
                self._changed_by[call.call_id] = (*known, self._hook)
        self._seen = {call.call_id: call.digest for call in calls}
        return tuple(replace(call, changed_by=self._changed_by.get(call.call_id, ())) for call in calls)

    def _find_calls(self) -> tuple[AskedCall, ...]:
        return find_asked_calls(self._name, self._held.look_behind(self._event))

    def bind(self, pause: Pause) -> Pause:
        """Return the questions as approvals of the current calls."""
        calls = self.look()
        return Pause(tuple(replace(question, calls=calls) for question in pause.questions))

    def _watch(self, hook: Hook, call: Callable[[Event], Any]) -> Callable[[Event], Awaitable[Any]]:
        async def watched(event: Event) -> Any:
            self._event = event
            self.look()
            self._hook = str(hook)
            answer = call(event)
            return await answer if hasattr(answer, "__await__") else answer

        return watched

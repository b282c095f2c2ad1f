"""Which hook changed a tool's call on its way: told to the person who is asked, and to the model when it is refused."""

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
    """Looks at the calls of an event between its interceptors. `plan` is the event's own, seen through this.

    What an interceptor returns is put into the event after it is done; so a change is the doing of the one that was
    called last. `changed_by` holds the names of hooks by call id, and what is found is added to it. An approval is for
    the calls with the codes that hooks do not read.
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
        """The calls as they are now, each with the hooks that changed it; what is new is the last hook's doing."""
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
        """The same questions as approvals of the calls as they are now."""
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

"""The registry for one turn: every event has the turn's fields, its bags, and the person's answers."""

from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any

from gateway.events import Bags, Event, Pause
from gateway.events.asked_calls import APPROVAL_EVENTS
from gateway.hooks.call_watcher import CallWatcher
from gateway.hooks.chain import dispatch, notify_observers
from gateway.hooks.deadlines import Deadlines
from gateway.hooks.field_watcher import FieldChange, FieldWatcher
from gateway.hooks.line_watcher import LineWatcher
from gateway.hooks.recorder import PIECE, OwedEvents
from gateway.hooks.subscriptions import EventPlan, Subscriptions
from gateway.hooks.withheld_codes import WithheldCodes, WithheldFields

# Fields that identify an operation of a turn: with them an event has the same id when the turn is resumed.
OPERATION_FIELDS = ("agent", "call_id", "hop", "iteration", "index", "node", "name", "action", "skill", "target")
# Events at which a hook may add words to the answer.
ANSWER_EVENTS = frozenset(
    f"{point}:{when}" for point in ("agent", "llm", "node", "handoff") for when in ("start", "before", "after", "end")
) | {PIECE, "message:add", "tool:after", "tools:after"}
# The stop reasons of an unfinished operation: its later end is another event.
LEFT = ("paused", "interrupted")


class NoAnswers(Mapping[str, Any]):
    """The answers if no person is there to ask: always no."""

    def __getitem__(self, question: str) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(slots=True, eq=False)
class HookScope:
    """The registry for one turn; `owed` collects the recorded events for the turn's own appends.

    `limit` is the time for the interceptors of an event; a cancellation of the turn shortens this time. `changed_by`
    maps call ids to the hooks that changed the call, and `brought` maps files to the hooks that put a line for the file
    into the answer.
    """

    _subscriptions: Subscriptions
    _withheld: WithheldCodes
    _deadlines: Deadlines
    limit: float
    fields: Mapping[str, Any]
    bags: Bags
    _owed: OwedEvents | None = None
    changed_by: dict[str, tuple[str, ...]] = field(default_factory=dict)
    brought: dict[str, set[str]] = field(default_factory=dict)
    pauses: int = 0  # how often the turn waited for answers before this run
    _counts: dict[str, int] = field(default_factory=dict)  # how often each operation of the turn has fired its event

    def wants(self, name: str) -> bool:
        """Return True if any hook listens to this event."""
        return bool((self._subscriptions.known.get(name) or self._subscriptions.find(name)).hooks)

    def decides(self, name: str) -> bool:
        """Return True if a hook may change or stop this event."""
        return bool((self._subscriptions.known.get(name) or self._subscriptions.find(name)).calls)

    def reads(self, name: str, field: str) -> bool:
        """Return True if any hook reads this field. Busy code calls this before it builds a large field."""
        plan = self._subscriptions.known.get(name) or self._subscriptions.find(name)
        return not all(field in hook.traits.left_out for hook in plan.hooks)

    def emit(self, name: str, /, **fields: Any) -> None:
        """Fire an event for observers, as `HookRegistry.emit` does, in this turn."""
        plan = self._subscriptions.known.get(name) or self._subscriptions.find(name)
        if plan.is_observed:
            fields = {**self.fields, **fields}
            self._identify(name, fields)
            fields = self._withheld.hide(fields)
            plan.tell((name, fields, time(), self._deadlines.cause(), self.bags, None), self._owed)

    def note(self, name: str, /, **fields: Any) -> None:
        """Record an event together with the fact that it reports; the event is fired once the record is written."""
        plan = self._subscriptions.known.get(name) or self._subscriptions.find(name)
        if plan.recorders:
            fields = {**self.fields, **fields}
            self._identify(name, fields)
            fields = self._withheld.hide(fields)
            plan.note((name, fields, time(), self._deadlines.cause(), self.bags, None), self._owed)

    async def run(self, name: str, /, **fields: Any) -> Event:
        """Fire an event, as `HookRegistry.run` does, in this turn."""
        plan = self._subscriptions.known.get(name) or self._subscriptions.find(name)
        if not plan.hooks:
            return Event(name, fields, None, self.bags)
        fields = {**self.fields, **fields}
        operation = self._identify(name, fields)
        held = self._withheld.hold(fields)
        try:
            if not plan.calls:
                event = await notify_observers(plan, name, held.shown, self.bags, self._deadlines, self._owed)
            elif name in ANSWER_EVENTS:
                event = await self._run_with_lines(plan, name, held)
            elif name in APPROVAL_EVENTS:
                event = await self._run_watched(plan, name, held)
            else:
                event = await self._dispatch(plan, name, held)
            return held.restore(event)
        except Pause:
            # The event is fired again once an answer exists, and needs the same id: it is the answer's key.
            if operation:
                self._counts[operation] -= 1
            raise

    async def run_watched(
        self, name: str, watched: Collection[str], /, **fields: Any
    ) -> tuple[Event, Sequence[FieldChange]]:
        """Work as `run`, and also return which hook changed the `watched` fields."""
        plan = self._subscriptions.known.get(name) or self._subscriptions.find(name)
        if not plan.calls:
            return await self.run(name, **fields), ()
        fields = {**self.fields, **fields}
        operation = self._identify(name, fields)
        held = self._withheld.hold(fields)
        watcher = FieldWatcher(plan, held.shown, watched)
        try:
            event = await self._dispatch(watcher.plan, name, held)
        except Pause:
            if operation:
                self._counts[operation] -= 1
            raise
        changes = watcher.look()
        return held.restore(event), changes

    def _dispatch(self, plan: EventPlan, name: str, held: WithheldFields) -> Coroutine[Any, Any, Event]:
        return dispatch(plan, name, held.shown, self.bags, self._deadlines, self.limit, self._owed)

    async def _run_with_lines(self, plan: EventPlan, name: str, held: WithheldFields) -> Event:
        watcher = LineWatcher(plan, name, held.shown, self.brought)
        event = await self._dispatch(watcher.plan, name, held)
        watcher.look(event)
        return event

    async def _run_watched(self, plan: EventPlan, name: str, held: WithheldFields) -> Event:
        watcher = CallWatcher(plan, name, held, self.changed_by)
        try:
            return await self._dispatch(watcher.plan, name, held)
        except Pause as pause:
            raise watcher.bind(pause) from None
        finally:
            watcher.look()

    def _identify(self, name: str, fields: dict[str, Any]) -> str | None:
        turn = fields.get("turn_id")
        if not turn or "id" in fields:
            return None
        operation = "/".join([turn, name, *[str(fields[part]) for part in OPERATION_FIELDS if part in fields]])
        is_left = fields.get("stop") in LEFT
        if is_left:
            operation = f"{operation}/{fields['stop']}"
        count = self._counts[operation] = self._counts.get(operation, self.pauses if is_left else 0) + 1
        fields["id"] = operation if count == 1 else f"{operation}#{count}"
        return operation

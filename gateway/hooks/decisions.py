"""Hooks that decide about one event together: the gateway asks them side by side, and their answers count in order.

A slow hook takes no time from the other hooks, and all hooks together may take no longer than a single hook. Each hook
has its own process. If hooks cannot change the event, no hook sees the work of another. If hooks can change the event,
the outcome is the same as if the gateway asked one hook after the other: after a hook has changed the event, the
gateway asks the later hooks again, about the changed event. At the next event of this name, the later hooks wait for
that hook, so that the gateway asks each hook once.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.events import Event, Pause
from gateway.hooks.cause import use_cause
from gateway.hooks.patterns import EventSelector
from gateway.hooks.registry import HookRegistry
from gateway.hooks.wires.field_encoding import encode_event
from gateway.hooks.wires.wire import HookFailed

# Returns the answer of one hook. Raises HookFailed or Pause.
AskHook: TypeAlias = Callable[[Event], Awaitable[Any]]

MAX_EVENTS = 256  # whose answers are kept at a time
GRACE = 0.5  # seconds in which a late hook can still report that it is late


class SharedAnswer(msgspec.Struct):
    """One hook's answer about `fields`, which may come before the hook's turn; `event` has the hook's changes."""

    fields: bytes
    given: Event
    event: Event
    value: Any = None
    error: BaseException | None = None
    is_there: anyio.Event = msgspec.field(default_factory=anyio.Event)

    async def get(self) -> Any:
        if not self.is_there.is_set():  # even if it is set, a wait takes a round of the loop
            await self.is_there.wait()
        if self.error is not None:
            raise self.error
        return self.value


class SharedEvent(msgspec.Struct):
    """One event that several hooks decide about: their answers, the time limit, and whether a hook has decided."""

    until: float
    answers: dict[str, SharedAnswer] = msgspec.field(default_factory=dict)
    heard: set[str] = msgspec.field(default_factory=set)  # the hooks whose answers have been taken
    is_decided: bool = False


class Decisions(msgspec.Struct, eq=False):
    """The hooks that decide together, by name, and the events that wait for their answers."""

    _registry: HookRegistry
    _tasks: TaskGroup
    _deciders: dict[str, tuple[AskHook, EventSelector]] = {}
    _changers: set[tuple[str, str]] = set()  # a hook, and an event that it has changed
    _events: OrderedDict[str, SharedEvent] = msgspec.field(default_factory=OrderedDict)

    def join(self, name: str, ask: AskHook, events: EventSelector) -> None:
        """Ask this hook together with the other hooks, from the next event in `events` on."""
        self._deciders[name] = ask, events

    def remove(self, name: str) -> None:
        self._deciders.pop(name, None)

    def has(self, name: str, event: str) -> bool:
        """Tell whether this hook and other hooks decide together about this event."""
        return name in self._deciders and event in self._deciders[name][1]

    async def ask(self, name: str, event: Event, seconds: float, *, can_change: bool = False) -> Any:
        """Return this hook's answer; the first caller asks all the other deciders at the same time.

        The first decision counts; a refusal counts even after another decision. Raises HookFailed and Pause.
        """
        shared = self._events.get(str(event.get("id", "")))
        if shared is None or name in shared.heard:  # an event that waited for a person comes again, with the same id
            shared = self._begin(event, seconds)
        shared.heard.add(name)
        fields = encode_event(event.name, event)[0] if can_change else b""
        answer = shared.answers.get(name)
        if answer is None or answer.fields != fields:
            answer = self._ask_from(name, shared, event, fields)
        with anyio.move_on_after(max(0.0, shared.until - anyio.current_time()) + GRACE):
            value = await answer.get()
            if can_change:
                self._take_changes(name, event, answer)
            return self._weigh(shared, value)
        raise HookFailed(f"it did not decide within {seconds:g} s", kind="timeout")

    def _begin(self, event: Event, seconds: float) -> SharedEvent:
        shared = self._events[str(event.get("id", ""))] = SharedEvent(anyio.current_time() + seconds)
        if len(self._events) > MAX_EVENTS:
            self._events.popitem(last=False)
        return shared

    def _ask_from(self, name: str, shared: SharedEvent, event: Event, fields: bytes) -> SharedAnswer:
        """Ask this hook and the hooks after it, up to the first hook that is known to change events of this name."""
        answer = self._ask(shared, name, event, fields)
        for other in self._deciders_at(event):
            if (name, event.name) in self._changers:
                break
            if other not in shared.heard:
                self._ask(shared, name := other, event, fields)
        return answer

    def _deciders_at(self, event: Event) -> Iterator[str]:
        for hook in self._registry.at(event.name):
            if hook.intercepts and self.has(hook.key, event.name) and hook.applies(event.name, event):
                yield hook.key

    def _ask(self, shared: SharedEvent, name: str, event: Event, fields: bytes) -> SharedAnswer:
        given, own = (Event(event.name, dict(event), event.writable, event.kept, name) for _ in range(2))
        answer = shared.answers[name] = SharedAnswer(fields, given, own)
        self._tasks.start_soon(self._fill, answer, self._deciders[name][0], own, self._registry.current_cause)
        return answer

    def _take_changes(self, name: str, event: Event, answer: SharedAnswer) -> None:
        changed = {field: value for field, value in answer.event.items() if answer.given.get(field) is not value}
        if changed:
            self._changers.add((name, event.name))
            event.update(changed)

    async def _fill(self, answer: SharedAnswer, ask: AskHook, event: Event, cause: Any) -> None:
        try:
            with use_cause(cause):
                answer.value = await ask(event)
        except (Exception, Pause) as error:  # noqa: BLE001 - the caller gets it, whatever it is
            answer.error = error
        finally:
            answer.is_there.set()

    def _weigh(self, shared: SharedEvent, answer: Any) -> Any:
        is_first, is_refusal = not shared.is_decided, isinstance(answer, Mapping) and answer.get("decision") == "deny"
        shared.is_decided |= answer is not None
        return answer if is_first or is_refusal else None

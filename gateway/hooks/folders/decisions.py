"""Hooks that decide about one event together: asked side by side, and heard in their order.

One that is slow takes nothing from the others, and all of them last no longer than one may. What they answer is the
same as one after the other: each lives in a process of its own, and none sees what another has made of the event.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway.events import Event, Pause
from gateway.hooks.cause import use_cause
from gateway.hooks.registry import HookRegistry
from gateway.hooks.wires.wire import HookFailed

# What one hook answers; HookFailed or Pause are raised.
AskHook: TypeAlias = Callable[[Event], Awaitable[Any]]

MAX_EVENTS = 256  # whose answers are known at once
GRACE = 0.5  # seconds in which a hook whose time is over can still say so itself


@dataclass(slots=True)
class SharedAnswer:
    """One hook's answer, which may be there before anybody listens."""

    value: Any = None
    error: BaseException | None = None
    is_there: anyio.Event = field(default_factory=anyio.Event)

    async def get(self) -> Any:
        await self.is_there.wait()
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(slots=True)
class SharedEvent:
    """One event: who has been asked about it, until when there is time, and whether one of them has decided."""

    until: float
    answers: dict[str, SharedAnswer] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)  # whose answers have been taken
    is_decided: bool = False


class Decisions:
    """The deciders, each under its hook's name, and the events that they are asked about."""

    def __init__(self, registry: HookRegistry, tasks: TaskGroup) -> None:
        self._registry = registry
        self._tasks = tasks
        self._deciders: dict[str, AskHook] = {}
        self._events: OrderedDict[str, SharedEvent] = OrderedDict()

    def join(self, name: str, ask: AskHook) -> None:
        """From the next event on, this hook is asked with the others."""
        self._deciders[name] = ask

    def remove(self, name: str) -> None:
        self._deciders.pop(name, None)

    async def ask(self, name: str, event: Event, seconds: float) -> Any:
        """What this hook answers; whoever else is to decide is asked at the same time, by whoever comes first.

        Of several decisions the first counts, and a refusal whoever has decided before. Raises HookFailed and Pause.
        """
        shared = self._events.get(str(event.get("id", "")))
        if shared is None or name in shared.heard:  # what waited for a person happens again, under the same id
            shared = self._begin(event, seconds)
        shared.heard.add(name)
        answer = shared.answers.get(name) or self._ask(shared, name, event)
        with anyio.move_on_after(max(0.0, shared.until - anyio.current_time()) + GRACE):
            return self._weigh(shared, await answer.get())
        raise HookFailed(f"it did not decide within {seconds:g} s", kind="timeout")

    def _begin(self, event: Event, seconds: float) -> SharedEvent:
        shared = self._events[str(event.get("id", ""))] = SharedEvent(anyio.current_time() + seconds)
        if len(self._events) > MAX_EVENTS:
            self._events.popitem(last=False)
        for name in self._deciders_at(event):
            self._ask(shared, name, event)
        return shared

    def _deciders_at(self, event: Event) -> Iterator[str]:
        for hook in self._registry.at(event.name):
            if hook.intercepts and hook.key in self._deciders and hook.applies(event.name, event):
                yield hook.key

    def _ask(self, shared: SharedEvent, name: str, event: Event) -> SharedAnswer:
        answer = shared.answers[name] = SharedAnswer()
        own = Event(event.name, dict(event), event.writable, event.kept, name)
        self._tasks.start_soon(self._fill, answer, self._deciders[name], own, self._registry.current_cause)
        return answer

    async def _fill(self, answer: SharedAnswer, ask: AskHook, event: Event, cause: Any) -> None:
        try:
            with use_cause(cause):
                answer.value = await ask(event)
        except (Exception, Pause) as error:  # noqa: BLE001 - whatever it is, who asked is told of it
            answer.error = error
        finally:
            answer.is_there.set()

    def _weigh(self, shared: SharedEvent, answer: Any) -> Any:
        is_first, is_refusal = not shared.is_decided, isinstance(answer, Mapping) and answer.get("decision") == "deny"
        shared.is_decided |= answer is not None
        return answer if is_first or is_refusal else None

"""What is done when an event of one name is told: its hooks, ready to be called."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias
from weakref import ref

from gateway.events import Event
from gateway.events.catalogue import EventSpec
from gateway.hooks.hook import CallCounter, Hook, MailboxProtocol

SLOW_CALL = 0.001  # seconds
TIMED_RUNS = 64  # runs that are timed, each of them
TIMING_INTERVAL = 64  # of how many runs one is timed after that

# A hook, what to call, and whether that surely answers a coroutine; any other answer is looked at.
PlannedCall: TypeAlias = tuple[Hook, Callable[[Event], Any], bool]


class EventPlan:
    """The hooks that an event has: interceptors in firing order, and the mailboxes of the observers.

    It counts its runs, for all of its interceptors. To time them costs as much as fast ones do: after a slow run the
    next one is timed too, after a fast one rarely. `writable` and `honoured` are what the catalogue says of
    the event, None when it is not in there.
    """

    __slots__ = (
        "__weakref__",
        "_itself",
        "_timed",
        "boxes",
        "due",
        "fired",
        "honoured",
        "hooks",
        "interceptors",
        "is_filtered",
        "runs",
        "steps",
        "writable",
    )

    def __init__(self, hooks: tuple[Hook, ...], known: EventSpec | None) -> None:
        self.interceptors = tuple(hook for hook in hooks if hook.mailbox is None)
        self.boxes: tuple[MailboxProtocol, ...] = tuple(hook.mailbox for hook in hooks if hook.mailbox)
        self.hooks = (*self.interceptors, *(box.hook for box in self.boxes))
        self.steps: tuple[PlannedCall, ...] = tuple((hook, hook.call, hook.is_async) for hook in self.interceptors)
        self.writable = known.writable if known else None
        self.honoured = known.outcomes if known else None
        self.is_filtered = (known is not None and known.name.startswith("hook:")) or any(hook.matches for hook in hooks)
        self.runs = 0
        self.due = 1
        self.fired: float | None = None
        self._timed: tuple[PlannedCall, ...] = ()
        self._itself: ref[CallCounter] = ref(self)
        for hook in self.interceptors:
            hook.health.plans.add(self._itself)

    @property
    def is_empty(self) -> bool:
        """Does nobody want to be told?"""
        return not (self.interceptors or self.boxes)

    def boxes_for(self, name: str, fields: Mapping[str, Any]) -> Sequence[MailboxProtocol]:
        """The mailboxes of those observers who want to be told of an event with these fields."""
        if not self.is_filtered:
            return self.boxes
        return [box for box in self.boxes if box.hook.applies(name, fields)]

    def timed(self) -> tuple[PlannedCall, ...]:
        """The steps, each of which takes its own time; the next ones are due when it is time."""
        if not self._timed:
            self._timed = tuple((hook, partial(self._time, hook), True) for hook in self.interceptors)
        self.due = self.runs + (1 if self.runs < TIMED_RUNS else TIMING_INTERVAL)
        return self._timed

    async def _time(self, hook: Hook, event: Event) -> Any:
        began = perf_counter()
        try:
            answer = hook.call(event)
            return await answer if hasattr(answer, "__await__") else answer
        finally:
            seconds = perf_counter() - began
            hook.health.timed(seconds)
            if seconds >= SLOW_CALL:
                self.due = self.runs + 1

    def __del__(self) -> None:
        """Nobody runs this plan any more, since there is a new one for its name: the hooks keep what it counted."""
        for hook in self.interceptors:
            hook.health.keep(self._itself, self.runs, self.fired)


EMPTY_PLAN = EventPlan((), None)

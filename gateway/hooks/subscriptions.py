"""Which hooks an event has: found once for each name, and remembered until somebody joins or leaves."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from time import perf_counter
from typing import Any, TypeAlias
from weakref import WeakSet, ref

from gateway.events import Event
from gateway.events.catalogue import EventSpec, get_event_spec
from gateway.hooks.hook import CallCounter, Hook, MailboxProtocol
from gateway.hooks.patterns import Patterns

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


MAX_CACHED = 4096

RemoveHook: TypeAlias = Callable[[], None]


class Subscriptions:
    """The hooks of one scope, and with those of the scopes around it what every event has.

    Who is told in which order: the outer scope's hooks first, then by `order`, then who named the event before who
    matched it, then as they joined. After an operation (`*:after`) those that are tied run in reverse, as things are
    closed in reverse of how they were opened; with `lifo=False` they do not. Any thread may change it at any time.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_hooks",
        "_lifo",
        "_made",
        "_named",
        "_outer",
        "_patterns",
        "inner",
        "known",
        "lock",
    )

    def __init__(self, outer: "Subscriptions | None", lifo: bool) -> None:
        self.known: dict[str, EventPlan] = {}
        self._outer = outer
        self.inner: WeakSet[Subscriptions] = WeakSet()
        self._lifo = lifo
        self.lock: Any = outer.lock if outer else RLock()
        self._hooks: dict[Hook, None] = {}
        self._patterns: Patterns[Hook] = Patterns()
        self._made: dict[tuple[tuple[Hook, ...], EventSpec | None], EventPlan] = {}
        self._count = 0
        self._named: dict[str, int] = {}
        if outer:
            outer.inner.add(self)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Those of this scope, as they joined."""
        with self.lock:
            return tuple(self._hooks)

    @property
    def newest(self) -> Hook:
        """Who joined last; while `lock` is held nobody else can."""
        return next(reversed(self._hooks))

    def join(self, hook: Hook) -> RemoveHook:
        """From the next event on, this hook is told too; returns what makes it leave."""
        with self.lock:
            self._count += 1
            hook.number = self._count
            if hook.owner is hook:
                self._named[hook.key] = count = self._named.get(hook.key, 0) + 1
                hook.key = hook.key if count == 1 else f"{hook.key}#{count}"
            self._hooks[hook] = None
            for name in hook.names:
                self._patterns.add(name, hook)
            self.forget()
        return partial(self.leave, hook)

    def leave(self, hook: Hook) -> None:
        """From the next event on, it is not."""
        with self.lock:
            if hook not in self._hooks:
                return
            del self._hooks[hook]
            for name in hook.names:
                self._patterns.discard(name, hook)
            self.forget()
        if hook.mailbox:
            hook.mailbox.close()

    def find(self, name: str) -> EventPlan:
        """The plan of this name. Names that have the same hooks share one, and names without end are not kept."""
        with self.lock:
            outer = self._outer.find(name) if self._outer else EMPTY_PLAN
            own = self._match(name)
            plan = self._plan((*outer.hooks, *own), get_event_spec(name)) if own else outer
            if len(self.known) >= MAX_CACHED:
                self.known.clear()
            self.known[name] = plan
        return plan

    def _plan(self, hooks: tuple[Hook, ...], known: EventSpec | None) -> EventPlan:
        plan = self._made.get((hooks, known))
        if plan is None:
            if len(self._made) >= MAX_CACHED:
                self._made.clear()
            plan = self._made[hooks, known] = EventPlan(hooks, known)
        return plan

    def _match(self, name: str) -> tuple[Hook, ...]:
        exact, globs = self._patterns.match(name)
        if len(exact) + len(globs) < 2:
            return (*exact, *globs)
        rank = dict.fromkeys(globs, 1) | dict.fromkeys(exact, 0)
        is_reversed = self._lifo and name.endswith(":after")
        tied = sorted(rank, key=lambda hook: (rank[hook], hook.number), reverse=is_reversed)
        return tuple(sorted(tied, key=lambda hook: hook.order))

    def forget(self) -> None:
        """Who has changed, here or around here: find the plans anew."""
        self.known.clear()
        self._made.clear()
        for inner in self.inner:
            inner.forget()

"""Which hooks an event has: found once for each name, and remembered until a hook is added or removed."""

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from inspect import iscoroutinefunction
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

from gateway.events import Event
from gateway.events.catalogue import get_event_spec
from gateway.events.fields import EventSpec
from gateway.hooks.cause import MAX_DEPTH
from gateway.hooks.hook import Handler, Hook
from gateway.hooks.mailbox import CAPACITY, Mailbox, Observer, QueuedEvent
from gateway.hooks.patterns import Patterns
from gateway.hooks.recorder import OwedEvents, Recorder

log = logging.getLogger("gateway.hooks")

MAX_CACHED = 4096

# A hook, its function, and whether that surely returns a coroutine; any other answer is looked at.
PlannedCall: TypeAlias = tuple[Hook, Callable[[Event], Any], bool]


class EventPlan:
    """The hooks that an event has: the calls of its interceptors in order, the mailboxes of its observers, and those
    that write it down.

    `writable` and `honoured` are what the catalogue says of the event, None when it is not in there.
    """

    __slots__ = ("calls", "honoured", "hooks", "is_filtered", "is_observed", "mailboxes", "recorders", "writable")

    def __init__(self, hooks: tuple[Hook, ...], known: EventSpec | None) -> None:
        interceptors = [hook for hook in hooks if hook.intercepts]
        observers = [hook for hook in hooks if isinstance(hook, Observer)]
        self.recorders = tuple(hook for hook in hooks if isinstance(hook, Recorder))
        self.hooks: tuple[Hook, ...] = (*interceptors, *observers, *self.recorders)
        self.calls: tuple[PlannedCall, ...] = tuple(
            (hook, hook.call, iscoroutinefunction(hook.call)) for hook in interceptors
        )
        self.mailboxes: tuple[Mailbox, ...] = tuple(hook.mailbox for hook in observers)
        self.is_observed = bool(self.mailboxes or self.recorders)
        self.writable = known.writable if known else None
        self.honoured = known.outcomes if known else None
        self.is_filtered = (known is not None and known.name.startswith("hook:")) or any(hook.matches for hook in hooks)

    def with_calls(self, call_of: Callable[[Hook], Handler]) -> "EventPlan":
        """The same plan, where each interceptor is called by what this says of it, and no time limit of its own."""
        calls = ((hook, call_of(hook)) for hook, _, _ in self.calls)
        plan = copy(self)
        plan.calls = tuple((hook, call, iscoroutinefunction(call)) for hook, call in calls)
        return plan

    def tell(self, event: QueuedEvent, owed: OwedEvents | None = None) -> None:
        """Tell those that only look on. `owed` is of the work, if any, that the event belongs to."""
        cause = event[3]
        if cause is not None and cause[1] >= MAX_DEPTH:
            words = "no observer is called for %s: it came of %d events, each caused by a hook"
            log.warning(words, event[0], MAX_DEPTH)
            return
        if self.recorders:
            self.note(event, owed)
        for mailbox in self._list_mailboxes(event[0], event[1]) if self.is_filtered else self.mailboxes:
            queue = mailbox.queue
            if len(queue) == CAPACITY:
                mailbox.overflow()
            queue.append(event)
            if mailbox.is_idle:
                mailbox.wake()

    def note(self, event: QueuedEvent, owed: OwedEvents | None) -> None:
        """Have it written down, and tell nobody else."""
        for recorder in self.recorders:
            recorder.fn(event, owed)

    def _list_mailboxes(self, name: str, fields: Mapping[str, Any]) -> list[Mailbox]:
        """The mailboxes of the observers that are to see an event with these fields."""
        return [mailbox for mailbox in self.mailboxes if mailbox.hook.applies(name, fields)]


EMPTY_PLAN = EventPlan((), None)


class Subscription:
    """Hooks that were registered together. To call it removes them; removing them twice does no harm."""

    __slots__ = ("entries",)

    def __init__(self, entries: "Iterable[tuple[Subscriptions, Hook]]" = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def join(cls, subscriptions: "Iterable[Subscription]") -> "Subscription":
        """Make one of several."""
        return cls(entry for each in subscriptions for entry in each.entries)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """What was registered."""
        return tuple(hook for _, hook in self.entries)

    def __call__(self) -> None:
        self.remove()

    def remove(self) -> None:
        """From the next event on, the hooks are not called. What waits for an observer is not delivered."""
        for home, hook in self.entries:
            home.remove(hook)

    def replace(self, other: "Subscription") -> None:
        """Remove the hooks of another subscription, and put these in their place.

        Events that wait for its observer go to the observer of this one, in their order. Among hooks of one `order`
        these stand where the others stood.
        """
        for home, hook in self.entries:
            home.take_place(hook, other.hooks)
        other.remove()


class Subscriptions:
    """The hooks of one scope, and with those of the scopes around it the hooks that every event has.

    Their order: the outer scope's hooks first, then by `order`, then those that name the event before those that match
    it by a pattern, then as they were added. After an operation (`*:after`) those that are tied run in reverse, as
    things are closed in reverse of how they were opened; with `lifo=False` they do not. Any thread may change it at any
    time.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_hooks",
        "_lifo",
        "_named",
        "_outer",
        "_patterns",
        "_plans",
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
        self._plans: dict[tuple[tuple[Hook, ...], EventSpec | None], EventPlan] = {}
        self._count = 0
        self._named: dict[str, int] = {}
        if outer:
            outer.inner.add(self)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks of this scope, as they were added."""
        with self.lock:
            return tuple(self._hooks)

    def add(self, hook: Hook) -> Subscription:
        """From the next event on, this hook is called too."""
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
        return Subscription([(self, hook)])

    def remove(self, hook: Hook) -> None:
        """From the next event on, it is not called."""
        with self.lock:
            if hook not in self._hooks:
                return
            del self._hooks[hook]
            for name in hook.names:
                self._patterns.discard(name, hook)
            self.forget()
        if isinstance(hook, Observer):
            hook.mailbox.close()

    def take_place(self, hook: Hook, others: Iterable[Hook]) -> None:
        """Give a hook the place of the first of the others that is of its kind, and the events that wait for them."""
        alike = [other for other in others if other.intercepts == hook.intercepts]
        if alike:
            with self.lock:
                hook.number = alike[0].number
                self.forget()
        for other in alike:
            if isinstance(hook, Observer) and isinstance(other, Observer):
                hook.mailbox.take_over(other.mailbox)

    def find(self, name: str) -> EventPlan:
        """The plan of this name. Names that have the same hooks share one, and names without end are not kept."""
        with self.lock:
            outer = self._outer.find(name) if self._outer else EMPTY_PLAN
            own = self._match(name)
            plan = self._make_plan((*outer.hooks, *own), get_event_spec(name)) if own else outer
            if len(self.known) >= MAX_CACHED:
                self.known.clear()
            self.known[name] = plan
        return plan

    def forget(self) -> None:
        """Find the plans anew, here and in the scopes within: a hook has changed."""
        self.known.clear()
        self._plans.clear()
        for inner in self.inner if len(self.inner) else ():
            inner.forget()

    def _make_plan(self, hooks: tuple[Hook, ...], known: EventSpec | None) -> EventPlan:
        plan = self._plans.get((hooks, known))
        if plan is None:
            if len(self._plans) >= MAX_CACHED:
                self._plans.clear()
            plan = self._plans[hooks, known] = EventPlan(hooks, known)
        return plan

    def _match(self, name: str) -> tuple[Hook, ...]:
        exact, globs = self._patterns.match(name)
        if len(exact) + len(globs) < 2:
            return (*exact, *globs)
        rank = dict.fromkeys(globs, 1) | dict.fromkeys(exact, 0)
        is_reversed = self._lifo and name.endswith(":after")
        tied = sorted(rank, key=lambda hook: (rank[hook], hook.number), reverse=is_reversed)
        return tuple(sorted(tied, key=lambda hook: hook.order))

"""The hooks of each event: found once for each name, and cached until a hook is added or removed."""

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
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
from gateway.hooks.recorder import PIECE, OwedEvents, Recorder

log = logging.getLogger("gateway.hooks")

MAX_CACHED = 4096

# A hook, its function, and True if the function surely returns a coroutine; any other answer is checked.
PlannedCall: TypeAlias = tuple[Hook, Callable[[Event], Any], bool]


class EventPlan:
    """The hooks of an event: the calls of its interceptors in order, the mailboxes of its observers, and its recorders.

    `writable` and `honoured` come from the event catalogue, None for an event that is not in the catalogue.
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
        """Return the plan with other functions for its interceptors, without the hooks' own time limits."""
        calls = ((hook, call_of(hook)) for hook, _, _ in self.calls)
        plan = copy(self)
        plan.calls = tuple((hook, call, iscoroutinefunction(call)) for hook, call in calls)
        return plan

    def tell(self, event: QueuedEvent, owed: OwedEvents | None = None) -> None:
        """Notify the observers and recorders. `owed` has the recorded events of the surrounding turn, if any."""
        cause = event[3]
        if cause is not None and cause[1] >= MAX_DEPTH:
            words = "no observer is called for %s: it came of %d events, each caused by a hook"
            log.warning(words, event[0], MAX_DEPTH)
            return
        for recorder in self.recorders:
            recorder.fn(event, owed)
        for mailbox in self._list_mailboxes(event[0], event[1]) if self.is_filtered else self.mailboxes:
            queue = mailbox.queue
            if len(queue) == CAPACITY:
                mailbox.overflow()
            queue.append(event)
            if mailbox.is_idle:
                mailbox.wake()

    def note(self, event: QueuedEvent, owed: OwedEvents | None) -> None:
        """Record the event, without notifying observers."""
        for recorder in self.recorders:
            recorder.fn(event, owed)

    def _list_mailboxes(self, name: str, fields: Mapping[str, Any]) -> list[Mailbox]:
        """List the mailboxes of the observers whose filters match these fields."""
        return [mailbox for mailbox in self.mailboxes if mailbox.hook.applies(name, fields)]


EMPTY_PLAN = EventPlan((), None)


class Subscription:
    """Hooks that were registered together. Call the subscription to remove the hooks; a second call does no harm."""

    __slots__ = ("entries",)

    def __init__(self, entries: "Iterable[tuple[Subscriptions, Hook]]" = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def join(cls, subscriptions: "Iterable[Subscription]") -> "Subscription":
        """Join several subscriptions into one."""
        return cls(entry for each in subscriptions for entry in each.entries)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Return the registered hooks."""
        return tuple(hook for _, hook in self.entries)

    def __call__(self) -> None:
        self.remove()

    def remove(self) -> None:
        """Stop calling the hooks from the next event on. Waiting events are not delivered."""
        for home, hook in self.entries:
            home.remove(hook)

    def replace(self, other: "Subscription") -> None:
        """Remove the hooks of another subscription, and put the hooks of this subscription in their place.

        Events that wait for the other observer go to the observer of this subscription, in order. Among hooks with the
        same `order`, the new hooks take the positions of the removed hooks.
        """
        for home, hook in self.entries:
            home.take_place(hook, other.hooks)
        other.remove()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Subscriptions:
    """The hooks of one scope and of the scopes around it, in the order of their calls.

    The outer scope's hooks come first, then `order` decides, then an exact name before a pattern, then the order of
    registration. After an operation (`*:after`), tied hooks run in reverse, as things are closed in reverse of how they
    were opened, unless `lifo` is False. Any thread may add or remove hooks at any time.
    """

    _outer: "Subscriptions | None"
    _lifo: bool
    known: dict[str, EventPlan] = field(default_factory=dict)
    inner: "WeakSet[Subscriptions]" = field(default_factory=WeakSet)
    lock: Any = field(default_factory=RLock)
    _hooks: dict[Hook, None] = field(default_factory=dict)
    _patterns: Patterns[Hook] = field(default_factory=Patterns)
    _plans: dict[tuple[tuple[Hook, ...], EventSpec | None], EventPlan] = field(default_factory=dict)
    _count: int = 0
    _named: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._outer:
            self.lock = self._outer.lock
            self._outer.inner.add(self)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Return the hooks of this scope, in the order of registration."""
        with self.lock:
            return tuple(self._hooks)

    def add(self, hook: Hook) -> Subscription:
        """Call this hook too, from the next event on."""
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
        """Stop calling this hook, from the next event on."""
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
        """Give a hook the position of the first other hook of its kind, and the waiting events of all such hooks."""
        alike = [other for other in others if other.intercepts == hook.intercepts]
        if alike:
            with self.lock:
                hook.number = alike[0].number
                self.forget()
        for other in alike:
            if isinstance(hook, Observer) and isinstance(other, Observer):
                hook.mailbox.take_over(other.mailbox)

    def find(self, name: str) -> EventPlan:
        """Return the plan for events of this name.

        Names with the same hooks share a plan, and the number of cached names is limited.
        """
        with self.lock:
            outer = self._outer.find(name) if self._outer else EMPTY_PLAN
            own = self._match(name)
            plan = self._make_plan((*outer.hooks, *own), get_event_spec(name)) if own else outer
            if len(self.known) >= MAX_CACHED:
                self.known.clear()
            self.known[name] = plan
        return plan

    def forget(self) -> None:
        """Drop the plans, here and in the inner scopes, because a hook has changed."""
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
        if name == PIECE:
            globs = [hook for hook in globs if not isinstance(hook, Recorder)]
        if len(exact) + len(globs) < 2:
            return (*exact, *globs)
        rank = dict.fromkeys(globs, 1) | dict.fromkeys(exact, 0)
        is_reversed = self._lifo and name.endswith(":after")
        tied = sorted(rank, key=lambda hook: (rank[hook], hook.number), reverse=is_reversed)
        return tuple(sorted(tied, key=lambda hook: hook.order))

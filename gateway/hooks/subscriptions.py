"""Which hooks an event has: found once for each name, and remembered until somebody joins or leaves."""

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

from gateway.events.catalogue import EventSpec, get_event_spec
from gateway.hooks.event_plan import EMPTY_PLAN, EventPlan
from gateway.hooks.hook import Hook
from gateway.hooks.patterns import Patterns

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

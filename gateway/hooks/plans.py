"""Which hooks an event has: found once for each name, and remembered until somebody joins or leaves."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any, TypeAlias
from weakref import WeakSet

from gateway.catalogue import point
from gateway.hooks.hook import Hook
from gateway.hooks.mailbox import Mailbox
from gateway.hooks.patterns import Patterns

REMEMBERED = 4096

Remove: TypeAlias = Callable[[], None]


class Plan:
    """The hooks of one event name: interceptors in firing order, and the mailboxes of the observers.

    `writable` and `honoured` are what the catalogue says of it, None for an event that is not in there.
    """

    __slots__ = ("boxes", "honoured", "interceptors", "is_filtered", "writable")

    def __init__(self, name: str, hooks: tuple[Hook, ...]) -> None:
        known = point(name) if hooks else None
        self.interceptors = tuple(hook for hook in hooks if hook.mailbox is None)
        self.boxes: tuple[Mailbox, ...] = tuple(hook.mailbox for hook in hooks if hook.mailbox)
        self.writable = known.writable if known else None
        self.honoured = known.outcomes if known else None
        self.is_filtered = name.startswith("hook:") or any(hook.matches for hook in hooks)

    @property
    def is_empty(self) -> bool:
        """Does nobody want to be told?"""
        return not (self.interceptors or self.boxes)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """All of them, those that are awaited first."""
        return (*self.interceptors, *(box.hook for box in self.boxes))

    def boxes_for(self, name: str, fields: Mapping[str, Any]) -> Sequence[Mailbox]:
        """The mailboxes of those observers who want to be told of an event with these fields."""
        return [box for box in self.boxes if box.hook.applies(name, fields)] if self.is_filtered else self.boxes


NOBODY = Plan("", ())


class Plans:
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
        "_named",
        "_outer",
        "_patterns",
        "inner",
        "known",
        "lock",
    )

    def __init__(self, outer: "Plans | None", lifo: bool) -> None:
        self.known: dict[str, Plan] = {}
        self._outer = outer
        self.inner: WeakSet[Plans] = WeakSet()
        self._lifo = lifo
        self.lock: Any = outer.lock if outer else RLock()
        self._hooks: dict[Hook, None] = {}
        self._patterns: Patterns[Hook] = Patterns()
        self._count = 0
        self._named: dict[str, int] = {}
        if outer:
            outer.inner.add(self)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Those of this scope, as they joined."""
        with self.lock:
            return tuple(self._hooks)

    def join(self, hook: Hook) -> Remove:
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

    def find(self, name: str) -> Plan:
        """The plan of this name; names without number do not make us remember without end."""
        with self.lock:
            outer = self._outer.find(name) if self._outer else NOBODY
            own = self._match(name)
            plan = Plan(name, (*outer.hooks, *own)) if own else outer
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[name] = plan
        return plan

    def _match(self, name: str) -> tuple[Hook, ...]:
        exact, globs = self._patterns.match(name)
        if not (exact or globs):
            return ()
        rank = dict.fromkeys(globs, 1) | dict.fromkeys(exact, 0)
        if len(rank) == 1:
            return tuple(rank)
        is_reversed = self._lifo and name.endswith(":after")
        tied = sorted(rank, key=lambda hook: (rank[hook], hook.number), reverse=is_reversed)
        return tuple(sorted(tied, key=lambda hook: hook.order))

    def forget(self) -> None:
        """Who has changed, here or around here: find the plans anew."""
        self.known.clear()
        for inner in self.inner:
            inner.forget()

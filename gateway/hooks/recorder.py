"""Hooks for which what happens is written down, before anybody acts on it.

A recorder is called where an event is fired, at once, with the event as the observers see it. What it writes down of
the events of a turn, or of a delivery, waits in the `OwedEvents` of that work for the work's own next append: so a fact
and what hooks are owed of it are one append, and after a crash there are both or neither. What belongs to no such work
it has to bring into the journal itself; `is_written` waits for that.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gateway.hooks.hook import Hook

MOST_DECISIONS = 200


class OwedEvent(NamedTuple):
    """An event as it is written down: its id, its name, and the bytes of its record."""

    id: str
    name: str
    data: bytes


class HookDecision(NamedTuple):
    """What a hook made of an event: `ask`, `change` with the names of the fields, or its outcome with its words.

    `call_id` and `hop` say of which operation of a turn the event is.
    """

    event_id: str
    event: str
    hook: str
    decision: str
    reason: str
    call_id: str = ""
    hop: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """A turn that runs again decides it again, under the same."""
        return self.event_id, self.hook, self.decision


class OwedEvents:
    """What is written down of one piece of work's events, and of what hooks decided about them.

    `known` are the ids of those events, `decided` the keys of those decisions, that the journal has already.
    """

    __slots__ = ("_decided", "_decisions", "_known", "_waiting", "is_over")

    def __init__(self, known: Iterable[str] = (), decided: Iterable[tuple[str, str, str]] = ()) -> None:
        self.is_over = False  # nothing is taken along any more
        self._known = set(known)
        self._waiting: dict[str, OwedEvent] = {}
        self._decided = set(decided)
        self._decisions: list[HookDecision] = []

    def add_decision(self, decision: HookDecision) -> None:
        """The next append takes it along, up to so many of one piece of work."""
        if decision.key not in self._decided and not self.is_over and len(self._decided) < MOST_DECISIONS:
            self._decided.add(decision.key)
            self._decisions.append(decision)

    @property
    def decisions(self) -> tuple[HookDecision, ...]:
        """Those that wait for the next append, in the order in which they were made."""
        return tuple(self._decisions)

    def has(self, id: str) -> bool:  # noqa: A002 - what it is called everywhere
        """Is it there, or waiting? A turn that runs again repeats its events."""
        return id in self._known

    def add(self, event: OwedEvent) -> None:
        """The next append takes it along, unless one did so already."""
        if not (self.is_over or self.has(event.id)):
            self._known.add(event.id)
            self._waiting[event.id] = event

    @property
    def waiting(self) -> tuple[OwedEvent, ...]:
        """What the next append is to take along, in the order in which it happened."""
        return tuple(self._waiting.values())

    def forget(self, written: Iterable[OwedEvent], decisions: Sequence[HookDecision] = ()) -> None:
        """These stand in the journal."""
        for event in written:
            self._waiting.pop(event.id, None)
        del self._decisions[: len(decisions)]

    def end(self) -> None:
        """The work is over, or goes on elsewhere: what happens in it from now on belongs to nothing."""
        self.is_over = True
        self._waiting.clear()
        self._decisions.clear()


@dataclass(slots=True, eq=False)
class Recorder(Hook):
    """A hook whose `fn(event, owed)` writes down what is fired; `owed` is None for what belongs to no work."""

    intercepts: ClassVar[bool] = False
    is_written: Callable[[], Awaitable[None]] = field(kw_only=True)

"""Hooks for which what happens is written down, before anybody acts on it.

A recorder is called where an event is fired, at once, with the event as the observers see it. What it writes down of
the events of a turn, or of a delivery, waits in the `OwedEvents` of that work for the work's own next append: so a fact
and what hooks are owed of it are one append, and after a crash there are both or neither. What belongs to no such work
it has to bring into the journal itself; `is_written` waits for that.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gateway.hooks.hook import Hook


class OwedEvent(NamedTuple):
    """An event as it is written down: its id, its name, and the bytes of its record."""

    id: str
    name: str
    data: bytes


class OwedEvents:
    """What is written down of one piece of work's events. `known` are the ids of those that the journal has already."""

    __slots__ = ("_known", "_waiting", "is_over")

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.is_over = False  # nothing is taken along any more
        self._known = set(known)
        self._waiting: dict[str, OwedEvent] = {}

    def add(self, event: OwedEvent) -> None:
        """The next append takes it along, unless one did so already: a turn that runs again repeats its events."""
        if event.id not in self._known and not self.is_over:
            self._known.add(event.id)
            self._waiting[event.id] = event

    @property
    def waiting(self) -> tuple[OwedEvent, ...]:
        """What the next append is to take along, in the order in which it happened."""
        return tuple(self._waiting.values())

    def forget(self, written: Iterable[OwedEvent]) -> None:
        """These stand in the journal."""
        for event in written:
            self._waiting.pop(event.id, None)

    def end(self) -> None:
        """The work is over, or goes on elsewhere: what happens in it from now on belongs to nothing."""
        self.is_over = True
        self._waiting.clear()


@dataclass(slots=True, eq=False)
class Recorder(Hook):
    """A hook whose `fn(event, owed)` writes down what is fired; `owed` is None for what belongs to no work."""

    intercepts: ClassVar[bool] = False
    is_written: Callable[[], Awaitable[None]] = field(kw_only=True)

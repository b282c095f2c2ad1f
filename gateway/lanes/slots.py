"""How many turns may run at once: in all, and for one person. Who waits is served in order, but nobody blocks others.

A lane takes a slot for one turn and then stands at the end again, so a conversation with thousands of waiting messages
gets one turn in each round like every other.
"""

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

TellWait: TypeAlias = Callable[[int], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Ticket:
    person: str
    called: anyio.Event = field(default_factory=anyio.Event)


class Slots:
    """Slots for turns."""

    def __init__(self, total: int, per_person: int) -> None:
        self._free = total
        self._per_person = per_person
        self._running: Counter[str] = Counter()
        self._queue: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return self._running.total()

    @asynccontextmanager
    async def slot(self, person: str, patience: float, tell: TellWait) -> AsyncIterator[bool]:
        """One slot for this person; yields whether one had to wait for it.

        Who still waits after `patience` seconds is told, once, which place in the line it is.
        """
        ticket = Ticket(person)
        self._queue.append(ticket)
        self._serve()
        waited = not ticket.called.is_set()
        try:
            if waited:
                with anyio.move_on_after(patience):
                    await ticket.called.wait()
                if not ticket.called.is_set():
                    await tell(self._queue.index(ticket) + 1)
                await ticket.called.wait()
            yield waited
        finally:
            if ticket.called.is_set():
                self._release(person)
            else:
                self._queue.remove(ticket)

    def _release(self, person: str) -> None:
        self._free += 1
        self._running[person] -= 1
        if not self._running[person]:
            del self._running[person]
        self._serve()

    def _serve(self) -> None:
        """Call who may come; who is at the limit of the person lets others pass."""
        stay: deque[Ticket] = deque()
        while self._queue and self._free > 0:
            ticket = self._queue.popleft()
            if self._running[ticket.person] < self._per_person:
                self._free -= 1
                self._running[ticket.person] += 1
                ticket.called.set()
            else:
                stay.append(ticket)
        self._queue.extendleft(reversed(stay))

"""How many turns may run at once: in all, and for one person. Who waits is served in order, but nobody blocks others.

A lane takes a slot for one turn and then stands at the end again, so a conversation with thousands of waiting messages
gets one turn in each round like every other.
"""

import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

BACKLOG_TURN = 4

TellWait: TypeAlias = Callable[[int], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Ticket:
    person: str
    is_backlog: bool = False
    called: anyio.Event = field(default_factory=anyio.Event)


class Slots:
    """Slots for turns. Who comes now is served before what waited from before a start, the backlog.

    The backlog never has the last quarter of the slots (at least one, where there are two), so that nobody who comes
    now waits for the end of one of its turns; and each fourth slot is offered to it first, so that it does get done.
    """

    def __init__(self, total: int, per_person: int) -> None:
        self._free = total
        self._reserved = 0 if total == 1 else max(1, total // 4)
        self._per_person = per_person
        self._running: Counter[str] = Counter()
        self._queue: deque[Ticket] = deque()
        self._backlog: deque[Ticket] = deque()
        self._served = 0

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._backlog)

    @property
    def running(self) -> int:
        return self._running.total()

    @asynccontextmanager
    async def slot(
        self, person: str, patience: float, tell: TellWait, *, is_backlog: bool = False
    ) -> AsyncIterator[bool]:
        """One slot for this person; yields whether one had to wait for it.

        Who still waits after `patience` seconds is told, once, which place in the line it is.
        """
        ticket = Ticket(person, is_backlog)
        queue = self._backlog if is_backlog else self._queue
        queue.append(ticket)
        self._serve()
        waited = not ticket.called.is_set()
        try:
            if waited:
                with anyio.move_on_after(patience):
                    await ticket.called.wait()
                if not ticket.called.is_set():
                    await tell(queue.index(ticket) + 1 + (len(self._queue) if is_backlog else 0))
                await ticket.called.wait()
            yield waited
        finally:
            if ticket.called.is_set():
                self._release(person)
            else:
                queue.remove(ticket)

    def _release(self, person: str) -> None:
        self._free += 1
        self._running[person] -= 1
        if not self._running[person]:
            del self._running[person]
        self._serve()

    def _serve(self) -> None:
        """Call who may come."""
        is_its_turn = self._served % BACKLOG_TURN == BACKLOG_TURN - 1
        if is_its_turn:
            self._call_from(self._backlog, self._reserved, most=1)
        self._call_from(self._queue, 0)
        self._call_from(self._backlog, self._reserved)

    def _call_from(self, queue: deque[Ticket], reserved: int, most: float = math.inf) -> None:
        """Call some, as long as more slots are free than are kept; who is at the person's limit lets others pass."""
        stay: deque[Ticket] = deque()
        called = 0
        while queue and self._free > reserved and called < most:
            ticket = queue.popleft()
            if self._running[ticket.person] < self._per_person:
                self._free -= 1
                self._running[ticket.person] += 1
                called += 1
                ticket.called.set()
            else:
                stay.append(ticket)
        self._served += called
        queue.extendleft(reversed(stay))

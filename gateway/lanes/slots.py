"""Limits on running turns: in all, per person and per role. Owners come first, and no turn waits for ever.

A lane takes a slot for one turn and then queues again at the end, so a conversation with thousands of waiting messages
gets one turn in each round like every other conversation.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
import msgspec

from gateway.messages.roles import ROLES, rank_of

LONGEST_WAIT_TURN = 4
UNAWAITED = 0  # below the rank of every role: no person waits for the answer
GUEST = rank_of("guest")
RANKS = (*map(rank_of, ROLES), UNAWAITED)

TellWait: TypeAlias = Callable[[int], Awaitable[None]]


class Ticket(msgspec.Struct, eq=False):
    number: int
    person: str
    rank: int
    called: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class Slots:
    """Slots for turns, by rank: the role of the waiting person, or `UNAWAITED`.

    A higher role comes first, and every fourth slot goes to the longest wait. A person gets a second slot only if no
    other person could take it. Guests have at most half of the slots. Work without a waiting person (schedules, hooks,
    webhooks, a backlog from before the start) has at most a quarter. Both together leave the last quarter (at least one
    slot of two or more) to people of higher roles.
    """

    def __init__(self, total: int, per_person: int) -> None:
        self._free = total
        self._most_of_low = total if total == 1 else total - max(1, total // 4)
        self._most = dict.fromkeys(RANKS, total) | {GUEST: max(1, total // 2), UNAWAITED: max(1, total // 4)}
        self._per_person = per_person
        self._running: Counter[str] = Counter()
        self._taken: Counter[int] = Counter()
        self._queues = {rank: deque[Ticket]() for rank in RANKS}
        self._served = self._numbered = 0

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def running(self) -> int:
        return self._running.total()

    def has_free(self, person: str, rank: int) -> bool:
        """Return True if a turn of this person and rank would not have to wait now."""
        return self._free > self.waiting and self._has_room(rank) and self._running[person] < self._per_person

    @asynccontextmanager
    async def slot(self, person: str, rank: int, patience: float, tell: TellWait) -> AsyncIterator[bool]:
        """Hold one slot for this person; yield True if the person had to wait for the slot.

        If the person still waits after `patience` seconds, `tell` is called once with their place in line.
        """
        self._numbered += 1
        ticket, queue = Ticket(self._numbered, person, rank), self._queues[rank]
        queue.append(ticket)
        self._serve()
        waited = not ticket.called.is_set()
        try:
            if waited:
                with anyio.move_on_after(patience):
                    await ticket.called.wait()
                if not ticket.called.is_set():
                    before = sum(len(one) for other, one in self._queues.items() if other > rank)
                    await tell(before + queue.index(ticket) + 1)
                await ticket.called.wait()
            yield waited
        finally:
            if ticket.called.is_set():
                self._release(ticket)
            else:
                queue.remove(ticket)

    def _release(self, ticket: Ticket) -> None:
        self._free += 1
        self._taken[ticket.rank] -= 1
        self._running[ticket.person] -= 1
        if not self._running[ticket.person]:
            del self._running[ticket.person]
        self._serve()

    def _serve(self) -> None:
        """Give free slots to the next tickets, and call these tickets."""
        while self._free and (ticket := self._find_next()):
            self._queues[ticket.rank].remove(ticket)
            self._free -= 1
            self._taken[ticket.rank] += 1
            self._running[ticket.person] += 1
            self._served += 1
            ticket.called.set()

    def _find_next(self) -> Ticket | None:
        ranks = [rank for rank in RANKS if self._queues[rank] and self._has_room(rank)]
        for most in (1, self._per_person):
            first = [ticket for rank in ranks if (ticket := self._find_first(rank, most))]
            if first:
                is_turn_of_longest = self._served % LONGEST_WAIT_TURN == LONGEST_WAIT_TURN - 1
                return min(first, key=lambda ticket: ticket.number) if is_turn_of_longest else first[0]
        return None

    def _has_room(self, rank: int) -> bool:
        is_low, low = rank <= GUEST, self._taken[GUEST] + self._taken[UNAWAITED]
        return self._taken[rank] < self._most[rank] and not (is_low and low >= self._most_of_low)

    def _find_first(self, rank: int, most: int) -> Ticket | None:
        """Find the first ticket of this rank whose person has fewer than `most` turns running."""
        return next((one for one in self._queues[rank] if self._running[one.person] < most), None)

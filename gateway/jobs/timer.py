"""The next moments of jobs, or of the timetables of hooks: nothing runs before the first one but a look at the clock.

The moments are in a heap. People and time servers set the wall clock, so as long as there are moments, it is read every
few seconds. When the clock was put back by more than an hour, all moments are found again: the time before was wrong.
After a jump forward of more than an hour, the moments come as if there was none, until the journal's clock has it
confirmed.
"""

import heapq
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import anyio
import msgspec

from gateway.backoff import find_pause
from gateway.engine.journal_clock import JournalClock

LOOK = 10.0  # seconds between two readings of the wall clock, at most
LONGEST_READING = 1.0  # seconds; after a longer one, the clock may have been set
NEVER = float("inf")
LONGEST_JUMP = 3600.0  # seconds by which the clock may go back and still be the same clock


class Now(NamedTuple):
    """One moment by the wall clock, by the time up to which it makes moments due, and by the steady clock."""

    wall: float
    due: float
    steady: float


class Clocks(NamedTuple):
    """The wall clock, its lead over the journal's steady clock, and a jump forward in it that nothing confirms yet."""

    wall: Callable[[], float] = time.time
    ahead: Callable[[], float] = float
    jump: Callable[[], float] = float

    def read(self) -> Now:
        """Read all clocks, again if the wall clock was set meanwhile: a job would have missed the time in between."""
        while True:
            wall, ahead, jump = self.wall(), self.ahead(), self.jump()
            if abs(self.wall() - wall) < LONGEST_READING:
                return Now(wall, wall - jump, wall - ahead)


def clocks_of(clock: JournalClock) -> Clocks:
    """Return the clocks of a journal."""
    return Clocks(time.time, clock.calculate_difference, clock.find_unconfirmed_jump)


class NextMoments(msgspec.Struct, eq=False):
    """The next moment of each key, the first one at the top of a heap."""

    _heap: list[tuple[float, str]] = []
    _due: dict[str, float] = {}

    def put(self, key: str, due: float) -> None:
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))

    def drop(self, key: str) -> None:
        self._due.pop(key, None)

    def pop(self, now: float) -> list[str]:
        """Return the keys that are due, the first one first, and forget their moments."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                found.append(key)
        return found

    def first(self) -> float:
        """Return the first moment; infinity without one."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER


class Timer:
    """Calls `begin` with the keys that are due, and `load` when the clock was set back by far."""

    def __init__(
        self, load: Callable[[], Awaitable[None]], begin: Callable[[Sequence[str]], Awaitable[None]], clocks: Clocks
    ) -> None:
        self._load = load
        self._begin = begin
        self._clocks = clocks
        self._wall, self._steady = NextMoments(), NextMoments()
        self._last_look = clocks.wall()

    def put(self, key: str, due: float, *, is_steady: bool = False) -> None:
        """Plan the next moment of a key, in the place of an earlier one; `is_steady`: by the steady clock."""
        self.drop(key)
        (self._steady if is_steady else self._wall).put(key, due)

    def drop(self, key: str) -> None:
        self._wall.drop(key)
        self._steady.drop(key)

    async def run(self, hear: Callable[[], Awaitable[Any]]) -> None:
        """Look until cancelled: at a moment, every few seconds before it, and each time that `hear` returns."""
        while True:
            pause = await self.look()
            with anyio.move_on_after(min(pause, find_pause(LOOK)) if pause < NEVER else None):
                await hear()

    async def look(self) -> float:
        """Begin what is due; return the seconds until the next moment."""
        now = self._clocks.read()
        if now.wall < self._last_look - LONGEST_JUMP:
            await self._load()
        self._last_look = now.wall
        if due := [*self._wall.pop(now.due), *self._steady.pop(now.steady)]:
            await self._begin(due)
        return max(0.0, min(self._wall.first() - now.due, self._steady.first() - now.steady))

"""The next moments of jobs, or of the timetables of hooks: nothing runs before the first one but a look at the clock.

The moments are in a heap. People and time servers set the wall clock, so it is read every few seconds. When the clock
was put back by more than an hour, all moments are found again: the time before was wrong.
"""

import heapq
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

LOOK = 5.0  # seconds between two readings of the wall clock, at most
LONGEST_JUMP = 3600.0  # seconds by which the clock may go back and still be the same clock


class NextMoments:
    """The next moment of each key, the first one at the top of a heap."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}

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
        return self._heap[0][0] if self._heap else float("inf")


class Timer:
    """Calls `begin` with the keys that are due, and `load` when the clock was set back by far.

    `clock` is the wall clock, and `ahead` its lead over the journal's steady clock.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[None]],
        begin: Callable[[Sequence[str]], Awaitable[None]],
        clock: Callable[[], float] = time.time,
        ahead: Callable[[], float] = float,
    ) -> None:
        self._load = load
        self._begin = begin
        self._clock = clock
        self._ahead = ahead
        self._wall, self._steady = NextMoments(), NextMoments()
        self._last_look = clock()

    def put(self, key: str, due: float, *, is_steady: bool = False) -> None:
        """Plan the next moment of a key, in the place of an earlier one; `is_steady`: by the steady clock."""
        self.drop(key)
        (self._steady if is_steady else self._wall).put(key, due)

    def drop(self, key: str) -> None:
        self._wall.drop(key)
        self._steady.drop(key)

    async def run(self, hear: Callable[[], Awaitable[Any]]) -> None:
        """Look until cancelled: when a moment comes, every few seconds, and each time that `hear` returns."""
        while True:
            pause = await self.look()
            with anyio.move_on_after(min(pause, LOOK)):
                await hear()

    async def look(self) -> float:
        """Begin what is due; return the seconds until the next moment."""
        now, ahead = self._clock(), self._ahead()
        if now < self._last_look - LONGEST_JUMP:
            await self._load()
        self._last_look = now
        if due := [*self._wall.pop(now), *self._steady.pop(now - ahead)]:
            await self._begin(due)
        return max(0.0, min(self._wall.first() - now, self._steady.first() - (now - ahead)))

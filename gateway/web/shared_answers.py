"""One answer for all who ask the same: two hundred pages that look at the same moment cost as much as one.

No caller gets an answer that was begun before its question. After a slow answer, the next one waits for a while, so
that questions take at most a twentieth of the gateway's time, however many come.
"""

import time
from collections.abc import Awaitable, Callable, Hashable

import anyio
import msgspec

REST = 19  # times as long as the answer took
LONGEST_REST = 0.5
MOST_KEPT = 50


class SharedAnswers(msgspec.Struct, eq=False):
    """The shared answers by question; `find` makes one."""

    _asked: dict[Hashable, "TimedAnswer"] = {}

    async def get(self, asked: Hashable, find: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer to a question; raises what `find` raises."""
        if len(self._asked) >= MOST_KEPT:
            self._asked.clear()  # callers that wait keep their own reference
        return await self._asked.setdefault(asked, TimedAnswer()).get(find)


class TimedAnswer:
    """The last answer to a question, and the lock for the next one."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._begun = self._rested = 0.0
        self._found = b""

    async def get(self, find: Callable[[], Awaitable[bytes]]) -> bytes:
        asked = time.monotonic()
        async with self._turn:
            if self._begun < asked:  # no answer was begun since the question
                await anyio.sleep(max(0.0, self._rested - time.monotonic()))
                begun = time.monotonic()
                self._found = await find()
                self._begun = begun
                ended = time.monotonic()
                self._rested = ended + min(LONGEST_REST, REST * (ended - begun))
            return self._found

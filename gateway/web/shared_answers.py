"""One answer for all who ask for the same: two hundred pages that look at the same moment cost what one does.

Nobody is given what was found before they asked. What takes long to find is not looked for again at once, so that those
who ask take a twentieth of the gateway's time at the most, however many they are.
"""

import time
from collections.abc import Awaitable, Callable, Hashable

import anyio

REST = 19  # times as long as it took to find
LONGEST_REST = 0.5
MOST_KEPT = 50


class SharedAnswers:
    """By what is asked for; `find` makes the answer."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, TimedAnswer] = {}

    async def get(self, asked: Hashable, find: Callable[[], Awaitable[bytes]]) -> bytes:
        """Raises what `find` raises."""
        if len(self._asked) >= MOST_KEPT:
            self._asked.clear()  # whoever waits holds on to what they wait for
        return await self._asked.setdefault(asked, TimedAnswer()).get(find)


class TimedAnswer:
    """The last one, and whoever waits for the next."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._begun = self._rested = 0.0
        self._found = b""

    async def get(self, find: Callable[[], Awaitable[bytes]]) -> bytes:
        asked = time.monotonic()
        async with self._turn:
            if self._begun < asked:  # nobody has begun to look since
                await anyio.sleep(max(0.0, self._rested - time.monotonic()))
                begun = time.monotonic()
                self._found = await find()
                self._begun = begun
                ended = time.monotonic()
                self._rested = ended + min(LONGEST_REST, REST * (ended - begun))
            return self._found

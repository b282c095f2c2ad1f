"""How fast Discord may be asked, route by route: discord.py's own count of it, but nobody is held up without need.

The library refuses all requests of a route whose window is long, though some are left in it, and keeps back the answer
to the last one in a window until the next window begins. Here requests go out as long as there are any left. Then they
wait, if that is short; if it is long they are refused with the time, and whoever asked comes back and holds up nobody
meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

import anyio
from discord import DiscordServerError, RateLimited
from discord.http import HTTPClient, Ratelimit

LONGEST_WAIT = 3.0  # seconds
SHORTEST_WAIT = 0.01
ILL_PAUSE = 5.0

T = TypeVar("T")


class RequestRate(Ratelimit):
    """The window of one route, as Discord told it last."""

    def __init__(self) -> None:
        super().__init__(None)
        self._news = anyio.Event()

    async def acquire(self) -> None:
        """Until a request may go out; it counts as gone.

        Raises:
            RateLimited: that is too long to wait here.
        """
        self._last_request = self._loop.time()
        while True:
            if self.is_expired():
                self.reset()  # type: ignore[no-untyped-call]
            if self.remaining > 0:
                break
            await self._wait()
        self.remaining -= 1
        self.outgoing += 1

    async def _wait(self) -> None:
        """For the next window; where none is known, for the answer to what is under way."""
        left = None if self.expires is None else self.expires - self._loop.time()
        if left is not None and left > LONGEST_WAIT:
            raise RateLimited(left)
        with anyio.move_on_after(None if left is None else max(left, SHORTEST_WAIT)):
            await self._news.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.outgoing -= 1
        if isinstance(error, RateLimited):
            self.remaining, self.expires = 0, self._loop.time() + error.retry_after
        elif self.expires is None:
            self.reset()  # type: ignore[no-untyped-call]
        self._news.set()
        self._news = anyio.Event()


class DiscordHttp(HTTPClient):
    """Counts each route's requests so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.max_ratelimit_timeout = LONGEST_WAIT

    def get_ratelimit(self, key: str) -> Ratelimit:
        if (rate := self._buckets.get(key)) is None:
            rate = self._buckets[key] = RequestRate()
            self._try_clear_expired_ratelimits()
        return rate


async def retry_request(call: Callable[[], Awaitable[T]]) -> T:
    """What nobody waits for: made again, as often as Discord wants silence first, and until it is well."""
    while True:
        try:
            return await call()
        except RateLimited as error:
            await anyio.sleep(error.retry_after)
        except DiscordServerError:
            await anyio.sleep(ILL_PAUSE)

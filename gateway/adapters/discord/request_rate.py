"""The rate of requests to Discord, route by route: discord.py's own counts, without needless waiting.

The library refuses all requests of a route whose window is long, though some are left in it, and holds back the answer
to the last one in a window until the next window begins. Here requests go out as long as any are left. Then they wait
for a short window; for a long one they are refused with the time, and the caller tries again later and delays no other
request meanwhile.
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
    """The window of one route, by Discord's last answer."""

    def __init__(self) -> None:
        super().__init__(None)
        self._news = anyio.Event()

    async def acquire(self) -> None:
        """Wait until a request may be sent, and count it.

        Raises:
            RateLimited: the wait is too long.
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
        """Wait for the next window; if none is known, for the answer to a running request."""
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
    """The HTTP client that counts the requests of each route."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.max_ratelimit_timeout = LONGEST_WAIT

    def get_ratelimit(self, key: str) -> Ratelimit:
        if (rate := self._buckets.get(key)) is None:
            rate = self._buckets[key] = RequestRate()
            self._try_clear_expired_ratelimits()
        return rate


async def retry_request(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request that is not urgent, until Discord's rate limit and its own faults allow it."""
    while True:
        try:
            return await call()
        except RateLimited as error:
            await anyio.sleep(error.retry_after)
        except DiscordServerError:
            await anyio.sleep(ILL_PAUSE)

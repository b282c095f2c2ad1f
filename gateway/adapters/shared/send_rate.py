"""How fast a network may be written to: so many calls at once and so many a second, for each chat and for all together.

Whoever was told by the network to be silent makes everybody silent who writes to the same chat: a network that is
asked again before the time only lengthens it. A short wait is waited here; a long one is told to the outbox, which
comes back in time and holds nothing meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import msgspec

from gateway.adapters.shared.network_errors import make_rate_limit_error
from gateway.errors import AdapterError

LONGEST_WAIT = 3.0  # seconds that a call waits here
MOST_CHATS = 10_000  # whose pace is remembered before the quiet ones are forgotten
ALL_CHATS = ""


class Rate(msgspec.Struct, frozen=True):
    """`burst` calls at once, then one each `every` seconds."""

    burst: int
    every: float


class RateLimiter:
    """One network's. The clock is steady: a pace does not follow a wall clock."""

    def __init__(self, network: str, overall: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._network = network
        self._overall = overall
        self._clock = clock
        self._full: dict[str, float] = {}  # when the whole burst is there again
        self._silent: dict[str, float] = {}

    async def wait(self, chat: str, rate: Rate) -> None:
        """Until a call to this chat may be made; it counts as made.

        Raises:
            AdapterError: that is too long to wait here; `retry_after` says how long.
        """
        now = self._clock()
        left = max(self._silent.get(chat, 0), self._silent.get(ALL_CHATS, 0)) - now
        if left <= 0:
            left = max(self._due(chat, rate), self._due(ALL_CHATS, self._overall)) - now
        if left > LONGEST_WAIT:
            raise make_rate_limit_error(self._network, left)
        self._count(chat, rate, now)
        self._count(ALL_CHATS, self._overall, now)
        if left > 0:
            await anyio.sleep(left)

    def told(self, chat: str, seconds: float) -> None:
        """The network wants silence there; where `chat` is empty, everywhere."""
        now = self._clock()
        self._silent = {where: until for where, until in self._silent.items() if until > now}
        self._silent[chat] = max(self._silent.get(chat, 0), now + seconds)

    @contextmanager
    def heeded(self, chat: str) -> Iterator[None]:
        """Around a call to this chat: where the network answers that it wants silence, everybody is silent there."""
        try:
            yield
        except AdapterError as error:
            if error.retry_after:
                self.told(chat, error.retry_after)
            raise

    def _due(self, chat: str, rate: Rate) -> float:
        return self._full.get(chat, 0) - (rate.burst - 1) * rate.every

    def _count(self, chat: str, rate: Rate, now: float) -> None:
        if len(self._full) > MOST_CHATS:
            self._full = {where: full for where, full in self._full.items() if full > now}
        self._full[chat] = max(self._full.get(chat, 0), now) + rate.every

"""The rate of calls to a network: so many at once and so many a second, for each chat and for all together.

A network's demand for silence applies to all callers of the same chat: calls before that time only lengthen it. A short
wait happens here; a long one is reported to the outbox, which tries again in time and holds up nothing meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
import msgspec

from gateway.adapters.shared.network_errors import make_rate_limit_error
from gateway.errors import AdapterError

LONGEST_WAIT = 3.0  # seconds that a call waits here
MOST_CHATS = 10_000  # chats whose rate is remembered before quiet ones are forgotten
ALL_CHATS = ""


NEVER = float("-inf")  # a steady clock may begin below zero


class Rate(msgspec.Struct, frozen=True):
    """A rate: `burst` calls at once, then one each `every` seconds."""

    burst: int
    every: float


class RateLimiter(msgspec.Struct, eq=False):
    """The limiter of one network. Its clock is steady: a rate does not follow a wall clock."""

    _network: str
    _overall: Rate
    _clock: Callable[[], float] = time.monotonic
    _full: dict[str, float] = {}  # the time at which the whole burst is available again
    _silent: dict[str, float] = {}

    async def wait(self, chat: str, rate: Rate) -> None:
        """Wait until a call to this chat may be made, and count it.

        Raises:
            AdapterError: the wait is too long; `retry_after` says how long.
        """
        now = self._clock()
        left = max(self._silent.get(chat, NEVER), self._silent.get(ALL_CHATS, NEVER)) - now
        if left <= 0:
            left = max(self._due(chat, rate), self._due(ALL_CHATS, self._overall)) - now
        if left > LONGEST_WAIT:
            raise make_rate_limit_error(self._network, left)
        self._count(chat, rate, now)
        self._count(ALL_CHATS, self._overall, now)
        if left > 0:
            await anyio.sleep(left)

    def told(self, chat: str, seconds: float) -> None:
        """Note the network's demand for silence in a chat; "": everywhere."""
        now = self._clock()
        self._silent = {where: until for where, until in self._silent.items() if until > now}
        self._silent[chat] = max(self._silent.get(chat, NEVER), now + seconds)

    @contextmanager
    def heeded(self, chat: str) -> Iterator[None]:
        """Watch a call to this chat: if the network demands silence, all later calls there wait."""
        try:
            yield
        except AdapterError as error:
            if error.retry_after:
                self.told(chat, error.retry_after)
            raise

    def _due(self, chat: str, rate: Rate) -> float:
        return self._full.get(chat, NEVER) - (rate.burst - 1) * rate.every

    def _count(self, chat: str, rate: Rate, now: float) -> None:
        if len(self._full) > MOST_CHATS:
            self._full = {where: full for where, full in self._full.items() if full > now}
        self._full[chat] = max(self._full.get(chat, NEVER), now) + rate.every

"""Calls to a server on loopback that a kill cut off: who called was gone before the answer."""

import asyncio
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler

SENDS = ("/sendmessage", "/messages", "/chat.postmessage", "/chat.startstream", "/chat.stopstream")
SLOWEST_SEND = 0.3


@dataclass(frozen=True)
class Kill:
    """Of a gateway, from before the signal until it was dead; `tools`: runs of a tool that it did not see end."""

    begun: float
    dead: float
    tools: int


@dataclass
class CutCalls:
    """Those of one kind. `spans`: when each began, and when it was seen that nobody waits for its answer."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    async def last(self, request: web.Request, seconds: float) -> None:
        """Keep who called waiting for so long."""
        begun = time.monotonic()
        await asyncio.sleep(seconds)
        if request.transport is None:
            self.spans.append((begun, time.monotonic()))

    def count_hit(self, kills: Iterable[Kill]) -> int:
        """How many of the kills were in the middle of one."""
        return sum(any(begun <= kill.dead and seen >= kill.begun for begun, seen in self.spans) for kill in kills)


class CutSends(CutCalls):
    """Of calls that send to a chat: it is shown there, and its answer takes a while, as on the real networks."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = random.Random(1)

    @web.middleware
    async def delay(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A middleware of a network's server."""
        answer = await handler(request)
        if request.method == "POST" and request.path.lower().endswith(SENDS):
            await self.last(request, self._chance.uniform(0.0, SLOWEST_SEND))
        return answer

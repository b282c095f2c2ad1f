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
    """A kill of a gateway, from before the signal until its death; `tools`: runs of a tool whose end it did not see."""

    begun: float
    dead: float
    tools: int


@dataclass
class CutCalls:
    """The cut calls of one kind. `spans`: each beginning, and the time when its caller was seen to be gone."""

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
    """The cut calls that send to a chat: the chat shows the message, and the answer takes a while."""

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

"""Server-sent events: only so many streams at a time, each with a beat in between, until somebody's login ends.

Then all of them come again, and whoever is no longer let in does not.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import anyio

from gateway.web.http_request import BEAT_SECONDS, HttpStream, SendPiece, keep_stream
from gateway.web.logins import Logins
from gateway.web.request_body import WebRefusal

MAX_STREAMS = 200

TellEvents: TypeAlias = Callable[[SendPiece], Awaitable[None]]


class LiveStreams:
    """All streams of the page."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._count = 0

    def open(self, tell: TellEvents, is_let_in: Callable[[], bool], headers: Mapping[str, str]) -> HttpStream:
        """A stream of what `tell` sends; it ends where `is_let_in` says no, which is asked again and again.

        Raises:
            WebRefusal: there are too many already.
        """
        if self._count >= MAX_STREAMS:
            what = f"{MAX_STREAMS} pages watch already"
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Retry_After="10")
        run = partial(self._run, tell, is_let_in)
        return HttpStream(run, "text/event-stream; charset=utf-8", headers)

    async def _run(self, tell: TellEvents, is_let_in: Callable[[], bool], send: SendPiece) -> None:
        self._count += 1
        watcher = self._logins.watch()

        async def look() -> None:
            while is_let_in():  # noqa: ASYNC110 - it tells nobody when it changes
                await anyio.sleep(BEAT_SECONDS)
            watcher.cancel()

        try:
            with watcher:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(look)
                    tasks.start_soon(keep_stream, send)
                    await tell(send)
        finally:
            self._count -= 1
            self._logins.leave(watcher)


def encode_event(kind: str, data: bytes, number: str = "") -> bytes:
    """One event; whoever comes back names the `number` of the last one."""
    named = f"id: {number}\n" if number else ""
    return f"{named}event: {kind}\ndata: ".encode() + data + b"\n\n"

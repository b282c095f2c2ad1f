"""Server-sent events: a limited number of streams, each with a heartbeat, until a login ends.

When any login ends, all streams are closed and the pages reconnect; a person whose access was revoked cannot. Only an
owner has more than a few streams, so that one person cannot lock out others.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from gateway.records.records import Login
from gateway.web.http_request import HttpStream, SendPiece, keep_stream
from gateway.web.logins import Logins
from gateway.web.request_body import WebRefusal

MAX_STREAMS = 200
MOST_OF_ONE = 20  # of one person

TellEvents: TypeAlias = Callable[[SendPiece], Awaitable[None]]


class LiveStreams(msgspec.Struct, eq=False):
    """All streams of the page."""

    _logins: Logins
    _counts: Counter[str] = msgspec.field(default_factory=Counter)  # by person

    def open(
        self, login: Login, tell: TellEvents, is_let_in: Callable[[], bool], headers: Mapping[str, str]
    ) -> HttpStream:
        """Open a stream of what `tell` sends, until `is_let_in` returns False.

        `is_let_in` is called before each piece.

        Raises:
            WebRefusal: too many streams are open, in all or for this person.
        """
        if self._counts.total() >= MAX_STREAMS:
            what = f"{MAX_STREAMS} pages watch already"
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Retry_After="10")
        if login.role != "owner" and self._counts[login.person] >= MOST_OF_ONE:
            what = f"{MOST_OF_ONE} pages of yours watch already"
            raise WebRefusal(HTTPStatus.TOO_MANY_REQUESTS, what, Retry_After="10")
        run = partial(self._run, login.person, tell, is_let_in)
        return HttpStream(run, "text/event-stream; charset=utf-8", headers)

    async def _run(self, person: str, tell: TellEvents, is_let_in: Callable[[], bool], send: SendPiece) -> None:
        self._counts[person] += 1
        watcher = self._logins.watch()

        async def send_if_let_in(piece: bytes) -> None:
            if not is_let_in():
                watcher.cancel()
                await checkpoint()  # the cancellation takes effect here
            await send(piece)

        try:
            with watcher:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(keep_stream, send_if_let_in)
                    await tell(send_if_let_in)
        finally:
            self._counts -= Counter([person])
            self._logins.leave(watcher)


def encode_event(kind: str, data: bytes, number: str = "") -> bytes:
    """Encode one event; a client that reconnects sends the `number` of its last one."""
    named = f"id: {number}\n" if number else ""
    return f"{named}event: {kind}\ndata: ".encode() + data + b"\n\n"

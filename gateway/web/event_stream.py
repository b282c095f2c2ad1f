"""Events for open pages, as they happen; a page that lost its connection gets the events that it missed.

Each event has a number. The last events are kept, up to a number and a size, and a page that returns with the number of
its last event gets all later ones. If some of them are no longer kept, the page gets a `gap` event. Nothing is watched
before the first visitor, nor once the last one has been away for a while.
"""

import json
import time
import uuid
from asyncio import get_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn, TypeAlias

import anyio
import msgspec

from gateway.control.server import encode_message
from gateway.messages.roles import Role, is_admin, rank_of
from gateway.records.activity import QUIET_SECONDS, Activity
from gateway.records.records import ActivityRecord, Login
from gateway.verbs import Notify
from gateway.web.http_request import HttpRequest, HttpStream, SendPiece
from gateway.web.live_stream import LiveStreams, encode_event
from gateway.web.request_body import WebRefusal
from gateway.web.visitors import FindRole

TailEvents: TypeAlias = Callable[[Notify], Coroutine[Any, Any, None]]

MAX_EVENTS = 2000
MAX_BYTES = 4 << 20
LONGEST_TEXT = 500
LINGER_SECONDS = 300.0
TOLD_EVERY = 0.1
WOKEN_AT_ONCE = 4  # two hundred pages are woken in small groups, so that other work gets its turn
UNTOLD = ("llm:chunk",)  # the pieces of an answer: a page needs only the whole answer


class LiveEvent(NamedTuple):
    """An encoded event: `whole` for admins, `cut` for operators. `number` is 0 for a gap."""

    number: int
    whole: bytes
    cut: bytes


GAP = LiveEvent(0, encode_event("gap", b"{}"), encode_event("gap", b"{}"))


class EventStream:
    """The events for open pages. `tail` calls back for each event, until cancelled; `cut` reduces one for operators."""

    def __init__(self, tail: TailEvents, redact: Callable[[Any], Any], cut: Callable[[Any], Any]) -> None:
        self.run_id = uuid.uuid4().hex[:8]
        self._tail = tail
        self._redact = redact
        self._cut = cut
        self._events: deque[LiveEvent] = deque()
        self._bytes = 0
        self._last = 0
        self._waiting: deque[anyio.Event] = deque()
        self._watched = anyio.Event()
        self._watchers = 0
        self._is_due = False

    async def run(self) -> NoReturn:
        """Collect events while pages are open, until cancelled."""
        while True:
            await self._watched.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tail, self._note)
                await self._until_unwatched()
                tasks.cancel_scope.cancel()

    async def follow(self, seen: str = "") -> AsyncGenerator[list[LiveEvent], None]:
        """Yield the events behind the one with this id (`RUN-NUMBER`), or all from now on. Never ends by itself.

        Yields several at a time: the events of one moment come in one piece, however many pages watch.
        """
        run_id, _, number = seen.partition("-")
        after = int(number) if number.isascii() and number.isdecimal() and len(number) < 16 else self._last
        self._watchers += 1
        self._watched.set()
        try:
            if seen and (run_id != self.run_id or after < self._oldest - 1 or after > self._last):
                yield [GAP]
                after = self._last
            while True:
                if behind := self._list_behind(after):
                    is_overtaken = behind[0].number > after + 1  # a slow reader
                    after = behind[-1].number
                    yield [GAP, *behind] if is_overtaken else behind
                else:
                    await self._wait_for_news()
        finally:
            self._watchers -= 1
            self._tell()

    def _list_behind(self, after: int) -> list[LiveEvent]:
        return list(takewhile(lambda one: one.number > after, reversed(self._events)))[::-1]

    @property
    def _oldest(self) -> int:
        return self._events[0].number if self._events else self._last + 1

    async def _until_unwatched(self) -> None:
        """Wait until no page has watched for a while."""
        while True:
            while self._watchers:
                await self._wait_for_news()
            with anyio.move_on_after(LINGER_SECONDS):
                while not self._watchers:
                    await self._wait_for_news()
            if not self._watchers:
                self._watched = anyio.Event()
                return

    async def _note(self, _kind: str, event: Any) -> None:
        if event["event"] in UNTOLD:
            return
        fields = {name: cut_field(value) for name, value in event["fields"].items()}
        told = self._redact(msgspec.to_builtins({**event, "fields": fields}, enc_hook=str))
        self._last += 1
        whole, cut = (self._encode(shown) for shown in (told, self._cut(told)))
        self._events.append(LiveEvent(self._last, whole, cut))
        self._bytes += len(whole) + len(cut)
        while len(self._events) > MAX_EVENTS or self._bytes > MAX_BYTES:
            gone = self._events.popleft()
            self._bytes -= len(gone.whole) + len(gone.cut)
        if not self._is_due:
            self._is_due = True
            get_running_loop().call_later(TOLD_EVERY, self._tell)

    def _encode(self, told: Any) -> bytes:
        """Encode an event once for all pages."""
        return encode_event("event", encode_message(told), f"{self.run_id}-{self._last}")

    async def _wait_for_news(self) -> None:
        news = anyio.Event()
        self._waiting.append(news)
        await news.wait()

    def _tell(self) -> None:
        self._is_due = False
        waiting, self._waiting = self._waiting, deque()
        self._wake(waiting)

    def _wake(self, waiting: deque[anyio.Event]) -> None:
        """Wake a few of the waiting pages now, and the others after these have had their turn."""
        for _ in range(min(WOKEN_AT_ONCE, len(waiting))):
            waiting.popleft().set()
        if waiting:
            get_running_loop().call_soon(self._wake, waiting)


def cut_field(value: Any) -> Any:
    """Shorten a field for the page: cut a long text, and any value whose JSON is long."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…"
    if value is None or isinstance(value, bool | int | float):
        return value
    written = encode_message(value).decode()
    return value if len(written) <= LONGEST_TEXT else f"{written[:LONGEST_TEXT]}…"


class EventRoom(msgspec.Struct, eq=False):
    """Answers `/live` for the role `lowest` and higher ones; only admins see the words of messages."""

    feed: EventStream
    streams: LiveStreams
    headers: Mapping[str, str]
    lowest: Role
    activity: Activity
    find_role: FindRole

    async def answer(self, request: HttpRequest, login: Login) -> HttpStream:
        """Open a stream of events; raises WebRefusal."""
        if rank_of(login.role) < rank_of(self.lowest):
            raise WebRefusal(HTTPStatus.FORBIDDEN, f"events are not for the role {login.role}")
        seen = request.headers.get("last-event-id") or request.fields.get("seen", "")
        if time.time() - login.at > QUIET_SECONDS:  # else its login says it already
            await self.activity.write(ActivityRecord(what="events.tail"), is_look=True)
        tell = partial(self._tell, seen, is_admin(login.role))
        return self.streams.open(login, tell, partial(self._is_still, login), self.headers)

    def _is_still(self, login: Login) -> bool:
        """Return True if the person may still see as much as when the stream began."""
        role = self.find_role(login.person)
        return role is not None and rank_of(role) >= rank_of(login.role)

    async def _tell(self, seen: str, is_whole: bool, send: SendPiece) -> None:
        await send(b"retry: 1000\n" + encode_event("hello", json.dumps(self.feed.run_id).encode()))
        async with aclosing(self.feed.follow(seen)) as events:
            async for told in events:
                await send(b"".join(one.whole if is_whole else one.cut for one in told))

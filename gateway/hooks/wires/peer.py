"""The gateway's end of a wire that speaks lines: calls go out, answers and requests come in.

It never holds the event loop and never grows without bound, whatever is written at the other end: of what has arrived
only a bounded part is decoded in one turn of the loop, only so many requests are served at once, and nothing is read
while the other end does not read our answers. Then its writes wait, and so it pays itself.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from anyio.abc import TaskGroup

from gateway.hooks.wires import codec
from gateway.hooks.wires.codec import Garbled, Lines, Message
from gateway.hooks.wires.wire import Capability, HookFailed

MOST_OPEN = 64  # requests of one hook that are served at once
MOST_WAITING = 64 << 20  # bytes that we keep for somebody who does not read
REST = 4  # times as long as it has worked for it, the loop is free of a hook that has written more than a turn's work
OURS = "gateway."
CONTROL = "$"  # begins the methods of the wire itself, which are no events


class Reader(Protocol):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Writer(Protocol):
    def write(self, data: bytes) -> None: ...

    def get_write_buffer_size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that is not answered. `over` is told once, even when nobody waits for the answer any more."""

    future: "asyncio.Future[Message]"
    over: Callable[[int], None]


class Peer:
    """`noticed` gets the messages of the wire itself; `lost` hears why the wire cannot be used any more."""

    def __init__(
        self,
        serve: Capability,
        tasks: TaskGroup,
        noticed: Callable[[Message], None],
        lost: Callable[[str], None],
    ) -> None:
        self._serve_request = serve
        self._tasks = tasks
        self._noticed = noticed
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._lines = Lines()
        self._numbers = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._served = 0
        self._is_choked = self._is_paused = self._is_scheduled = self._is_closed = False

    def attach(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def is_idle(self) -> bool:
        return not self._pending

    # What the transports say.

    def received(self, data: bytes | memoryview) -> None:
        if not self._is_closed:
            self._lines.feed(data)
            if not self._is_scheduled:
                self._work()

    def choke(self) -> None:
        """The other end does not read: then nothing of it is read either."""
        self._is_choked = True

    def ease(self) -> None:
        self._is_choked = False
        self._schedule()

    def hang_up(self) -> None:
        """Nothing can be written any more; what waits for an answer still waits to be told why there is none."""
        self._is_closed = True

    # What the owner does.

    def call(self, method: str, params: bytes, meta: bytes, over: Callable[[int], None]) -> tuple[int, Pending]:
        """Begin a call. Raises HookFailed when the other end has long stopped reading."""
        if self._writer.get_write_buffer_size() > MOST_WAITING:
            raise HookFailed(f"it does not read: {MOST_WAITING >> 20} MB wait for it", kind="refused")
        number = next(self._numbers)
        pending = self._pending[number] = Pending(self._loop.create_future(), over)
        if not self._is_closed:
            self._writer.write(codec.request(number, method, params, meta))
        return number, pending

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        if not self._is_closed:
            self._writer.write(codec.notice(method, params))

    def close(self, failure: Callable[[], HookFailed]) -> None:
        """Nothing more comes: whoever waits for an answer gets this failure."""
        self._is_closed = True
        pending, self._pending = self._pending, {}
        for number, call in pending.items():
            call.over(number)
            if not call.future.done():
                call.future.set_exception(failure())

    # What arrives.

    def _is_full(self) -> bool:
        return self._is_choked or self._served >= MOST_OPEN

    def _schedule(self, delay: float = 0) -> None:
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_later(delay, self._work)

    def _work(self) -> None:
        self._is_scheduled = False
        begun = self._loop.time()
        try:
            while not self._is_closed and not self._is_full():
                message = self._lines.take()
                if message is None:
                    break
                self._hear(message)
        except Garbled as error:
            self._is_closed = True
            self._lost(f"it wrote {error}")
        if not self._is_closed:
            self._regulate(self._lines.renew(), self._loop.time() - begun)

    def _regulate(self, is_more: bool, took: float) -> None:
        if is_more and not self._is_full():
            self._schedule(took * REST)
        must_pause = is_more or self._is_full()
        if must_pause != self._is_paused:
            self._is_paused = must_pause
            if must_pause:
                self._reader.pause_reading()
            else:
                self._reader.resume_reading()

    def _hear(self, message: Message) -> None:
        if message.method is None:
            self._end_call(message)
        elif message.method.startswith(CONTROL):
            self._noticed(message)
        elif not message.method.startswith(OURS) or not isinstance(message.params or {}, dict):
            said = (
                f"{message.method[:100]!r} is no request: ask for gateway.send and the like, with an object as params"
            )
            self._respond(message, codec.failure(message.id, codec.METHOD_UNKNOWN, said))
        else:
            self._served += 1
            self._tasks.start_soon(self._serve, message.method.removeprefix(OURS), message)

    def _end_call(self, message: Message) -> None:
        number = message.id
        if isinstance(number, int) and number in self._pending:
            call = self._pending.pop(number)
            call.over(number)
            if not call.future.done():
                call.future.set_result(message)

    def _respond(self, message: Message, line: bytes) -> None:
        if message.id is not None and not self._is_closed:
            self._writer.write(line)

    async def _serve(self, verb: str, message: Message) -> None:
        params = message.params if isinstance(message.params, dict) else {}
        try:
            line = codec.response(message.id, await self._serve_request(verb, params, message.during))
        except Exception as error:  # noqa: BLE001 - a part of the gateway; the hook is who must hear of it
            line = codec.failure(message.id, codec.RAISED, str(error) or type(error).__name__)
        finally:
            if self._is_full():
                self._schedule()
            self._served -= 1
        self._respond(message, line)

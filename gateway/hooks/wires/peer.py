"""The gateway's end of a wire: a peer sends calls, and receives answers and requests.

The memory of a peer is bounded for any input: the peer serves at most `MAX_OPEN_REQUESTS` requests at once, and reads
nothing while the other end does not read our answers. Then the writes of the other end block, at its own cost.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from anyio.abc import TaskGroup

from gateway.hooks.wires import codec
from gateway.hooks.wires.codec import BadMessage, LineDecoder, RpcMessage
from gateway.hooks.wires.wire import Capability, HookFailed
from gateway.worker.protocol import RAISED, REQUEST_PREFIX

REST_FACTOR = 4  # the loop is free for so many times as long as it worked for one hook


class MessageReader:
    """A reader that passes on messages by `handle`, pauses while `is_full`, and reports a broken wire by `lost`."""

    def __init__(
        self, handle: Callable[[RpcMessage], None], is_full: Callable[[], bool], lost: Callable[[str], None]
    ) -> None:
        self._handle = handle
        self._is_full = is_full
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._lines = LineDecoder()
        self._is_paused = self._is_scheduled = False
        self.is_closed = False

    def attach(self, reader: asyncio.ReadTransport) -> None:
        self._reader = reader

    def received(self, data: bytes | memoryview) -> None:
        if not self.is_closed:
            self._lines.feed(data)
            if not self._is_scheduled:
                self._work()

    def schedule(self, delay: float = 0) -> None:
        """Decode the received bytes soon."""
        if not self._is_scheduled and not self.is_closed:
            self._is_scheduled = True
            self._loop.call_later(delay, self._work)

    def _work(self) -> None:
        self._is_scheduled = False
        begun = self._loop.time()
        try:
            while not self.is_closed and not self._is_full():
                message = self._lines.take()
                if message is None:
                    break
                self._handle(message)
        except BadMessage as error:
            self.is_closed = True
            self._lost(f"it wrote {error}")
        if not self.is_closed:
            self._regulate(self._lines.renew(), self._loop.time() - begun)

    def _regulate(self, is_more: bool, took: float) -> None:
        is_full = self._is_full()
        if is_more and not is_full:
            self.schedule(took * REST_FACTOR)
        if (is_more or is_full) != self._is_paused:
            self._is_paused = not self._is_paused
            if self._is_paused:
                self._reader.pause_reading()
            else:
                self._reader.resume_reading()


MAX_OPEN_REQUESTS = 64  # requests of one hook that are served at once
MAX_UNREAD_BYTES = 64 << 20  # bytes kept for a peer that does not read
CONTROL_PREFIX = "$"  # starts the methods of the wire itself, which are not events


class Peer:
    """One end of a wire. `noticed` gets the messages about the wire itself; `lost` gets the reason if the wire breaks.

    The peer calls the `over` of a call once, even if no caller waits for the answer any more.
    """

    def __init__(
        self, serve: Capability, tasks: TaskGroup, noticed: Callable[[RpcMessage], None], lost: Callable[[str], None]
    ) -> None:
        self._serve_request = serve
        self._tasks = tasks
        self._noticed = noticed
        self._reader = MessageReader(self._handle, self._is_full, lost)
        self._requests: deque[tuple[str, RpcMessage]] = deque()
        self._wakeup = asyncio.Event()
        self._numbers = itertools.count(1)
        self._pending: dict[int, tuple[asyncio.Future[RpcMessage], Callable[[int], None]]] = {}
        self._served = 0
        self._is_choked = False
        tasks.start_soon(self._start_requests)

    def attach(self, reader: asyncio.ReadTransport, writer: asyncio.WriteTransport) -> None:
        self._reader.attach(reader)
        self._writer = writer

    # The transports call these.

    def received(self, data: bytes | memoryview) -> None:
        self._reader.received(data)

    def pause_requests(self) -> None:
        """Stop reading, because the other end does not read either."""
        self._is_choked = True

    def resume_requests(self) -> None:
        self._is_choked = False
        self._reader.schedule()

    def hang_up(self) -> None:
        """Stop reading and writing; waiting calls get their error from `close`."""
        self._reader.is_closed = True

    # The owner calls these.

    def call(
        self, method: str, params: bytes, meta: bytes, over: Callable[[int], None]
    ) -> tuple[int, asyncio.Future[RpcMessage]]:
        """Start a call. Raises HookFailed if too many bytes wait for the other end to read."""
        if self._writer.get_write_buffer_size() > MAX_UNREAD_BYTES:
            raise HookFailed(f"it does not read: {MAX_UNREAD_BYTES >> 20} MB wait for it", kind="refused")
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._pending[number] = future, over
        self._write(codec.encode_request(number, method, params, meta))
        return number, future

    @property
    def is_serving(self) -> bool:
        """Return True if a request of the other end waits for its answer."""
        return self._served > 0

    def tell(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._write(codec.encode_notice(method, params))

    def close(self, failure: Callable[[], HookFailed]) -> None:
        """End all waiting calls with this failure."""
        self.hang_up()
        self._wakeup.set()
        pending, self._pending = self._pending, {}
        for number, (future, over) in pending.items():
            over(number)
            if not future.done():
                future.set_exception(failure())

    def _is_full(self) -> bool:
        return self._is_choked or self._served >= MAX_OPEN_REQUESTS

    def _write(self, line: bytes) -> None:
        if not self._reader.is_closed:
            self._writer.write(line)

    def _handle(self, message: RpcMessage) -> None:
        if message.method is None:
            self._end_call(message)
        elif message.method.startswith(CONTROL_PREFIX):
            self._noticed(message)
        elif not message.method.startswith(REQUEST_PREFIX) or not isinstance(message.params or {}, dict):
            fault = f"{message.method[:100]!r} is not a request: ask for gateway.send and the like, params an object"
            self._answer(message, codec.encode_error(message.id, codec.METHOD_UNKNOWN, fault))
        else:
            self._served += 1
            self._requests.append((message.method.removeprefix(REQUEST_PREFIX), message))
            self._wakeup.set()

    def _end_call(self, message: RpcMessage) -> None:
        number = message.id
        if isinstance(number, int) and number in self._pending:
            future, over = self._pending.pop(number)
            over(number)
            if not future.done():
                future.set_result(message)

    def _answer(self, message: RpcMessage, line: bytes) -> None:
        if message.id is not None:
            self._write(line)

    async def _start_requests(self) -> None:
        """Start tasks for requests: requests arrive in a transport's callback, which must not start tasks itself."""
        while not self._reader.is_closed:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._requests:
                self._tasks.start_soon(self._serve, *self._requests.popleft())

    async def _serve(self, verb: str, message: RpcMessage) -> None:
        params = message.params if isinstance(message.params, dict) else {}
        try:
            line = codec.encode_response(message.id, await self._serve_request(verb, params, message.during))
        except Exception as error:  # noqa: BLE001 - an error of the gateway, which the hook must get
            line = codec.encode_error(message.id, RAISED, str(error) or type(error).__name__)
        finally:
            if self._is_full():
                self._reader.schedule()
            self._served -= 1
        self._answer(message, line)

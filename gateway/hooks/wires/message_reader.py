"""Messages off a wire, no faster than the gateway can act on them.

Of what has arrived only a bounded part is decoded in one turn of the event loop; who writes more than that is let
wait, so that the loop is others' most of the time; and who is not to be heard now is not read.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.hooks.wires.codec import BadMessage, LineDecoder, RpcMessage

REST_FACTOR = 4  # times as long as it worked for one hook, the loop is free of it


class PausableReader(Protocol):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class MessageReader:
    """`hear` gets each message; `is_full` says that none is wanted now; `lost` why none will come any more."""

    def __init__(
        self, hear: Callable[[RpcMessage], None], is_full: Callable[[], bool], lost: Callable[[str], None]
    ) -> None:
        self._hear = hear
        self._is_full = is_full
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._lines = LineDecoder()
        self._is_paused = self._is_scheduled = False
        self.is_closed = False

    def attach(self, reader: PausableReader) -> None:
        self._reader = reader

    def received(self, data: bytes | memoryview) -> None:
        if not self.is_closed:
            self._lines.feed(data)
            if not self._is_scheduled:
                self._work()

    def schedule(self, delay: float = 0) -> None:
        """Look soon at what has arrived."""
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
                self._hear(message)
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

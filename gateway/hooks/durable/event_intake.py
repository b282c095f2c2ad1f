"""The way into the journal for events outside of turns and deliveries: batch after batch, in order.

Firing an event never waits for the journal. A caller that fires an event for a hook or a network waits until the event
is written, and then confirms the request. So a confirmed event is safe, and a caller can fire no faster than the
journal writes.
"""

from asyncio import AbstractEventLoop, get_running_loop
from collections import deque
from contextlib import suppress
from functools import partial
from threading import get_ident

import anyio

from gateway.engine.interface import Engine, NewRecord, append_until_written
from gateway.errors import Duplicate

BATCH = 200  # records in one append


class EventIntake:
    """The events that wait to be written: `add` accepts an event at once, and `run` writes the events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[NewRecord] = deque()
        self._taken = 0
        self._written = 0
        self._news = anyio.Event()
        self._progress = anyio.Event()
        self._life = anyio.CancelScope(shield=True)
        self._loop: AbstractEventLoop | None = None
        self._thread = 0

    def add(self, put: NewRecord) -> None:
        """Write this record soon; may be called from any thread."""
        self._waiting.append(put)
        self._taken += 1
        if self._loop is None or get_ident() == self._thread:
            self._news.set()
        else:
            self._loop.call_soon_threadsafe(self._news.set)

    async def wait_until_written(self) -> None:
        """Wait until all earlier records are in the journal, even if the journal accepts no appends for a long time."""
        upto = self._taken
        while self._written < upto:
            await self._progress.wait()

    async def run(self) -> None:
        """Write events until `end`, even if the caller is cancelled."""
        self._loop, self._thread = get_running_loop(), get_ident()
        with self._life:
            while True:
                await self._wait_for_news()
                batch = [self._waiting[at] for at in range(min(BATCH, len(self._waiting)))]
                await self._write(batch)
                for _ in batch:
                    self._waiting.popleft()
                self._written += len(batch)
                self._progress.set()
                self._progress = anyio.Event()

    def end(self) -> None:
        """Stop writing; records that are not written by now are lost."""
        self._life.cancel()

    async def _wait_for_news(self) -> None:
        if not self._waiting:
            self._news = anyio.Event()
            if not self._waiting:  # another thread may have added a record at this moment
                await self._news.wait()

    async def _write(self, batch: list[NewRecord]) -> None:
        what = f"an event on {batch[0].subject}"
        try:
            await append_until_written(partial(self._engine.append, *batch), what)
        except Duplicate:  # one record is in the journal already; the error does not say which
            for put in batch:
                with suppress(Duplicate):
                    await append_until_written(partial(self._engine.append, put), what)

"""A TCP line between a gateway and a network, which can freeze: open, and nothing passes, as behind a dead router."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from tests.spine import until


class Line:
    """Carries bytes both ways. `flows` is cleared to freeze it; who connects then is taken, and hears nothing."""

    def __init__(self, port: int) -> None:
        self.flows = asyncio.Event()
        self.flows.set()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._target = port
        self._tasks: set[asyncio.Task[None]] = set()
        self._carried: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End the connections, and refuse new ones until it is opened again."""
        if self._server:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self.carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Nothing of it is left when this returns."""
        self.cut()
        self.flows.set()
        await until(lambda: not self._carried)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        self._carried.add(writer)
        ends = [writer]
        with suppress(OSError):
            await self.flows.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            ends.append(back)
            ways = [asyncio.create_task(self._pass(*way)) for way in ((reader, back), (there, writer))]
            self._tasks.update(ways)
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for one in ends:
            one.close()
            with suppress(OSError):
                await one.wait_closed()
        self._carried.discard(writer)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self.flows.wait()
                target.write(data)
                await target.drain()


@asynccontextmanager
async def line_to(url: str) -> AsyncIterator[tuple[str, Line]]:
    """The address to use instead of this one, and the line."""
    line = Line(urlsplit(url).port or 0)
    await line.open()
    try:
        yield f"http://127.0.0.1:{line.port}", line
    finally:
        await line.end()

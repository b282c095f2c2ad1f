"""A TCP line between a gateway and a network, which can freeze: open, and nothing passes, as behind a dead router."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Line:
    """Carries bytes both ways. `flows` is cleared to freeze it; who connects then is taken, and hears nothing."""

    def __init__(self, port: int) -> None:
        self.flows = asyncio.Event()
        self.flows.set()
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """The connections end, and who comes anew waits until it flows."""
        self.flows.clear()
        for task in self._tasks:
            task.cancel()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        with suppress(OSError):
            await self.flows.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            ways = [asyncio.create_task(self._pass(*way)) for way in ((reader, back), (there, writer))]
            self._tasks.update(ways)
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for one in (writer, back):
                one.close()

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
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", line
    finally:
        line.flows.set()
        server.close()

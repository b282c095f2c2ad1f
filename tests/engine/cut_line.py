"""The way to a server, which a test cuts and mends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from tests.http_server import find_free_ports


class CutLine:
    """Passes on what comes at a port of its own, as long as it is not cut; `sent`: what clients have said."""

    def __init__(self, url: str) -> None:
        to = urlsplit(url)
        self._host, self._to = to.hostname or "", to.port or 0
        (self._port,) = find_free_ports(1)
        self.url = f"{to.scheme}://127.0.0.1:{self._port}"
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.sent = bytearray()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self._port)

    async def cut(self) -> None:
        if self._server:
            self._server.close()
        for end in list(self._ends):
            end.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection(self._host, self._to)
        self._ends |= {writer, on}
        await asyncio.gather(self._pass_on(reader, on, self.sent), self._pass_on(there, writer, bytearray()))
        self._ends -= {writer, on}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: bytearray) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                passed += data
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def open_line(url: str) -> AsyncIterator[CutLine]:
    line = CutLine(url)
    await line.mend()
    try:
        yield line
    finally:
        await line.cut()

"""A real HTTP server on loopback, of the least kind, for the tests of both ends of remote hooks."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateway.hooks.server import HookServer

Reply = Callable[[dict[str, str], bytes], Awaitable[bytes]]


class Site:
    """A real HTTP server on loopback, of the least kind; it remembers what it was sent."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while line := await reader.readline():
                assert line.startswith(b"POST /hooks HTTP/1.1")
                headers = {}
                while line := (await reader.readline()).strip():
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers["content-length"]))
                self.requests.append((headers, json.loads(body)))
                writer.write(await self.reply(headers, body))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def site(reply: Reply) -> AsyncIterator[Site]:
    served = Site(reply)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    async with server:
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hooks"
        yield served


def page(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def serving(server: HookServer) -> Reply:
    """Serve our application as an ASGI server would."""

    async def reply(headers: dict[str, str], body: bytes) -> bytes:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await server({"type": "http", "method": "POST", "headers": raw}, receive, send)
        kind = next((value.decode() for name, value in sent[0]["headers"] if name == b"content-type"), "text/plain")
        return page(sent[1]["body"], f"{sent[0]['status']} Said", f"content-type: {kind}")

    return reply

"""Proxies between a machine and the endpoint of a model: by HTTP, and by SOCKS5."""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketAttribute

LOGIN = b"me:pass word"


class Proxy:
    """A proxy that wants a login. `asked` are its requests, without their content."""

    def __init__(self, port: int) -> None:
        self.place = f"127.0.0.1:{port}"
        self.url = f"http://me:pass%20word@{self.place}"
        self.asked: list[str] = []

    async def serve_http(self, client: ByteStream) -> None:
        """CONNECT, and the forwarding of a request with a whole address."""
        async with client:
            head = await read_until(client, b"\r\n\r\n")
            method, target = head.split(b" ", 2)[:2]
            if b"Proxy-Authorization: Basic " + b64encode(LOGIN) not in head:
                await client.send(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                return
            self.asked.append(f"{method.decode()} {target.decode()}")
            place = target if method == b"CONNECT" else target.split(b"/")[2]
            host, _, port = place.decode().partition(":")
            async with await anyio.connect_tcp(host, int(port)) as server:
                if method == b"CONNECT":
                    await client.send(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    await server.send(head)
                await relay(client, server)

    async def serve_socks(self, client: ByteStream) -> None:
        async with client:
            await client.receive(3)
            await client.send(b"\x05\x00")
            request = await client.receive(300)
            name = request[5 : 5 + request[4]] if request[3] == 3 else b".".join(b"%d" % one for one in request[4:8])
            port = int.from_bytes(request[-2:], "big")
            self.asked.append(f"{name.decode()}:{port}")
            async with await anyio.connect_tcp(name.decode(), port) as server:
                await client.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
                await relay(client, server)


async def read_until(stream: ByteStream, end: bytes) -> bytes:
    found = b""
    while end not in found:
        found += await stream.receive()
    return found


async def relay(one: ByteStream, other: ByteStream) -> None:
    async with anyio.create_task_group() as group:

        async def copy(source: ByteStream, target: ByteStream) -> None:
            try:
                async for piece in source:
                    await target.send(piece)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            group.cancel_scope.cancel()

        group.start_soon(copy, one, other)
        group.start_soon(copy, other, one)


@asynccontextmanager
async def proxying(kind: str = "http") -> AsyncIterator[Proxy]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    proxy = Proxy(listener.extra(SocketAttribute.local_port))
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, proxy.serve_http if kind == "http" else proxy.serve_socks)
        yield proxy
        group.cancel_scope.cancel()
    await listener.aclose()

"""An endpoint for models that misbehaves to order."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.abc import ByteStream, Listener
from anyio.streams.tls import TLSListener

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Endpoint:
    """A server that answers each request with given bytes, and keeps the requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.answers: list[bytes] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.connections = 0
        self.closed = 0
        self.closes = False  # after each answer, without a word about it
        self.pages: dict[str, bytes] = {}  # what is answered to GET

    def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers.append("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def stream(self, *pieces: bytes | str, end: bool = True) -> None:
        """An event stream of these data; without its end the connection is closed in the middle."""
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        events = b"".join(
            b"data: " + (piece if isinstance(piece, bytes) else piece.encode()) + b"\n\n" for piece in pieces
        )
        self.answers.append(head + f"{len(events):x}\r\n".encode() + events + (b"\r\n0\r\n\r\n" if end else b""))

    async def serve(self, stream: ByteStream) -> None:
        self.connections += 1
        async with stream:
            await self._converse(stream)
        self.closed += 1

    async def _converse(self, stream: ByteStream) -> None:
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                try:
                    buffer += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
            head, buffer = buffer.split(b"\r\n\r\n", 1)
            if head.startswith(b"GET "):
                await stream.send(self.pages.get(head.split()[1].decode(), NOT_FOUND))
                continue
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            while len(buffer) < length:
                buffer += await stream.receive()
            self.requests.append((head.decode(), json.loads(buffer[:length])))
            buffer = buffer[length:]
            answer = self.answers.pop(0)
            await stream.send(answer)
            if answer == b"stall":
                await anyio.sleep_forever()
            if self.closes or (b"chunked" in answer and not answer.endswith(b"0\r\n\r\n")):
                return


@asynccontextmanager
async def serving(certificate: Path | None = None) -> AsyncIterator[Endpoint]:
    """`certificate`: with its key, where it speaks TLS."""
    listener: Listener[Any] = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = Endpoint(listener.extra(anyio.abc.SocketAttribute.local_port))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        listener = TLSListener(listener, context, standard_compatible=False)
        server.url = server.url.replace("http://", "https://")
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.serve)
        yield server
        group.cancel_scope.cancel()
    await listener.aclose()

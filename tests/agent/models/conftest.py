"""Endpoints to call: an independent one that others wrote, and one of our own that misbehaves to order."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

ROOT = Path(__file__).parents[3]
AIMOCK = "@copilotkit/aimock"
VERSION = "1.43.0"

FIXTURES = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "weather", "arguments": '{"city":"Paris"}'}]},
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "It is 18 C in Paris."}},
    {"match": {"userMessage": "slow"}, "response": {"content": "one two three"}, "chunkSize": 4, "latency": 40},
    {
        "match": {"userMessage": "limit"},
        "response": {"error": {"message": "Rate limited", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "cut"},
        "response": {"content": "cut before its end"},
        "chunkSize": 5,
        "truncateAfterChunks": 3,
    },
]


def aimock() -> Path:
    """The server, fetched by npm the first time; without npm its tests are skipped, which CI does not allow."""
    program = ROOT / "node_modules" / AIMOCK / "dist" / "cli.js"
    if not program.exists() and shutil.which("npm"):
        flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        command = ["npm", "install", "--prefix", str(ROOT), *flags, f"{AIMOCK}@{VERSION}"]
        subprocess.run(command, capture_output=True, timeout=120)
    if not program.exists() or not shutil.which("node"):
        reason = f"the model server {AIMOCK} needs Node.js: apt install npm"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


@pytest.fixture(scope="session")
def independent_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An OpenAI-compatible server that knows nothing of us."""
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": FIXTURES}))
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = ["node", str(aimock()), "-p", str(port), "-f", str(folder)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_open(port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()
            server.wait()


def wait_until_open(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with closing(socket.socket()) as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


class Endpoint:
    """A server that answers each request with the bytes that it was told, and keeps the requests."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.answers: list[bytes | Callable[[SocketStream], AsyncIterator[None]]] = []
        self.requests: list[tuple[str, dict]] = []
        self.connections = 0

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

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        buffer = b""
        async with stream:
            while True:
                while b"\r\n\r\n" not in buffer:
                    try:
                        buffer += await stream.receive()
                    except (anyio.EndOfStream, anyio.BrokenResourceError):
                        return
                head, buffer = buffer.split(b"\r\n\r\n", 1)
                length = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                while len(buffer) < length:
                    buffer += await stream.receive()
                self.requests.append((head.decode(), json.loads(buffer[:length])))
                buffer = buffer[length:]
                answer = self.answers.pop(0)
                await stream.send(answer if isinstance(answer, bytes) else b"")
                if answer == b"stall":
                    await anyio.sleep_forever()
                if b"chunked" in answer and not answer.endswith(b"0\r\n\r\n"):
                    return


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = Endpoint(listener.extra(anyio.abc.SocketAttribute.local_port))
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.serve)
        yield server
        group.cancel_scope.cancel()
    await listener.aclose()

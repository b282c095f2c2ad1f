"""A server of HTTP on loopback, in a thread of its own; and ports that are free."""

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOWEST_PORT, PORTS = 10_000, 22_000


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs no request."""

    def answer(self, body: bytes, kind: str = "application/json") -> None:
        """All is well, and this is it."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """Serve while inside; waiting callers are answered before the end."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def find_free_ports(count: int) -> list[int]:
    """Below those that the system gives to whoever connects, so that nobody has one before it is used."""
    found: list[int] = []
    while len(found) < count:
        port = LOWEST_PORT + secrets.randbelow(PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found += [port] if port not in found else []
    return found

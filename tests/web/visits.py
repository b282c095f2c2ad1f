"""A client's bytes to the port, and its answers."""

import contextlib
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE = 600.0  # of the wall, as a socket counts them
ANY_CERTIFICATE = ssl.create_default_context()
ANY_CERTIFICATE.check_hostname, ANY_CERTIFICATE.verify_mode = False, ssl.CERT_NONE


class Visit(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def visit(url: str, path: str = "/health", method: str = "GET", /, host: str = "", **headers: str) -> Visit:
    """Ask once. Header names are written with `_`."""
    return send(url, path, method, b"", host, **headers)


def send(url: str, path: str, method: str, body: bytes, /, host: str = "", **headers: str) -> Visit:
    """The same with a body."""
    at = urlsplit(url).netloc
    named = {"Host": host or at, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        named["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return read_answer(say(url, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body))


def connect(url: str) -> socket.socket:
    at = urlsplit(url)
    assert at.hostname
    line = socket.create_connection((at.hostname, at.port or 80), PATIENCE)
    return line if at.scheme == "http" else ANY_CERTIFICATE.wrap_socket(line, server_hostname=at.hostname)


def say(url: str, data: bytes) -> bytes:
    """All that is answered to these bytes, until the other end closes."""
    with connect(url) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(data)
        return read_all(client)


def read_all(client: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            said += part
    return said


def read_answer(said: bytes) -> Visit:
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    headers = {name.lower(): value for name, value in pairs}
    return Visit(int(first.split()[1]), headers, body)

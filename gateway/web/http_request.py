"""The head of a request, read strictly, and the answer.

Anything that two readers could understand in two ways is refused: a folded header, a second copy of a header that must
be unique, a line that ends in a bare newline. The connection is closed behind each answer.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import anyio
import msgspec

from gateway.web.request_body import RequestBody, WebRefusal, find_body

MAX_HEAD_BYTES = 16 << 10
MAX_HEADERS = 100
MAX_FIELDS = 20
BEAT_SECONDS = 15.0
JSON = "application/json"
END_OF_HEAD = b"\r\n\r\n"
_FIRST_LINE = re.compile(r"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_NONE: Mapping[str, str] = MappingProxyType({})

SendPiece: TypeAlias = Callable[[bytes], Awaitable[None]]


class HttpRequest(msgspec.Struct, frozen=True):
    """A request. `headers` has lower-case names; the values of a repeated header are joined by commas."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: RequestBody

    @property
    def content_type(self) -> str:
        """The media type of the body, in small letters and without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the query; the last one of each name counts. Raises WebRefusal if there are too many."""
        try:
            return dict(parse_qsl(self.query, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, f"the query: {error}") from None


class HttpResponse(msgspec.Struct, frozen=True):
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NONE)

    def encode(self, method: str = "GET") -> bytes:
        """Encode the whole answer, as the last one of its connection."""
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        return encode_headers(self.status, self.content_type, headers) + (b"" if method == "HEAD" else self.body)


class HttpStream(msgspec.Struct, frozen=True):
    """An answer in pieces: it lasts while `run` sends them and the client stays."""

    run: Callable[[SendPiece], Awaitable[None]]
    content_type: str
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NONE)
    status: HTTPStatus = HTTPStatus.OK

    def encode_headers(self) -> bytes:
        """Encode the headers; the last one asks a proxy in between to buffer nothing."""
        return encode_headers(self.status, self.content_type, {**self.headers, "X-Accel-Buffering": "no"})


def encode_headers(status: HTTPStatus, content_type: str, headers: Mapping[str, str]) -> bytes:
    """Encode the status line and the headers."""
    from email.utils import formatdate  # noqa: PLC0415 - nine modules, which an idle gateway does without

    head = {
        "Date": formatdate(usegmt=True),
        "Content-Type": content_type,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **headers,
    }
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in head.items())]
    return "\r\n".join(lines).encode("latin-1") + END_OF_HEAD


def parse_request(head: bytes) -> HttpRequest:
    """Parse the lines before the body, without the blank one.

    Raises:
        WebRefusal: a line is invalid, or readers could understand it in different ways.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    asked = _FIRST_LINE.fullmatch(first)
    if asked is None:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")
    if len(lines) > MAX_HEADERS:
        raise WebRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "a header is not written as headers are")
        name, value = found[1].lower(), found[2].strip()
        if name in headers and name in ("host", "origin", "authorization", "content-length", "transfer-encoding"):
            raise WebRefusal(HTTPStatus.BAD_REQUEST, f"two headers {name}")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    path, _, query = asked[2].partition("?")
    return HttpRequest(asked[1], path, query, MappingProxyType(headers), find_body(headers))


async def keep_stream(send: SendPiece) -> None:
    """Send a sign of life until cancelled; a failure to send it shows that the client has left."""
    while True:
        await anyio.sleep(BEAT_SECONDS)
        await send(b": beat\n\n")


def answer_refusal(refusal: WebRefusal) -> HttpResponse:
    return HttpResponse(refusal.status, f"{refusal}\n".encode(), headers=refusal.headers)


def answer_json(found: Any, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(status, msgspec.json.encode(found) + b"\n", JSON)

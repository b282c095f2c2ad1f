"""A request's first lines, read strictly, and the answer that is written back.

Whatever two readers could understand in two ways is refused: a folded header, a header twice that must stand once, a
line that ends in a bare newline. The connection is closed behind each answer.
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
    """`headers` by their names in small letters; one that came several times is one, its values joined by commas."""

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
        """The fields of the query; of several with one name the last. Raises WebRefusal: there are too many."""
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
        """All of it, as the last answer of its connection."""
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        return encode_headers(self.status, self.content_type, headers) + (b"" if method == "HEAD" else self.body)


class HttpStream(msgspec.Struct, frozen=True):
    """An answer that comes in pieces, for as long as `run` sends them and the other end stays."""

    run: Callable[[SendPiece], Awaitable[None]]
    content_type: str
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NONE)
    status: HTTPStatus = HTTPStatus.OK

    def encode_headers(self) -> bytes:
        """The last of them asks a proxy in between to hold nothing back."""
        return encode_headers(self.status, self.content_type, {**self.headers, "X-Accel-Buffering": "no"})


def encode_headers(status: HTTPStatus, content_type: str, headers: Mapping[str, str]) -> bytes:
    """What stands before the body."""
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
    """The lines before the body, without the blank one.

    Raises:
        WebRefusal: they are none that every reader understands in one way.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    asked = _FIRST_LINE.fullmatch(first)
    if asked is None:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")
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
    """Until cancelled: a sign of life in a stream of events, by which it is noticed too that the other end has left."""
    while True:
        await anyio.sleep(BEAT_SECONDS)
        await send(b": beat\n\n")


def answer_refusal(refusal: WebRefusal) -> HttpResponse:
    return HttpResponse(refusal.status, f"{refusal}\n".encode(), headers=refusal.headers)


def answer_json(found: Any, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(status, msgspec.json.encode(found) + b"\n", JSON)

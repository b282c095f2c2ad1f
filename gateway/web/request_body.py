"""The body of a request: read on demand, within limits on length and time.

Before that at most `MOST_UNASKED` bytes are taken from the connection, so a body that no answer reads fills no memory.
A body that is read piece by piece is never held as a whole. A sender has ten seconds, and more while its bytes come
fast enough.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus

import anyio
import msgspec

from gateway.errors import GatewayError

MOST_UNASKED = 64 << 10
SLOWEST = 16 << 10  # bytes a second: a faster sender gets more time
MOST_LINE = 64
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?")


class WebRefusal(GatewayError):
    """The status and the reason of a refused request; the caller sees the reason."""

    def __init__(self, status: HTTPStatus, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class RequestBody:
    """The bytes behind one request's headers. `length` is None for a chunked body."""

    def __init__(self, length: int | None = 0, *, waits: bool = False) -> None:
        self._waits = waits  # the sender expects a "100 Continue" before it sends
        self.is_complete = length == 0
        self._length = length
        self.is_large = length is None or length > MOST_UNASKED
        self._missing = length or 0
        self._chunks = ChunkDecoder() if length is None else None
        self._is_dropped = False
        self._data = bytearray()  # bytes that were not taken yet
        self.came = 0  # bytes, in all
        self._limit: int | None = None
        self._refusal: WebRefusal | None = None
        self._news = anyio.Event()
        self.ended = anyio.Event()  # the client sends nothing more: mostly it has left
        self._patience = 0.0
        self._line: asyncio.Transport | None = None

    def connect(self, line: asyncio.Transport, patience: float) -> None:
        """Connect the body to its transport, with the seconds that every sender has. Called by the connection."""
        self._line, self._patience = line, patience

    def feed(self, data: bytes) -> None:
        """Add received bytes, and ignore those behind the end. Called by the connection."""
        if self.is_complete or self._refusal:
            return
        try:
            self._take(data)
        except WebRefusal as refusal:
            self._refusal = refusal
        self._news.set()
        if self._line and len(self._data) >= MOST_UNASKED:
            self._line.pause_reading()

    def end(self) -> None:
        """Note that no more bytes will come. Called by the connection."""
        self.ended.set()
        if not self.is_complete and not self._refusal:
            self._refusal = WebRefusal(HTTPStatus.BAD_REQUEST, "the body ended before its end")
            self._news.set()

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises as `take` does."""
        return b"".join([piece async for piece in self.take(limit)])

    async def take(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the body piece by piece; receiving pauses until the next piece is taken.

        Raises:
            WebRefusal: the body has more than `limit` bytes, comes too slowly, or is malformed.
        """
        self._limit = limit
        self._check_size(self._length or 0)
        self._check_size(self.came)
        if self._line and not self.is_complete and self._waits:
            self._line.write(CONTINUE)
        waited = 0.0
        while self._data or not self.is_complete:
            if self._data:
                piece = bytes(self._data)
                self._data.clear()
                yield piece
                continue
            if self._refusal:
                raise self._refusal
            waited += await self._wait(self._patience + self.came / SLOWEST - waited)

    async def _wait(self, seconds: float) -> float:
        """Wait until more bytes have come; return how long that took."""
        if self._line:
            self._line.resume_reading()
        self._news, began = anyio.Event(), time.monotonic()
        with anyio.move_on_after(max(0.0, seconds)) as waiting:
            await self._news.wait()
        if waiting.cancelled_caught:
            raise WebRefusal(HTTPStatus.REQUEST_TIMEOUT, "the body came too slowly")
        return time.monotonic() - began

    def drop(self) -> None:
        """Discard all further bytes as they are received. Called by the connection."""
        self._is_dropped = True
        self._data.clear()
        if self._line and not self._line.is_closing():
            self._line.resume_reading()

    def _take(self, data: bytes) -> None:
        if self._chunks:
            part = self._chunks.feed(data)
            self.is_complete = self._chunks.is_complete
        else:
            part = data[: self._missing]
            self._missing -= len(part)
            self.is_complete = not self._missing
        if not self._is_dropped:
            self._data += part
            self.came += len(part)
            self._check_size(self.came)

    def _check_size(self, size: int) -> None:
        if self._limit is not None and size > self._limit:
            self._data.clear()
            raise WebRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"this takes at most {self._limit} bytes")


class ChunkDecoder(msgspec.Struct, eq=False):
    """The decoder of `SIZE CRLF BYTES CRLF`, repeated, up to a size of 0.

    It refuses headers behind that: no code reads them.
    """

    is_complete: bool = False
    _line: bytearray = msgspec.field(default_factory=bytearray)
    _left: int = 0
    _is_last: bool = False
    _ends_chunk: bool = False

    def feed(self, data: bytes) -> bytes:
        """Return the bytes that `data` adds to the body. Raises WebRefusal."""
        found, at = bytearray(), 0
        while at < len(data) and not self.is_complete:
            if self._left:
                part = data[at : at + self._left]
                found += part
                at += len(part)
                self._left -= len(part)
                self._ends_chunk = not self._left
            else:
                end = data.find(b"\n", at) + 1 or len(data)
                self._line += data[at:end]
                at = end
                self._read_line()
        return bytes(found)

    def _read_line(self) -> None:
        if len(self._line) > MOST_LINE:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "the size of a chunk has too many characters")
        if (self._ends_chunk or self._is_last) and not b"\r\n".startswith(self._line):
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "a chunk does not end where it says")
        if not self._line.endswith(b"\n"):
            return
        if not self._line.endswith(b"\r\n"):
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "a chunk is not written as chunks are")
        line = bytes(self._line[:-2])
        self._line.clear()
        if self._ends_chunk or self._is_last:
            self.is_complete = self._is_last
            self._ends_chunk = False
        elif size := _CHUNK_SIZE.fullmatch(line):
            self._left = int(size[1], 16)
            self._is_last = not self._left
        else:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "a chunk does not say its size")


def find_body(headers: Mapping[str, str]) -> RequestBody:
    """Make the body that these headers describe.

    Raises:
        WebRefusal: two readers could understand the headers in two ways.
    """
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    waits = headers.get("expect", "").lower() == "100-continue"
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise WebRefusal(HTTPStatus.BAD_REQUEST, "a body is either chunked or has a content-length")
        return RequestBody(None, waits=waits)
    if length is not None and not _LENGTH.fullmatch(length):
        raise WebRefusal(HTTPStatus.BAD_REQUEST, "the length of the body is not a number")
    return RequestBody(int(length or 0), waits=waits)

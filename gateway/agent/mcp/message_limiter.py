"""Bound the messages of a tool server before they are decoded.

A message of usual length passes unchanged. A longer one is shortened in the parser's process. One that is longer still
is dropped at once, and so is one that remains a heap of small values: the caller that waits for it gets an error
instead, if its id can be found.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Protocol

import msgspec

from gateway.errors import AgentError
from gateway.worker.json_decoder import why_hard

USUAL_BYTES = 256_000  # that are decoded where everything else is done
MAX_BYTES = 8_000_000  # that are kept of one message
ENDLESS_BYTES = 200_000_000  # no end of a message is awaited after so many bytes
END_BYTES = 200  # at both ends of a message, which hold its id
UNREADABLE = -32001  # the code of the error in its place
FIRST_ID = re.compile(
    rb'\s{0,9}\{\s{0,9}(?:"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9},\s{0,9})?"id"\s{0,9}:\s{0,9}(\d{1,18})\b'
)
LAST_ID = re.compile(
    rb'"id"\s{0,9}:\s{0,9}(\d{1,18})\s{0,9}(?:,\s{0,9}"jsonrpc"\s{0,9}:\s{0,9}"2\.0"\s{0,9})?\}\s{0,9}\Z'
)


class MessageParser(Protocol):
    """A parser that shortens long messages in another process."""

    async def compact(self, message: bytes, limit: int) -> bytes:
        """Shorten the message's texts to so many characters. Raises AgentError if it is unreadable."""


class PartialMessage(msgspec.Struct, eq=False):
    """A message that is arriving. If it is too long, only its two ends are kept."""

    length: int = 0
    _kept: bytearray = msgspec.field(default_factory=bytearray)
    _end: bytes = b""

    @property
    def is_whole(self) -> bool:
        return self.length <= MAX_BYTES

    @property
    def kept(self) -> bytes:
        """The message, or its ends."""
        return bytes(self._kept) + self._end

    def add(self, piece: bytes) -> None:
        self.length += len(piece)
        if self.is_whole:
            self._kept += piece
        else:
            self._end = (bytes(self._kept[END_BYTES:][-END_BYTES:]) + self._end + piece)[-END_BYTES:]
            del self._kept[END_BYTES:]


class MessageLimiter(msgspec.Struct, frozen=True):
    """The limit of a result for the model, and the parser that shortens long ones."""

    server: str
    parser: MessageParser
    output_limit: int

    async def read_lines(self, pieces: AsyncIterable[bytes], prefix: bytes = b"") -> AsyncIterator[bytes]:
        """Yield the lines of a stream, without their ends; a message follows this prefix, other lines are not messages.

        Raises:
            AgentError: a message is too long, and no caller can be found for the error.
        """
        buffer = PartialMessage()
        async for piece in pieces:
            *ended, rest = piece.split(b"\n")
            for end in ended:
                buffer.add(end)
                yield await self._bound(buffer, prefix)
                buffer = PartialMessage()
            buffer.add(rest)
            self._check_end(buffer)
        if buffer.length:
            yield await self._bound(buffer, prefix)

    async def read_whole(self, pieces: AsyncIterable[bytes]) -> bytes:
        """Read a stream that is one message."""
        buffer = PartialMessage()
        async for piece in pieces:
            buffer.add(piece)
            self._check_end(buffer)
        return await self._bound(buffer, b"")

    def _check_end(self, buffer: PartialMessage) -> None:
        if buffer.length > ENDLESS_BYTES:
            raise AgentError(f"an answer of {self.server} has {ENDLESS_BYTES / 1e6:.0f} MB, and no end")

    async def _bound(self, buffer: PartialMessage, prefix: bytes) -> bytes:
        length, message = buffer.length, buffer.kept
        if length <= USUAL_BYTES or not message.startswith(prefix):
            return message
        message = message.removeprefix(prefix)
        try:
            if not buffer.is_whole:
                most = f"{MAX_BYTES / 1e6:.0f} MB are read at most"
                raise AgentError(f"the answer of {self.server} has {length / 1e6:.0f} MB, and {most}: ask for less")
            short = await self.parser.compact(message, self.output_limit + 1)
            if reason := why_hard(short):
                raise AgentError(f"the answer of {self.server} is made of {reason}: ask for less")
            return prefix + short
        except AgentError as error:
            response = make_error_response(message, str(error))
            if response is None:
                raise
            return prefix + response


def make_error_response(message: bytes, why: str) -> bytes | None:
    """Make an error for the caller that waits for this message; None if it cannot be found."""
    found = FIRST_ID.match(message) or LAST_ID.search(message[-END_BYTES:])
    if found is None:
        return None
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": int(found[1])}
    return msgspec.json.encode(response | {"error": {"code": UNREADABLE, "message": why}})


def remove_output_schemas(message: Any) -> None:
    """Remove the schemas of results: their patterns are foreign, and the library would run them on the loop."""
    result = getattr(message, "result", None)
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            tool.pop("outputSchema", None)

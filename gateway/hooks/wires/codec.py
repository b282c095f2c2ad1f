"""JSON-RPC 2.0, one message a line: this module encodes and decodes the messages between gateway and hooks.

Incoming lines were written by foreign code, so reading is bounded in three ways: the length of a line, the number of
its parts (decoding a million small objects takes far longer than one long text of that size), and the number of lines
in one turn of the event loop. The only error for any input is `BadMessage`, and the loop is never blocked for more than
some milliseconds.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import HookError
from gateway.events import Question
from gateway.hooks.wires.wire import NO_CHANGE, BagDelta, HookAnswer
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.protocol import MAX_LINE_BYTES, CallMeta

LINES_PER_TICK = 64
BYTES_PER_TICK = 200_000

METHOD_UNKNOWN = -32601

JsonId = int | str | float | None


class BadMessage(HookError):
    """The error for bytes from a wire that are not a message."""


class RpcErrorObject(msgspec.Struct, omit_defaults=True):
    """The `error` of a response; `data` is from our workers: a traceback, and whether memory ran out."""

    message: str = ""
    data: Any = None


class RpcMessage(msgspec.Struct, omit_defaults=True):
    """One line: a request (method and id), a notice (method alone), or a response (id alone).

    `during` names the event that the hook handles while it sends a request; the fields after `error` complete the
    result of an answer.
    """

    id: JsonId = None
    method: str | None = None
    params: dict[str, Any] | list[Any] | None = None
    during: str = ""
    result: Any = None
    error: RpcErrorObject | None = None
    changed: dict[str, Any] = {}
    ask: Question | None = None
    refused: tuple[str, ...] = ()
    turn_bag: BagDelta = NO_CHANGE
    session_bag: BagDelta = NO_CHANGE


_encode = msgspec.json.Encoder().encode
_decode_line = JsonDecoder[RpcMessage](RpcMessage).decode


def encode_fields(fields: bytes | Mapping[str, Any]) -> bytes:
    """Encode an event's fields as JSON; bytes are JSON already."""
    return fields if isinstance(fields, bytes) else _encode(fields)


def encode_request(call: int, method: str, params: bytes, meta: bytes = b"{}") -> bytes:
    """Encode a line that wants a response; an empty `meta` is left out."""
    rest = b"" if meta == b"{}" else b',"meta":' + meta
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b%b}\n' % (call, _encode(method), params, rest)


def encode_notice(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Encode a line that wants no response."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params or {}}) + b"\n"


def encode_response(to: JsonId, result: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": to, "result": result}) + b"\n"


def encode_error(to: JsonId, code: int, message: str) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}}) + b"\n"


def decode_message(line: bytes | bytearray) -> RpcMessage:
    """Decode one message.

    Raises:
        BadMessage: with the start of the line, and the fault.
    """
    try:
        return _decode_line(line)
    except ValueError as error:
        raise make_bad_message(line, f"{error}; ") from None


def make_bad_message(line: bytes | bytearray, why: str = "") -> BadMessage:
    begin = bytes(line[:60]).decode("utf-8", "backslashreplace")
    return BadMessage(f"no message: {why}it begins with {begin!r}")


def answer_from(message: RpcMessage, meta: CallMeta) -> HookAnswer:
    """Return the answer in a response of our own handlers; only writable changes count."""
    allowed = message.changed.keys() if meta.writable is None else meta.writable
    return HookAnswer(
        message.result,
        {field: value for field, value in message.changed.items() if field in allowed},
        message.ask,
        refused=message.refused,
        turn_bag=message.turn_bag,
        session_bag=message.session_bag,
    )


class LineDecoder(msgspec.Struct, eq=False):
    """The decoder of a wire's bytes into messages, which limits the work between two calls of `renew`."""

    _buffer: bytearray = msgspec.field(default_factory=bytearray)
    _start: int = 0  # the start of the first line that was not taken
    _scanned: int = 0  # no newline between start and here
    _taken: int = 0
    _bytes: int = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer += data

    def take(self) -> RpcMessage | None:
        """Return the next message; None if no whole line has arrived, or the limit is reached.

        Raises:
            BadMessage: a line is not a message; the wire is unusable then.
        """
        while self._taken < LINES_PER_TICK and self._bytes < BYTES_PER_TICK:
            line = self._line()
            if line is None:
                return None
            self._taken += 1
            if line and not line.isspace():
                self._bytes += len(line)
                return decode_message(line)
        return None

    def renew(self) -> bool:
        """Reset the limit for a new turn of the loop. Return True if a whole line waits."""
        self._taken = self._bytes = 0
        del self._buffer[: self._start]
        self._scanned -= self._start
        self._start = 0
        return self._newline() >= 0

    def _newline(self) -> int:
        end = self._buffer.find(b"\n", self._scanned)
        self._scanned = len(self._buffer) if end < 0 else end
        return end

    def _line(self) -> bytearray | None:
        end = self._newline()
        if (end if end >= 0 else len(self._buffer)) - self._start > MAX_LINE_BYTES:
            raise BadMessage(
                f"a line of more than {MAX_LINE_BYTES >> 20} MB, and an answer may have {MAX_LINE_BYTES >> 20} MB"
            )
        if end < 0:
            return None
        line = self._buffer[self._start : end]
        self._start = self._scanned = end + 1
        return line

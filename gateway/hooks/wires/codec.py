"""JSON-RPC 2.0, a message a line: the one place where hooks' messages become bytes, and bytes messages.

What comes in was written by foreign code, so reading is bounded three ways: a line has a greatest length, a line has a
greatest number of parts (decoding a million small objects takes far longer than one long text of that size), and in
one turn of the event loop only so many lines are decoded. Whatever arrives, the only error is `Garbled`, and the loop
is never held for more than some milliseconds.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import HookError
from gateway.events.event import Question
from gateway.hooks.wires.wire import UNTOUCHED, Delta

LONGEST = 8 << 20  # bytes in a line
MOST_PARTS = 100_000  # values in a line
LINES_A_TURN = 64
BYTES_A_TURN = 200_000
COUNTED = 1 << 16  # bytes whose parts are counted at a time

RAISED = -32000
INVALID_REQUEST = -32600
METHOD_UNKNOWN = -32601

JsonId = int | str | float | None


class Garbled(HookError):
    """What came over a wire is no message."""


class Fault(msgspec.Struct, omit_defaults=True):
    """The `error` of a response; `data` is ours: a traceback, and whether the process is still sound."""

    code: int | float = RAISED
    message: str = ""
    data: Any = None


class Message(msgspec.Struct, omit_defaults=True):
    """One line: a request (method and id), a notice (method alone), or a response (id alone).

    `during` belongs to requests of a hook; what follows `error` are answers that say more than a result can.
    """

    jsonrpc: str = ""
    id: JsonId = None
    method: str | None = None
    params: dict[str, Any] | list[Any] | None = None
    during: str = ""
    result: Any = None
    error: Fault | None = None
    changed: dict[str, Any] = {}
    ask: Question | None = None
    refused: tuple[str, ...] = ()
    turn_bag: Delta = UNTOUCHED
    session_bag: Delta = UNTOUCHED


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


def fields_of(fields: bytes | Mapping[str, Any]) -> bytes:
    """An event's fields as JSON; bytes are JSON already."""
    return fields if isinstance(fields, bytes) else _encode(fields)


def request(call: int, method: str, params: bytes, meta: bytes = b"{}") -> bytes:
    """A line that wants a response; `meta` is left out where nothing stands in it."""
    rest = b"" if meta == b"{}" else b',"meta":' + meta
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b%b}\n' % (call, _encode(method), params, rest)


def notice(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A line that wants no response."""
    return _encode({"jsonrpc": "2.0", "method": method, "params": params or {}}) + b"\n"


def response(to: JsonId, result: Any) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": to, "result": result}) + b"\n"


def failure(to: JsonId, code: int, message: str) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}}) + b"\n"


def decode(line: bytes | bytearray) -> Message:
    """One message.

    Raises:
        Garbled: with how the line begins, and what is wrong with it.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        begin = bytes(line[:60]).decode("utf-8", "backslashreplace")
        raise Garbled(f"no message: {type(error).__name__}: {str(error)[:200]}; it begins with {begin!r}") from None


class Lines:
    """Bytes in, messages out, at most one turn's work before `renew`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0  # where the first line that was not taken begins
        self._scanned = 0  # no newline stands between start and here
        self._taken = 0
        self._bytes = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer += data

    def take(self) -> Message | None:
        """The next message; None when no whole line is there, or the work of this turn is done.

        Raises:
            Garbled: the wire cannot be used any more.
        """
        while self._taken < LINES_A_TURN and self._bytes < BYTES_A_TURN:
            line = self._line()
            if line is None:
                return None
            self._taken += 1
            if line and not line.isspace():
                self._bytes += len(line)
                _check_parts(line)
                return decode(line)
        return None

    def renew(self) -> bool:
        """A new turn of the loop. Is a whole line still waiting?"""
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
        if (end if end >= 0 else len(self._buffer)) - self._start > LONGEST:
            raise Garbled(f"a line of more than {LONGEST >> 20} MB, and an answer may have {LONGEST >> 20} MB")
        if end < 0:
            return None
        line = self._buffer[self._start : end]
        self._start = self._scanned = end + 1
        return line


def _check_parts(line: bytearray) -> None:
    parts = 0
    for at in range(0, len(line) if len(line) > MOST_PARTS else 0, COUNTED):
        parts += sum(line.count(mark, at, at + COUNTED) for mark in (b",", b":", b"[", b"{"))
        if parts > MOST_PARTS:
            raise Garbled(f"a line of {len(line)} bytes with more than {MOST_PARTS} values in it")

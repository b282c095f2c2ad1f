"""The decoder of foreign JSON, in a bounded time, since nothing else runs meanwhile.

Texts that take longer than their length suggests are found first, without decoding. A million small values take far
longer than one long text of that size, so values are counted by the punctuation. The time of a whole number grows with
the square of its digits, so long rows of digits are limited. A number with a fraction can be written so that the
decoder of our library takes 10 µs for it; Python's own takes a tenth of that. With these limits any 8 MB block the loop
for at most 40 ms.
"""

from math import isinf
from typing import Any, Generic, TypeVar

import msgspec

MAX_LINE_VALUES = 100_000  # values in a line
COUNTED_AT_ONCE = 1 << 16  # bytes whose values are counted at a time
LONG_ROW = b"0" * 500  # digits
MOST_LONG_ROWS = 4000  # 2 MB of such rows
AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)

T = TypeVar("T")


class JsonDecoder(Generic[T]):
    """A decoder for one type. `decode` raises ValueError, and nothing else, for any input."""

    def __init__(self, kind: Any = Any) -> None:
        self._decode = msgspec.json.Decoder(kind, float_hook=_read_number).decode

    def decode(self, text: bytes | bytearray) -> T:
        if reason := why_hard(text):
            raise ValueError(f"{len(text)} bytes with {reason} in them")
        try:
            decoded: T = self._decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
            raise ValueError(f"{type(error).__name__}: {str(error)[:200]}") from None
        return decoded


def _read_number(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("a number is out of range")
    return number


def why_hard(line: bytes | bytearray) -> str:
    """Say why this text would take long to decode, without decoding it; "" if it would not."""
    if len(line) <= MAX_LINE_VALUES:
        return ""
    values = 0
    for at in range(0, len(line), COUNTED_AT_ONCE):
        values += sum(line.count(mark, at, at + COUNTED_AT_ONCE) for mark in (b",", b":", b"[", b"{"))
        if values > MAX_LINE_VALUES:
            return f"more than {MAX_LINE_VALUES} values"
    if line.translate(AS_ZEROS).count(LONG_ROW) > MOST_LONG_ROWS:
        return f"more than {MOST_LONG_ROWS * len(LONG_ROW)} digits in long rows"
    return ""

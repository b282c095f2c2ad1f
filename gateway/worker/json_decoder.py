"""JSON that others wrote, decoded where everything else is done, and so in a time that has a bound.

Nothing else runs while a text is decoded. What makes one take longer than its length is looked for first, without
decoding: a million small values take far longer than one long text of that size, so values are counted by the
punctuation; and the time of a whole number grows with the square of its digits, so only so many may stand in long rows.
A number with a fraction can be written so that the decoder of our library looks at it for 10 µs; Python's own reading
of it takes a tenth of that. Then 8 MB, whatever they are made of, hold everybody up for 40 ms at the most.
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
    """Of one type. `decode` raises ValueError, and nothing else, whatever it is given."""

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
    """What of this would take long to decode; nothing where it would not. It is not decoded for that."""
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

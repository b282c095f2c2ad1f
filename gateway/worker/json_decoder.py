"""JSON that others wrote, decoded where everything else is done, and so in a time that has a bound.

Nothing else runs while a text is decoded. A million small values take far longer than one long text of that size, so
values are counted first, by the punctuation. A number can be written so that the decoder of our library looks at it for
10 µs; Python's own reading of it takes a tenth of that. Then no 8 MB that anybody can write take a quarter of a second.
"""

from math import isinf
from typing import Any, Generic, TypeVar

import msgspec

MAX_LINE_VALUES = 100_000  # values in a line
COUNTED_AT_ONCE = 1 << 16  # bytes whose values are counted at a time

T = TypeVar("T")


class JsonDecoder(Generic[T]):
    """Of one type. `decode` raises ValueError, and nothing else, whatever it is given."""

    def __init__(self, kind: Any = Any) -> None:
        self._decode = msgspec.json.Decoder(kind, float_hook=_read_number).decode

    def decode(self, text: bytes | bytearray) -> T:
        if has_too_many_values(text):
            raise ValueError(f"{len(text)} bytes with more than {MAX_LINE_VALUES} values in them")
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


def has_too_many_values(line: bytes | bytearray) -> bool:
    """Tells by the punctuation, without decoding, and stops counting at the limit."""
    values = 0
    for at in range(0, len(line) if len(line) > MAX_LINE_VALUES else 0, COUNTED_AT_ONCE):
        values += sum(line.count(mark, at, at + COUNTED_AT_ONCE) for mark in (b",", b":", b"[", b"{"))
        if values > MAX_LINE_VALUES:
            return True
    return False

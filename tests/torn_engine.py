"""A journal in which an append is whole within one conversation only, and breaks off where a test wants it to."""

import re
from collections.abc import Sequence

from gateway.engine import Clock, NewRecord, SettledRecords
from gateway.testing.memory_engine import MemoryEngine

TOKEN = re.compile(r"[0-9a-f]{24}")


class Cut(Exception):
    """The process ends here."""


def owner_of(subject: str) -> str:
    """The conversation, or the place, that the last token in a subject stands for; "" where it has none."""
    return next((one for one in reversed(subject.split(".")) if TOKEN.fullmatch(one)), "")


class TornEngine(MemoryEngine):
    """Of an append that spans conversations it writes what belongs to one, then to the next, in their order.

    `left`: after so many of these pieces the process ends, before an append that spans more is through.
    """

    def __init__(self, left: int | None = None, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self.left = left

    async def append(self, *puts: NewRecord, settled: Sequence[SettledRecords] = ()) -> list[int]:
        pieces: dict[str, list[int]] = {}
        for number, put in enumerate(puts):
            pieces.setdefault(owner_of(put.subject), []).append(number)
        if len(pieces) < 2:
            return await super().append(*puts, settled=settled)
        sequences: dict[int, int] = {}
        for place, numbers in enumerate(pieces.values(), 1):
            if self.left == 0:
                raise Cut
            is_last = place == len(pieces)
            found = await super().append(*(puts[n] for n in numbers), settled=settled if is_last else ())
            sequences |= zip(numbers, found, strict=True)
            if self.left:
                self.left -= 1
        return [sequences[number] for number in range(len(puts))]

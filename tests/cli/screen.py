"""A terminal's screen: what a person can read, from what a program writes. It knows what our line editor uses."""

import re
from collections.abc import Callable

PART = re.compile(r"\x1b\[(?P<numbers>[0-9;?]*)(?P<does>[A-Za-z])|\x1b[=>78]|\x1b\].*?\x07|(?P<sign>.)", re.DOTALL)

UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x07]*)?\Z")


class Screen:
    """Rows of signs and a cursor; what has scrolled away is still there."""

    def __init__(self, width: int = 80) -> None:
        self._width = width
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self._kept = ""  # the beginning of a sequence whose end has not come yet
        self._does: dict[str, Callable[[int], None]] = {
            "A": self._go_up,
            "B": self._go_down,
            "C": self._go_right,
            "D": self._go_left,
            "G": lambda column: self._go_to(column - 1),
            "J": self._clear_below,
            "K": self._clear_right,
        }

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def write(self, written: str) -> None:
        written = self._kept + written
        unfinished = UNFINISHED.search(written)
        self._kept = unfinished[0] if unfinished else ""
        for part in PART.finditer(written[: len(written) - len(self._kept)]):
            if sign := part["sign"]:
                self._write_sign(sign)
            elif act := self._does.get(part["does"] or ""):
                act(int(part["numbers"] or 0))

    def _write_sign(self, sign: str) -> None:
        if sign == "\r":
            self._go_to(0)
        elif sign == "\n":
            self._go_down(1)
        elif sign == "\b":
            self._go_left(1)
        elif sign >= " ":
            if self._column == self._width:
                self._go_down(1)
                self._go_to(0)
            row = self._rows[self._row]
            row += [" "] * (self._column + 1 - len(row))
            row[self._column] = sign
            self._column += 1

    def _go_to(self, column: int) -> None:
        self._column = max(0, min(column, self._width - 1))

    def _go_left(self, count: int) -> None:
        self._go_to(self._column - max(1, count))

    def _go_right(self, count: int) -> None:
        self._go_to(self._column + max(1, count))

    def _go_up(self, count: int) -> None:
        self._row = max(0, self._row - max(1, count))

    def _go_down(self, count: int) -> None:
        self._row += max(1, count)
        self._rows += [[] for _ in range(self._row + 1 - len(self._rows))]

    def _clear_right(self, _how: int) -> None:
        del self._rows[self._row][self._column :]

    def _clear_below(self, how: int) -> None:
        if not how:
            self._clear_right(0)
            del self._rows[self._row + 1 :]

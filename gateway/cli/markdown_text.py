"""A text of Markdown that grows on a terminal: its blocks are rendered as they become complete.

The next line may change the open block: a line of dashes makes a heading of the words above it. So the screen shows
that block as it was written, until it ends. In a list each item is complete when the next one begins, and in
a block of code each line.
"""

import re
import sys
from collections.abc import Sequence

from gateway.cli.layout import get_columns
from gateway.cli.markdown import Block, encode_markdown, parse_markdown, render_blocks, render_code, render_label

ENDED_BY_A_GAP = frozenset({"Paragraph", "Table", "BlockQuote", "HtmlBlock"})
FENCE = re.compile(r"( {0,3})(`{3,}+(?=[^`]*$)|~{3,}+)(.*)")
DEEPEST_FENCE = 3  # columns; what is set in further is a line of code
MOST_OPEN = 200  # lines of a block that are held back, since all of it is read again at each
LONGEST_OPEN = 16_000
USUAL_COLUMNS = 80


class MarkdownText:
    """The open and the complete part of a text that comes in whole lines."""

    def __init__(self) -> None:
        self._lines = list[str]()  # of the block that is open
        self._fence: tuple[str, str] | None = None  # how far the open block of code is set in, and what closes it
        self._is_begun = self._is_apart = False  # an empty row comes before the next

    @property
    def open(self) -> str:
        """Return the open block, as it was written."""
        return "\n".join(self._lines)

    def write(self, line: str) -> list[str]:
        line = line.removesuffix("\r")
        if self._fence:
            return self._write_code(line, *self._fence)
        if not line.strip() and not self._lines:
            self._is_apart = self._is_begun
            return []
        self._lines.append(line)
        return [*self._take_complete(), *self._open_fence()]

    def end(self) -> list[str]:
        """Return the rows of the rest."""
        source = encode_markdown("".join(f"{line}\n" for line in self._lines))
        self._lines, self._fence = [], None
        rows = self._put(source, parse_markdown(source))
        self._is_begun = self._is_apart = False
        return rows

    def _take_complete(self) -> list[str]:
        source = encode_markdown("".join(f"{line}\n" for line in self._lines))
        blocks = parse_markdown(source)
        is_full = len(self._lines) >= MOST_OPEN or len(source) >= LONGEST_OPEN
        at = len(source) if blocks is None or is_full else find_end(source, blocks)
        if not at:
            return []
        self._lines = source[at:].decode().split("\n")[:-1]
        taken = source[:at]
        rows = self._put(taken, parse_markdown(taken) if blocks and at < len(source) else blocks)
        self._is_apart = taken.endswith(b"\n\n") or not taken.rpartition(b"\n")[0].rpartition(b"\n")[2].strip()
        return rows

    def _put(self, source: bytes, blocks: Sequence[Block] | None) -> list[str]:
        rows = render_blocks(source, blocks, get_columns(sys.stdout) or USUAL_COLUMNS) if source.strip() else []
        return self._go_on(rows)

    def _go_on(self, rows: list[str]) -> list[str]:
        """Return these rows, behind an empty one where the text has one."""
        if not rows:
            return []
        gap = [""] if self._is_apart else []
        self._is_begun, self._is_apart = True, False
        return gap + rows

    def _open_fence(self) -> list[str]:
        """Begin a block of code: its first line completes all that was before it."""
        found = FENCE.fullmatch(self._lines[0]) if len(self._lines) == 1 else None
        if not found:
            return []
        self._lines, self._fence = [], (found[1], found[2])
        label = render_label(found[3])
        return self._go_on([label] if label else [])

    def _write_code(self, line: str, indent: str, mark: str) -> list[str]:
        inner = line.lstrip(" ")
        end = inner.rstrip(" \t")
        if len(line) - len(inner) <= DEEPEST_FENCE and len(end) >= len(mark) and {*end} == {mark[0]}:
            self._fence = None
            return []
        return self._go_on([render_code(line[min(len(indent), len(line) - len(inner)) :])])


def find_end(source: bytes, blocks: Sequence[Block]) -> int:
    """Find the beginning of the block that the next line may still change; of a list, its last item."""
    *_, last = blocks
    is_ended = not source.removesuffix(b"\n").rpartition(b"\n")[2].strip()
    if last.kind in ("Heading", "Rule") or (is_ended and last.kind in ENDED_BY_A_GAP):
        return len(source)
    start = last.parts[-1].start if last.kind == "List" else last.start
    return source.rfind(b"\n", 0, start) + 1

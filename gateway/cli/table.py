"""The layout of rows: columns as wide as needed, and on a terminal no wider than that.

`rich` knows how many columns a character takes. Its own tables cut or break a text without room; here nothing is cut: a
text that is the last of its row, such as a reason, is whole below the row, and continues in the next line between
words.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from operator import gt

from rich.cells import cell_len, chop_cells

from gateway.cli.program import get_program_name

GAP = "  "  # between two columns
GOES_ON = "... "  # before the rest of a line
NARROWEST = 4  # columns of a terminal that each column of a table keeps
SHORT_WORD = 16
LONGEST_WORD = 20  # columns: a longer entry in the last column of a table is a text
SILENT = frozenset({"", "0"})
STYLE = re.compile(r"\x1b\[[0-9;]*m")
PROGRAMS = r"(?:\S*/)?(?:python[0-9.]*|uv|pipx|sudo|loginctl|systemctl|ssh-keygen|rm|mkdir|ulimit) "
BLANKS = re.compile(r"[^\S\n]+")  # of every script
HOLDER = "\0"  # replaces a space in text that must stay in one line; texts are harmless before they come here


def format_rows(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """Return the lines of each row.

    Without enough room, a column without values is dropped first; then the last text of a row is moved below it, unless
    it fits beside; then cells are folded.
    """
    widths = _measure_columns(rows)
    if width is None or _join_widths(widths) <= width:
        return [_fold_row(row, widths) for row in rows]
    _, *body = rows
    said = [at for at, cells in enumerate(zip(*body, strict=True)) if not set(cells) <= SILENT]
    rows = [[row[at] for at in said] for row in rows]
    texts = [row.pop() for row in rows] if _measure_columns(rows)[-1] > LONGEST_WORD else []
    widths = _fit_widths(rows, width)
    lines = [_fold_row(row, widths) for row in rows]
    for row, text in zip(lines, texts, strict=False):
        start = expand_text(row[0], _join_widths(widths)) + GAP
        if cell_len(start + text) <= width:
            row[0] = f"{start}{text}".rstrip()
        elif text:
            row += [GAP + line for line in fold_text(" ".join(text.split()), width - len(GAP))]
    return lines


def fold_text(text: str, width: int) -> list[str]:
    """Fold a text between words. A longer word or command stays whole, so that it can be copied."""
    if count_columns(text) <= width:
        return [text]
    return [line.replace(HOLDER, " ") for line in _join_words(_hold_commands(text).split(" "), width)]


def fold_data(text: str, width: int) -> list[str]:
    """Fold words of others: they contain no command of ours, and many blanks become one.

    Otherwise a line of theirs could begin like ours.
    """
    return _join_words(BLANKS.split(text), width)


def fold_code(text: str, width: int) -> list[str]:
    """Fold a line of code as it is; each continuation is marked, so that no part of it can pass for another line."""
    first, *further = chop_cells(text, max(width - len(GOES_ON), NARROWEST)) or [""]
    return [first, *(GOES_ON + part for part in further)]


def fold_block(text: str, width: int, indent: str = "") -> str:
    """Fold each line of a text; a continuation begins below the line's own text, and by `indent` further in."""
    lines: list[str] = []
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        start = line[: len(line) - len(inner)]
        first, *further = fold_text(inner, max(width - len(start) - len(indent), NARROWEST))
        lines += [start + first, *(start + indent + part for part in further)]
    return "\n".join(lines)


def expand_text(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def count_columns(text: str) -> int:
    """Return the width in columns; colour codes take none."""
    return cell_len(STYLE.sub("", text).replace(HOLDER, " "))


def _hold_commands(text: str) -> str:
    """Keep the spaces of a command, at the start of a line or behind `:

    `: copied from two lines it would be two commands.
    """
    program = rf"(?:{re.escape(get_program_name())} |{PROGRAMS})"
    held = re.sub(rf"(?:^|(?<=: )){program}[^;]*", lambda found: found[0].replace(" ", HOLDER), text)
    return re.sub(r"`[^`]{1,40}`", lambda found: found[0].replace(" ", HOLDER), held)


def _join_words(words: Iterable[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        line = f"{lines[-1]} {word}".lstrip()
        lines[-1:] = [line] if count_columns(line) <= width or not lines[-1] else [lines[-1], word]
    return lines


def _fold_cell(text: str, width: int) -> list[str]:
    """Fold a cell to its column, if necessary within a word."""
    lines = _join_words(text.split(" "), width)
    return [part for line in lines for part in (chop_cells(line, width) if line else [""])]


def _fold_row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    folded = [_fold_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = itertools.zip_longest(*folded, fillvalue="")
    return [GAP.join(map(expand_text, line, widths)).rstrip() for line in lines]


def _measure_columns(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _join_widths(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fit_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Choose the width of each column: short words stay whole as long as other text can be folded."""
    widths = _measure_columns(rows)
    words = _measure_columns([max(cell.split(" "), key=cell_len) for cell in row] for row in rows)
    for least in ([min(word, SHORT_WORD) for word in words], [NARROWEST] * len(words)):
        while _join_widths(widths) > room and any(map(gt, widths, least)):
            # shrink the widest one, of several the last; the row's name counts half as wide
            _, at = max((width // (1 if at else 2), at) for at, width in enumerate(widths) if width > least[at])
            widths[at] -= 1
    return widths

"""Rows laid out for whoever reads them: columns as wide as they need to be, and on a terminal no wider than it is.

How many columns a sign takes is known to `rich`. Its own tables cut or break what finds no room; here nothing is cut: a
text that is the last of its row, such as a reason, stands whole below it, and goes on in the next line between words.
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
LONGEST_WORD = 20  # columns: what is longer in the last column of a table is a text
SILENT = frozenset({"", "0"})
STYLE = re.compile(r"\x1b\[[0-9;]*m")
PROGRAMS = r"(?:\S*/)?(?:python[0-9.]*|uv|pipx|sudo|loginctl|systemctl|ssh-keygen|rm|mkdir|ulimit) "
BLANKS = re.compile(r"[^\S\n]+")  # of every script
HOLDER = "\0"  # of a space within what stays in one line; texts are harmless before they come here


def format_rows(rows: list[list[str]], width: int | None) -> list[list[str]]:
    """The lines of each. Where there is too little room, a column that says nothing goes first; then a text that is
    the last of its row stands below it, unless there is room for it; then cells are folded."""
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
    """Lines that end between two words. A word or a command that is longer than one stays whole, to be copied."""
    if _measure_text(text) <= width:
        return [text]
    return [line.replace(HOLDER, " ") for line in _join_words(_hold_commands(text).split(" "), width)]


def fold_data(text: str, width: int) -> list[str]:
    """The same for words of others: none of them is a command of ours, and many blanks are one, since a line of theirs
    would else begin where ours do.
    """
    return _join_words(BLANKS.split(text), width)


def fold_code(text: str, width: int) -> list[str]:
    """All of it as it stands; where it goes on it says so, so that no part of it can pass for another line."""
    first, *further = chop_cells(text, max(width - len(GOES_ON), NARROWEST)) or [""]
    return [first, *(GOES_ON + part for part in further)]


def fold_block(text: str, width: int, indent: str = "") -> str:
    """Each line of it by itself; it goes on below its own beginning, and by `indent` further in."""
    lines: list[str] = []
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        start = line[: len(line) - len(inner)]
        first, *further = fold_text(inner, max(width - len(start) - len(indent), NARROWEST))
        lines += [start + first, *(start + indent + part for part in further)]
    return "\n".join(lines)


def expand_text(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _hold_commands(text: str) -> str:
    """Copied from two lines it would be two commands: one that begins a line, or what stands behind `: `."""
    program = rf"(?:{re.escape(get_program_name())} |{PROGRAMS})"
    held = re.sub(rf"(?:^|(?<=: )){program}[^;]*", lambda found: found[0].replace(" ", HOLDER), text)
    return re.sub(r"`[^`]{1,40}`", lambda found: found[0].replace(" ", HOLDER), held)


def _join_words(words: Iterable[str], width: int) -> list[str]:
    lines = [""]
    for word in words:
        line = f"{lines[-1]} {word}".lstrip()
        lines[-1:] = [line] if _measure_text(line) <= width or not lines[-1] else [lines[-1], word]
    return lines


def _measure_text(text: str) -> int:
    """In columns; what colours it takes none."""
    return cell_len(STYLE.sub("", text).replace(HOLDER, " "))


def _fold_cell(text: str, width: int) -> list[str]:
    """As a column has to: also within a word that is wider than it."""
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
    """How wide each column is: short words stay whole as long as there is something else to fold."""
    widths = _measure_columns(rows)
    words = _measure_columns([max(cell.split(" "), key=cell_len) for cell in row] for row in rows)
    for least in ([min(word, SHORT_WORD) for word in words], [NARROWEST] * len(words)):
        while _join_widths(widths) > room and any(map(gt, widths, least)):
            # from the widest, of several the last; what names the row counts half as wide
            _, at = max((width // (1 if at else 2), at) for at, width in enumerate(widths) if width > least[at])
            widths[at] -= 1
    return widths

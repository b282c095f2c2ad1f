"""What commands print: tables for people, one JSON object for programs; colour where somebody can see it."""

import itertools
import json
import sys
import textwrap
import threading
import time
import unicodedata
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import gt
from typing import Any, TextIO

from gateway.cli.layout import get_columns
from gateway.cli.program import apply_program_name
from gateway.config.home import get_process_environment
from gateway.errors import GatewayError
from gateway.logs.text import to_json_text, to_one_line, to_text_block

GAP = "  "  # between two columns
NARROWEST = 4  # columns of a terminal that each column of a table keeps
LONGEST_CELL = 2000
SHORT_WORD = 16
LONGEST_WORD = 20  # columns: what is longer in the last column of a table is a text
SILENT = frozenset({"", "0"})
STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


class MissingAnswer(GatewayError):
    """A question has to be answered by a person, and none is there."""


def show_json(data: Mapping[str, Any], version: int = 1) -> None:
    """The one object on stdout; `version` grows when a field changes its meaning or goes."""
    print(to_json_text(json.dumps({"schema_version": version, **data}, ensure_ascii=False, default=str)), flush=True)


def show_result(data: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """What a command did: the one object for a program, or the text for a person."""
    if as_json:
        show_json(data)
    else:
        print_text(escape_text(text))


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing to show") -> None:
    """Columns as wide as they need to be. On a terminal without room for that nothing is cut: long cells are folded."""
    cells = [[_clean("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        print(apply_style(apply_program_name(empty), "dim"))
        return
    head, *body = _lay_rows([list(headers), *cells], get_columns(sys.stdout))
    print("\n".join(apply_style(line, "bold") for line in head))
    print("\n".join(line for row in body for line in row))


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Name and value, a line each; on a terminal a long value goes on below itself."""
    pairs = [(name, _clean(str(value))) for name, value in fields]
    widest = max((count_columns(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        first, *further = _split_lines(value, widest + len(GAP)) or [""]
        print(f"{apply_style(_pad(name, widest), 'dim')}{GAP}{first}".rstrip())
        for line in further:
            print(" " * widest + GAP + line)


def print_text(text: str) -> None:
    """Lines of ours, as they are."""
    print(apply_program_name(text))


def print_note(text: str) -> None:
    """Something beside the result, for the person: on stderr, so that a pipe gets the result alone."""
    sys.stdout.flush()  # on a terminal the two come in the order in which they were said
    print(apply_program_name(escape_text(text)), file=sys.stderr)


def ask_person(question: str, is_sure: bool) -> bool:
    """Whether they say yes, or have said so before. MissingAnswer: no terminal is there to ask at."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise MissingAnswer("nobody is there to be asked\nwhoever has read the above says --yes")
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_lines(text: str, indent: str, *styles: str) -> None:
    """All of it, on a terminal in as many lines as it takes."""
    for line in _split_lines(apply_program_name(text), len(indent)):
        print(f"{indent}{apply_style(line, *styles)}")


def _clean(text: str) -> str:
    return apply_program_name(to_one_line(text, LONGEST_CELL))


def escape_text(text: str) -> str:
    """All of it, in its lines, and nothing in it acts on the terminal."""
    expanded = text.expandtabs(4)
    return to_text_block(expanded, len(expanded))


def apply_style(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """The text in these styles, where the stream shows them."""
    if not styles or not has_colours(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(str(STYLES[style]) for style in styles)}m{text}\x1b[0m"


def has_colours(stream: TextIO) -> bool:
    """NO_COLOR says no, FORCE_COLOR says yes, else whether a person looks at it."""
    environ = get_process_environment()
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] not in ("0", "false")
    return stream.isatty() and environ.get("TERM") != "dumb"


def format_duration(seconds: float) -> str:
    """A duration as people say it: `350 ms`, `12 s`, `3 min 20 s`, `2 d 4 h`."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, whole = divmod(whole, size)
        parts.append((count, name))
    first = next(at for at, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {name}" for count, name in parts[first : first + 2] if count)


def format_ago(moment: float, now: float | None = None) -> str:
    """How long ago that was; `never` for no moment at all."""
    if not moment:
        return "never"
    passed = (time.time() if now is None else now) - moment
    return "just now" if passed < 1 else f"{format_duration(passed)} ago"


def join_choices(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def count_columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_count_columns(character) for character in text)


def _count_columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _lay_rows(rows: list[list[str]], width: int | None) -> list[list[str]]:
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
    laid = [_fold_row(row, widths) for row in rows]
    for lines, text in zip(laid, texts, strict=False):
        start = _pad(lines[0], _join_widths(widths)) + GAP
        if count_columns(start + text) <= width:
            lines[0] = f"{start}{text}".rstrip()
        elif text:
            lines += [GAP + line for line in _fold(text, width - len(GAP))]
    return laid


def _measure_columns(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(count_columns, column)) for column in zip(*rows, strict=True)]


def _join_widths(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fold_row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    folded = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = itertools.zip_longest(*folded, fillvalue="")
    return [GAP.join(map(_pad, line, widths)).rstrip() for line in lines]


def _fit_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """How wide each column is: short words stay whole as long as there is something else to fold."""
    widths = _measure_columns(rows)
    words = _measure_columns([max(cell.split(" "), key=count_columns) for cell in row] for row in rows)
    for least in ([min(word, SHORT_WORD) for word in words], [NARROWEST] * len(words)):
        while _join_widths(widths) > room and any(map(gt, widths, least)):
            # from the widest, of several the last; what names the row counts half as wide
            _, at = max((width // (1 if at else 2), at) for at, width in enumerate(widths) if width > least[at])
            widths[at] -= 1
    return widths


def _split_lines(text: str, indent: int) -> list[str]:
    width = get_columns(sys.stdout)
    return [text] if width is None else _fold(text, max(width - indent, NARROWEST))


def _fold(text: str, width: int) -> list[str]:
    """Lines of at most so many columns, which end between two words where one of them is not longer than a line."""
    if count_columns(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        if count_columns(line := f"{lines[-1]} {word}".lstrip()) <= width:
            lines[-1] = line
            continue
        lines.append("")
        for character in word:
            if count_columns(lines[-1]) + count_columns(character) > width:
                lines.append("")
            lines[-1] += character
    return [line for line in lines if line]


def _pad(text: str, width: int) -> str:
    return text + " " * (width - count_columns(text))


QUIET_SECONDS = 1.0  # seconds before a word is said
TICK = 0.25


@contextmanager
def show_progress(what: str) -> Generator[None, None, None]:
    """On a terminal one line of stderr counts the seconds, and goes; elsewhere it is said once."""
    over = threading.Event()
    thread = threading.Thread(target=_print_progress, args=(what, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _print_progress(what: str, over: threading.Event) -> None:
    begun = time.monotonic()
    if over.wait(QUIET_SECONDS):
        return
    if not sys.stderr.isatty():
        print_note(f"{what} ...")
        return
    while not over.wait(TICK):
        sys.stderr.write(f"\r\x1b[2K{what}: {format_duration(time.monotonic() - begun)}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()


WIDTH = 100


def render_box(title: str, fields: Sequence[tuple[str, str]]) -> str:
    """A frame around names and values; long values go on in the next line."""
    names = max(count_columns(name) for name, _ in fields)
    inner = WIDTH - 4
    lines: list[str] = []
    for name, value in fields:
        folded = textwrap.wrap(value, inner - names - 2, break_on_hyphens=False, break_long_words=False) or [""]
        lines += [f"{label:{names}}  {part}" for label, part in zip([name, *[""] * len(folded)], folded, strict=False)]
    widest = max(count_columns(line) for line in [*lines, title])
    top = f"╭─ {title} " + "─" * (widest - count_columns(title) - 1) + "╮"
    rows = [f"│ {line}{' ' * (widest - count_columns(line))} │" for line in lines]
    return "\n".join([top, *rows, "╰" + "─" * (widest + 2) + "╯"])

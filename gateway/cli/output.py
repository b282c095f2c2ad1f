"""What commands print: tables for people, one JSON object for programs; colour where somebody can see it."""

import json
import os
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from gateway.config.home import process_environment
from gateway.logs.text import to_one_line, to_text_block

STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


def show_json(data: Mapping[str, Any], version: int = 1) -> None:
    """The one object on stdout; `version` grows when a field changes its meaning or goes."""
    print(json.dumps({"schema_version": version, **data}, ensure_ascii=False, default=str))


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing to show") -> None:
    """Columns as wide as they need to be; on a terminal the last one ends where the terminal does."""
    cells = [[to_one_line("" if cell is None else str(cell), 500) for cell in row] for row in rows]
    if not cells:
        print(styled(empty, "dim"))
        return
    widths = [max(map(columns, column)) for column in zip(headers, *cells, strict=True)]
    room = _room(sys.stdout)
    print(styled(_row(headers, widths, room), "bold"))
    for row in cells:
        print(_row(row, widths, room))


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Name and value, a line each."""
    pairs = [(name, to_one_line(str(value), 2000)) for name, value in fields]
    widest = max((columns(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        print(f"{styled(_padded(name, widest), 'dim')}  {value}")


def note(text: str) -> None:
    """Something beside the result, for the person: on stderr, so that a pipe gets the result alone."""
    sys.stdout.flush()  # on a terminal the two come in the order in which they were said
    print(text, file=sys.stderr)


def shown(text: str) -> str:
    """All of it, in its lines, and nothing in it acts on the terminal."""
    expanded = text.expandtabs(4)
    return to_text_block(expanded, len(expanded))


def styled(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """The text in these styles, where the stream shows them."""
    if not styles or not has_colours(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(str(STYLES[style]) for style in styles)}m{text}\x1b[0m"


def has_colours(stream: TextIO) -> bool:
    """NO_COLOR says no, FORCE_COLOR says yes, else whether a person looks at it."""
    environ = process_environment()
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] not in ("0", "false")
    return stream.isatty() and environ.get("TERM") != "dumb"


def span(seconds: float) -> str:
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


def ago(moment: float, now: float | None = None) -> str:
    """How long ago that was; `never` for no moment at all."""
    if not moment:
        return "never"
    passed = (time.time() if now is None else now) - moment
    return "just now" if passed < 1 else f"{span(passed)} ago"


def amount(size: float) -> str:
    """A number of bytes as people say it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _row(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    line = "  ".join(_padded(cell, width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    return line if room is None else _cut(line, room)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _cut(line: str, room: int) -> str:
    if columns(line) <= room:
        return line
    while columns(line) > room - 1:
        line = line[:-1]
    return line.rstrip() + "…"


def _room(stream: TextIO) -> int | None:
    """How many columns there are; None where the reader is no terminal, and gets it all."""
    if not stream.isatty():
        return None
    return os.get_terminal_size(stream.fileno()).columns or 80

"""What commands print: tables for people, one JSON object for programs; colour where somebody can see it."""

import argparse
import json
import sys
import termios
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, TypeAlias

from gateway.cli.layout import get_columns
from gateway.cli.program import apply_program_name
from gateway.config.home import get_process_environment
from gateway.errors import GatewayError
from gateway.logs.text import to_json_text, to_one_line, to_text_block

LONGEST_CELL = 2000
JUST_NOW = 5.0
QUIET_SECONDS = 1.0  # before anything is said of what lasts
STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}

Measure: TypeAlias = Callable[[], tuple[int, int]]
"""How much is done, of how much."""


class MissingAnswer(GatewayError):
    """A question has to be answered by a person, and none is there."""


def add_json_option(*parsers: argparse.ArgumentParser) -> None:
    """Add the option by which programs ask for one object in place of a text for people."""
    for one in parsers:
        one.add_argument("--json", action="store_true", help="print one object")


def show_json(data: Mapping[str, Any], version: int = 1) -> None:
    """The one object on stdout; `version` grows when a field changes its meaning or goes."""
    print(to_json_text(json.dumps({"schema_version": version, **data}, ensure_ascii=False, default=str)), flush=True)


def show_result(data: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """What a command did: the one object for a program, or the text for a person."""
    if as_json:
        show_json(data)
    else:
        print_text(escape_text(text))


def show_answer(data: dict[str, Any], show_text: Callable[[dict[str, Any]], None], *, as_json: bool) -> None:
    """Show what the gateway answered: the one object to a program, or what `show_text` makes of it to a person."""
    if as_json:
        show_json(data)
    else:
        show_text(data)


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing to show") -> None:
    """Columns as wide as they need to be. On a terminal without room for that nothing is cut: long cells are folded."""
    cells = [[to_one_line("" if cell is None else str(cell), LONGEST_CELL) for cell in row] for row in rows]
    if not cells:
        print(apply_style(apply_program_name(empty), "dim"))
        return
    from gateway.cli.table import format_rows  # noqa: PLC0415 - programs are answered without it

    head, *body = format_rows([list(headers), *cells], get_columns(sys.stdout))
    print("\n".join(apply_style(line, "bold") for line in head))
    print("\n".join(line for row in body for line in row))


def show_fields(fields: Iterable[tuple[str, object]], *, is_whole: bool = False) -> None:
    """Name and value, a line each; on a terminal a long value goes on below itself.

    `is_whole`: however long it is, and with words of others.
    """
    from gateway.cli.table import GAP, expand_text, fold_data, fold_text  # noqa: PLC0415 - as above

    texts = [(name, str(value)) for name, value in fields]
    pairs = [(name, to_one_line(text, len(text) if is_whole else LONGEST_CELL)) for name, text in texts]
    widest = max((len(name) for name, _ in pairs), default=0)
    width, fold = get_columns(sys.stdout), fold_data if is_whole else fold_text
    for name, value in pairs:
        first, *further = [value] if width is None else fold(value, width - widest - len(GAP))
        print(f"{apply_style(expand_text(name, widest), 'dim')}{GAP}{first}".rstrip())
        for line in further:
            print(" " * widest + GAP + line)


def print_text(text: str) -> None:
    """Lines of ours."""
    print(fold_for(sys.stdout, apply_program_name(text)))


def print_note(text: str) -> None:
    """Something beside the result, for the person: on stderr, so that a pipe gets the result alone."""
    sys.stdout.flush()  # on a terminal the two come in the order in which they were said
    print(fold_for(sys.stderr, apply_program_name(escape_text(text))), file=sys.stderr)


def fold_for(stream: TextIO, text: str, indent: str = "") -> str:
    """The text as its reader wants it: on a terminal a line goes on in the next one, between two words and by `indent`
    further in; elsewhere a line is a line.
    """
    if (width := get_columns(stream)) is None or all(len(line) <= width // 2 for line in text.split("\n")):
        return text  # also where each sign takes two columns
    from gateway.cli.table import fold_block  # noqa: PLC0415 - as above

    return fold_block(text, width, indent)


def fold_log(stream: TextIO, line: str) -> str:
    """A line of a log, set in where it goes on, so that no part of it can pass for another."""
    return fold_for(stream, line, " " * 4)


def ask_person(question: str, is_sure: bool) -> bool:
    """Whether they say yes, or have said so before. MissingAnswer: no terminal is there to ask at."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise MissingAnswer("nobody is there to be asked\nwhoever has read the above says --yes")
    return wait_for_yes(question)


def wait_for_yes(question: str) -> bool:
    """At a terminal. What was typed or pasted before the question stood there is no answer to it."""
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_lines(text: str, indent: str, *styles: str) -> None:
    """Words of ours: all of it, on a terminal in as many lines as it takes."""
    from gateway.cli.table import fold_text  # noqa: PLC0415 - as above

    width, text = get_columns(sys.stdout), apply_program_name(text)
    for line in [text] if width is None else fold_text(text, width - len(indent)):
        print(f"{indent}{apply_style(line, *styles)}")


def print_data(text: str, indent: str, *styles: str) -> None:
    """The same for words of others, which stay as they are; where they go on they are set in, to begin no line."""
    from gateway.cli.table import GAP, fold_data  # noqa: PLC0415 - as above

    width = get_columns(sys.stdout)
    first, *further = [text] if width is None else fold_data(text, width - len(indent) - len(GAP))
    print(f"{indent}{apply_style(first, *styles)}")
    for line in further:
        print(f"{indent}{GAP}{apply_style(line, *styles)}")


def print_code(line: str) -> None:
    """A line of somebody's file, whole."""
    from gateway.cli.table import fold_code  # noqa: PLC0415 - as above

    width, text = get_columns(sys.stdout), escape_text(line)
    print(text if width is None else "\n".join(fold_code(text, width)))


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


def format_ago(moment: float) -> str:
    """How long ago that was; `never` for no moment at all."""
    if not moment:
        return "never"
    passed = time.time() - moment
    return "just now" if passed < JUST_NOW else f"{format_duration(passed)} ago"


def join_choices(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


@contextmanager
def show_progress(
    what: str, measure: Measure | None = None, after: float = QUIET_SECONDS
) -> Generator[None, None, None]:
    """Say what lasts longer than a moment: on a terminal by a bar on stderr, which goes; elsewhere in one line."""
    over = threading.Event()
    thread = threading.Thread(target=_print_progress, args=(to_one_line(what), measure, over, after), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _print_progress(what: str, measure: Measure | None, over: threading.Event, after: float) -> None:
    if over.wait(after):
        return
    if not sys.stderr.isatty() or get_process_environment().get("TERM") == "dumb":
        print_note(f"{what} ...")
        return
    from gateway.cli.progress import render_progress  # noqa: PLC0415 - heavy, and few things last

    render_progress(what, measure, over, sys.stderr, get_columns(sys.stderr), has_colours=has_colours(sys.stderr))

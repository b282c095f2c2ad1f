"""The output of commands: tables for people, one JSON object for programs, and colour on terminals that show it."""

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
QUIET_SECONDS = 1.0  # before a long action is announced
STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}

Measure: TypeAlias = Callable[[], tuple[int, int]]
"""The finished amount, and the total."""


class MissingAnswer(GatewayError):
    """A question needs a person's answer, and no terminal is there."""


def add_json_option(*parsers: argparse.ArgumentParser) -> None:
    """Add the option by which programs ask for one object in place of a text for people."""
    for one in parsers:
        one.add_argument("--json", action="store_true", help="print a JSON object")


def show_json(data: Mapping[str, Any], version: int = 1) -> None:
    """Print the one object on stdout; `version` grows when a field changes its meaning or disappears."""
    print(to_json_text(json.dumps({"schema_version": version, **data}, ensure_ascii=False, default=str)), flush=True)


def show_result(data: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print a command's result: the one object for a program, or the text for a person."""
    if as_json:
        show_json(data)
    else:
        print_text(escape_text(text))


def show_answer(data: dict[str, Any], show_text: Callable[[dict[str, Any]], None], *, as_json: bool) -> None:
    """Print the gateway's answer: the one object for a program, or `show_text` for a person."""
    if as_json:
        show_json(data)
    else:
        show_text(data)


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "nothing to show") -> None:
    """Print a table with columns as wide as needed. On a narrow terminal nothing is cut: long cells are folded."""
    cells = [[to_one_line("" if cell is None else str(cell), LONGEST_CELL) for cell in row] for row in rows]
    if not cells:
        print(apply_style(apply_program_name(empty), "dim"))
        return
    from gateway.cli.table import format_rows  # noqa: PLC0415 - programs are answered without it

    head, *body = format_rows([list(headers), *cells], get_columns(sys.stdout))
    print("\n".join(apply_style(line, "bold") for line in head))
    print("\n".join(line for row in body for line in row))


def show_fields(fields: Iterable[tuple[str, object]], *, is_whole: bool = False) -> None:
    """Print names and values, a line each; on a terminal a long value continues below itself.

    `is_whole`: the value may have any length, and text of others.
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


def format_name(names: Mapping[str, Any], identity: str, otherwise: str = "") -> str:
    """Return the name of a person or a chat, with the id if the name alone does not say who it is."""
    known = names.get(identity)
    if not known:
        return otherwise or identity
    return f"{known['name']} ({identity})" if known["is_shared"] else str(known["name"])


def format_names(names: Mapping[str, Any], text: str) -> str:
    """Return the text with names in place of the ids in it."""
    return " ".join(format_name(names, word) for word in text.split(" "))


def print_text(text: str) -> None:
    """Print lines of our own."""
    print(fold_for(sys.stdout, apply_program_name(text)))


def print_note(text: str) -> None:
    """Print a note for the person on stderr, so that a pipe gets the result alone."""
    sys.stdout.flush()  # on a terminal both come in the right order
    print(fold_for(sys.stderr, apply_program_name(escape_text(text))), file=sys.stderr)


def fold_for(stream: TextIO, text: str, indent: str = "") -> str:
    """Fold a text for its reader: on a terminal a long line continues between two words, and by `indent` further in.

    For any other reader a line stays a line.
    """
    if (width := get_columns(stream)) is None or all(len(line) <= width // 2 for line in text.split("\n")):
        return text  # short enough even if each character takes two columns
    from gateway.cli.table import fold_block  # noqa: PLC0415 - as above

    return fold_block(text, width, indent)


def fold_log(stream: TextIO, line: str) -> str:
    """Fold a line of a log with an indent, so that no part of it can pass for another line."""
    return fold_for(stream, line, " " * 4)


def ask_person(question: str, is_sure: bool) -> bool:
    """Return True if the person agrees, or has agreed before. Raises MissingAnswer without a terminal."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise MissingAnswer("no terminal can ask you\nread the above, then add --yes")
    return wait_for_yes(question)


def wait_for_yes(question: str) -> bool:
    """Ask at a terminal. Text that was typed or pasted before the question does not answer it."""
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_lines(text: str, indent: str, *styles: str) -> None:
    """Print words of ours; on a terminal in as many lines as needed."""
    from gateway.cli.table import fold_text  # noqa: PLC0415 - as above

    width, text = get_columns(sys.stdout), apply_program_name(text)
    for line in [text] if width is None else fold_text(text, width - len(indent)):
        print(f"{indent}{apply_style(line, *styles)}")


def print_data(text: str, indent: str, *styles: str) -> None:
    """Print words of others unchanged; their further lines are indented, so that none looks like ours."""
    from gateway.cli.table import GAP, fold_data  # noqa: PLC0415 - as above

    width = get_columns(sys.stdout)
    first, *further = [text] if width is None else fold_data(text, width - len(indent) - len(GAP))
    print(f"{indent}{apply_style(first, *styles)}")
    for line in further:
        print(f"{indent}{GAP}{apply_style(line, *styles)}")


def print_code(line: str) -> None:
    """Print a whole line of a person's file."""
    from gateway.cli.table import fold_code  # noqa: PLC0415 - as above

    width, text = get_columns(sys.stdout), escape_text(line)
    print(text if width is None else "\n".join(fold_code(text, width)))


def escape_text(text: str) -> str:
    """Return the whole text with its lines, such that nothing in it acts on the terminal."""
    expanded = text.expandtabs(4)
    return to_text_block(expanded, len(expanded))


def apply_style(text: str, *styles: str, stream: TextIO | None = None) -> str:
    """Apply these styles to the text, if the stream shows them."""
    if not styles or not has_colours(stream or sys.stdout):
        return text
    return f"\x1b[{';'.join(str(STYLES[style]) for style in styles)}m{text}\x1b[0m"


def has_colours(stream: TextIO) -> bool:
    """Return True if colours are wanted: by NO_COLOR, by FORCE_COLOR, or else on a terminal."""
    environ = get_process_environment()
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] not in ("0", "false")
    return stream.isatty() and environ.get("TERM") != "dumb"


def format_duration(seconds: float) -> str:
    """Format a duration as people say it: `350 ms`, `12 s`, `3 min 20 s`, `2 d 4 h`."""
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
    """Format how long ago a moment was; `never` for no moment at all."""
    if not moment:
        return "never"
    passed = time.time() - moment
    return "just now" if passed < JUST_NOW else f"{format_duration(passed)} ago"


def join_choices(names: Iterable[str]) -> str:
    """Join names to `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


@contextmanager
def show_progress(
    what: str, measure: Measure | None = None, after: float = QUIET_SECONDS
) -> Generator[None, None, None]:
    """Announce an action that lasts longer than a moment.

    A terminal shows a temporary bar on stderr; any other output gets one line.
    """
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

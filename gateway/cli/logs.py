"""`hermes-gateway logs`: what the gateway wrote to its log, across the files that it was divided into."""

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from gateway.cli.output import has_colours
from gateway.config.home import Home
from gateway.config.settings import PLUGIN_PREFIX
from gateway.errors import GatewayError
from gateway.logs.lines import LEVELS, LogLine, format_for_pipe, format_for_terminal, from_json
from gateway.logs.text import to_json_text, to_one_line
from gateway.yaml_source.units import parse_duration

POLL_PAUSE = 0.2
BLOCK_SIZE = 65_536


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines to begin with (50)")
    parser.add_argument("--level", choices=LEVELS, metavar="LEVEL", help="only this level and graver ones")
    parser.add_argument("--hook", metavar="NAME", help="only what was written at work for this hook")
    parser.add_argument("--session", metavar="KEY", help="only what was written at work for this session")
    parser.add_argument(
        "--since", type=parse_moment, metavar="TIME", help="only from then on: `1h`, `2026-01-31 12:00`"
    )
    parser.add_argument("--json", action="store_true", help="print the lines as they are kept, one object each")


def run(args: argparse.Namespace, home: Home) -> None:
    hook = find_hook_name(args.hook, home) if args.hook else None
    wanted = LineFilter(LEVELS.index(args.level or LEVELS[0]), hook, args.session, args.since or 0.0)
    if not home.log.exists() and not args.follow:
        raise GatewayError(f"there is no log yet: {home.log}\nit is made when the gateway first runs")
    with LogFollower(home.log) as follower:  # where it begins the last lines end: none is missed or shown twice
        for raw in read_last_lines(home.log, wanted, max(args.lines, 0), follower.begin):
            show_line(raw, as_json=args.json)
        while args.follow:
            sys.stdout.flush()
            time.sleep(POLL_PAUSE)
            for raw in follower.read():
                if wanted.takes(from_json(raw)):
                    show_line(raw, as_json=args.json)


def find_hook_name(name: str, home: Home) -> str:
    """As the log has it: the hook of this name, or where there is none the plugin."""
    is_plugin = (home.plugins / name).is_dir() or (home.hook_logs / f"{PLUGIN_PREFIX}{name}.log").exists()
    return PLUGIN_PREFIX + name if is_plugin and not (home.hooks / name).is_dir() else name


def parse_moment(text: str) -> float:
    """A time, or how long ago it was.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    if (seconds := parse_duration(text)) is not None:
        return time.time() - seconds
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError("write how long ago, as `1h`, or when, as `2026-01-31 12:00`") from None


class LineFilter(NamedTuple):
    """Which lines somebody wants to see."""

    level: int = 0
    hook: str | None = None
    session: str | None = None
    since: float = 0.0

    def takes(self, line: LogLine | None) -> bool:
        """A line that nobody can read is shown, unless something is asked for that only a readable one can be."""
        if line is None:
            return self == LineFilter()
        level = LEVELS.index(line.level) if line.level in LEVELS else len(LEVELS)
        return (
            level >= self.level
            and line.time >= self.since
            and self.hook in (None, line.context.get("hook"))
            and self.session in (None, line.context.get("session"))
        )


def show_line(raw: str, *, as_json: bool) -> None:
    line = from_json(raw)
    if as_json:
        print(to_json_text(raw))
    elif line is None:
        print(to_one_line(raw))
    else:
        print((format_for_terminal if has_colours(sys.stdout) else format_for_pipe)(line))


def read_last_lines(path: Path, wanted: LineFilter, most: int, end: int | None = None) -> list[str]:
    """The last lines that are wanted, the oldest first; of the newest file only what stands before `end`."""
    kept: deque[str] = deque()
    if most:
        for raw in _read_backwards(path, end):
            line = from_json(raw)
            if wanted.takes(line):
                kept.appendleft(raw)
            if len(kept) >= most or (line is not None and line.time < wanted.since):  # all before it is too old as well
                break
    return list(kept)


def _read_backwards(path: Path, end: int | None) -> Iterator[str]:
    """Every line from the last one back, through all files that there are."""
    for age in range(1000):
        try:
            with _rotated_path_of(path, age).open("rb") as file:
                yield from _read_file_backwards(file, None if age else end)
        except FileNotFoundError:
            return


def _rotated_path_of(path: Path, age: int) -> Path:
    return path.with_name(f"{path.name}.{age}") if age else path


def _read_file_backwards(file: BinaryIO, end: int | None) -> Iterator[str]:
    position, rest = file.seek(0, os.SEEK_END) if end is None else end, b""
    while position:
        step = min(BLOCK_SIZE, position)
        position = file.seek(position - step)
        first, *lines = (file.read(step) + rest).split(b"\n")
        for line in reversed(lines):
            if line:
                yield line.decode(errors="replace")
        rest = first
    if rest:
        yield rest.decode(errors="replace")


class LogFollower:
    """Reads on from the present end of a file, and into the new one when the writer starts a new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file = self._open(path)
        self.begin = self._file.seek(0, os.SEEK_END) if self._file else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def read(self) -> Iterator[str]:
        """The whole lines that came since the last time."""
        if self._file is None:
            self._file = self._open(self._path)
        while self._file:
            replaced = self._is_replaced(self._file)  # asked before reading, so that nothing comes between
            yield from self._split(self._file.read())
            if not replaced:
                return
            self._file = self._next(self._file)

    def _split(self, data: bytes) -> Iterator[str]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return (line.decode(errors="replace") for line in lines if line)

    @staticmethod
    def _open(path: Path) -> BinaryIO | None:
        try:
            return path.open("rb")
        except FileNotFoundError:
            return None

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False  # between two files: the new one is there in an instant

    def _next(self, file: BinaryIO) -> BinaryIO | None:
        """The file that was begun after this one, which by now may itself be an old one."""
        mine = os.fstat(file.fileno())
        file.close()
        for age in range(1, 1000):
            try:
                if os.path.samestat(_rotated_path_of(self._path, age).stat(), mine):
                    return self._open(_rotated_path_of(self._path, age - 1))
            except FileNotFoundError:
                break
        return self._open(self._path)

"""The files of a log, for those who read it: the last lines, and on as they come, also into the next file."""

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from gateway.logs.lines import LEVELS, LogLine, from_json

BLOCK_SIZE = 65_536
MOST_BEHIND = 4 << 20  # bytes that a reader catches up on; one that is further behind begins at the end


class LogPlace(NamedTuple):
    """A place in a log: which file, by the number that stays when it is renamed, and the byte."""

    file: int
    offset: int


class LineFilter(NamedTuple):
    """A filter of lines."""

    level: int = 0
    hook: str | None = None
    session: str | None = None
    since: float = 0.0
    text: str = ""

    def takes(self, line: LogLine | None) -> bool:
        """Return True if the line is wanted. An unparsable line is shown unless the filter needs its fields."""
        if line is None:
            return self == LineFilter()
        level = LEVELS.index(line.level) if line.level in LEVELS else len(LEVELS)
        return (
            level >= self.level
            and line.time >= self.since
            and self.hook in (None, line.context.get("hook"))
            and self.session in (None, line.context.get("session"))
            and (not self.text or self.text.lower() in "\n".join(_texts_of(line)).lower())
        )


def _texts_of(line: LogLine) -> tuple[str, ...]:
    return line.logger, line.message, line.exception, *line.context.values()


def read_last_lines(
    path: Path, wanted: LineFilter, most: int, end: int | None = None, furthest: int | None = None
) -> list[str]:
    """Return the last wanted lines, the oldest first; of the newest file only those before `end`.

    `furthest`: among the last so many lines.
    """
    kept: deque[str] = deque()
    if most:
        for raw in islice(_read_backwards(path, end), furthest):
            line = from_json(raw)
            if wanted.takes(line):
                kept.appendleft(raw)
            if len(kept) >= most or (line is not None and line.time < wanted.since):  # all before it is too old as well
                break
    return list(kept)


def _read_backwards(path: Path, end: int | None) -> Iterator[str]:
    """Yield every line from the last one back, through all existing files."""
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
    """Reads on from the present end of a file, and into the new one when the writer starts a new one.

    Or from a place where another one was; `is_gap`: that one is gone, or too far behind, and this begins at the end.
    """

    def __init__(self, path: Path, at: LogPlace | None = None) -> None:
        self._path = path
        self._rest = b""
        self._file = self._open_at(at) if at else None
        self.is_gap = at is not None and self._file is None
        if self._file is None and (file := self._open(path)):
            self._file = file
            file.seek(0, os.SEEK_END)
        self.begin = self._file.tell() if self._file else 0

    @property
    def place(self) -> LogPlace:
        """The place of the next line: a reader that begins there continues."""
        if self._file is None:
            return LogPlace(0, 0)
        return LogPlace(os.fstat(self._file.fileno()).st_ino, self._file.tell() - len(self._rest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def read(self) -> Iterator[str]:
        """Yield the whole lines that came since the last time."""
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

    def _open_at(self, at: LogPlace) -> BinaryIO | None:
        """Open the file of that place, if it exists and its end is near."""
        for age in range(1000):
            if (file := self._open(_rotated_path_of(self._path, age))) is None:
                return None
            found = os.fstat(file.fileno())
            if found.st_ino == at.file and at.offset <= found.st_size <= at.offset + MOST_BEHIND:
                file.seek(at.offset)
                return file
            file.close()
        return None

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
        """Open the file that was begun after this one, which by now may itself be an old one."""
        mine = os.fstat(file.fileno())
        file.close()
        for age in range(1, 1000):
            try:
                if os.path.samestat(_rotated_path_of(self._path, age).stat(), mine):
                    return self._open(_rotated_path_of(self._path, age - 1))
            except FileNotFoundError:
                break
        return self._open(self._path)

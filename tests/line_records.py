"""The recorded lines of a commit: its tests, and the lines that each of them executes.

A set of lines is a number with a bit for each.
"""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

Line = tuple[str, int]
MOST_TESTS = 40
NEAR_TESTS = 8  # of a file that lies near
MOST_SECONDS = 120.0  # that they took when they were recorded


@dataclass(frozen=True)
class RecordedTest:
    name: str
    seconds: float
    is_thorough: bool
    lines: int


class LineRecords:
    """With each line goes whether it waits for a call: else it is executed when its file is imported."""

    def __init__(self, lines: Sequence[tuple[str, int, bool]], tests: Iterable[RecordedTest]) -> None:
        self.tests = tuple(tests)
        self._numbers = {(path, line): number for number, (path, line, _) in enumerate(lines)}
        called = defaultdict[str, int](int)
        for number, (path, _, waits_for_call) in enumerate(lines):
            called[path] |= waits_for_call << number
        self._called = called

    @classmethod
    def load(cls, lines: Path, tests: Path) -> Self:
        with gzip.open(tests, "rt", encoding="utf-8") as file:
            return cls(json.loads(lines.read_text()), read_passed(file))

    def find_covered(self) -> set[Line]:
        reached = 0
        for test in self.tests:
            reached |= test.lines
        return {line for line in self._numbers if self._mask(line) & reached}

    def list_tests(self, line: Line) -> list[RecordedTest]:
        mask = self._mask(line)
        return [test for test in self.tests if test.lines & mask]

    def _mask(self, line: Line) -> int:
        """Return the lines whose execution tries this one.

        A process that a test starts imports most files, and needs few of them: statements that run at import count for
        the tests that call code of the file.
        """
        own, called = 1 << self._numbers[line], self._called[line[0]]
        return own if own & called else called or own


def read_passed(records: Iterable[str]) -> Iterator[RecordedTest]:
    """A test that fails without a fault finds none."""
    for record in map(json.loads, records):
        if record["has_passed"]:
            lines = int(record["lines"][::-1], 2)
            yield RecordedTest(record["name"], record["seconds"], record["is_thorough"], lines)


def find_tests_folder(path: str) -> str:
    """Return the folder with the tests of a source: `tests/jobs/` for a file in `gateway/jobs`."""
    room, *rest = path.split("/")
    return f"tests/{rest[0] if room == 'gateway' else room}/"


def choose(tests: Iterable[RecordedTest], near: str = "") -> list[RecordedTest]:
    """The cheapest of each file, then the second of each, and so on; those that are chosen begin with the cheapest.

    A file in the folder `near` has eight turns at a time, since a line is mostly looked at there.
    """
    seen, ranked = Counter[str](), []
    for test in sorted(tests, key=lambda one: (one.seconds, one.name)):
        file = test.name.partition("::")[0]
        turn = seen[file] // NEAR_TESTS if near and file.startswith(near) else seen[file]
        ranked.append((turn, test.seconds, test.name, test))
        seen[file] += 1
    chosen: list[RecordedTest] = []
    for *_, test in sorted(ranked, key=lambda one: one[:3])[:MOST_TESTS]:
        if not chosen or sum(one.seconds for one in chosen) + test.seconds <= MOST_SECONDS:
            chosen.append(test)
    return sorted(chosen, key=lambda one: one.seconds)

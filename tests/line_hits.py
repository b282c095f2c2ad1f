"""Which lines each test executes: a plugin for pytest, and what every process that a test starts begins with.

`tests/line_probes.py` puts this file into the environment of a clone, and in front of each statement there a probe that
sets a byte of `LINE_HITS`. All processes below one pytest process share these bytes, as a file that they map: so a
daemon that was killed has told what it did, and so has the worker of a hook, to which no way out is left. After each
test they are written down under its name, and set back.

A process finds the bytes by those that it descends from, and nothing has to be handed to it. One that descends from no
pytest tells nobody.

PYTEST_DONT_REWRITE: this is there before pytest.
"""

import builtins
import gzip
import json
import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = Path(sys.prefix, "line_hits")
LINES = FOLDER / "lines.json"  # what the bytes stand for, in their order
BYTES, HIT, NOTHING = "LINE_HITS", ord("1"), b"0"
THOROUGH = "thorough"  # the mark of a test that is left to `./x test --all`


def find_parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def name_file(pid: int) -> Path:
    return FOLDER / f"{pid}.bytes"


def map_bytes(file: Path) -> mmap.mmap:
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), 0)


def join_bytes() -> "mmap.mmap | dict[int, int]":
    """Map the bytes of the nearest pytest process among our ancestors."""
    pid = os.getpid()
    with suppress(OSError):
        while pid:
            if name_file(pid).exists():
                return map_bytes(name_file(pid))
            pid = find_parent(pid)
    return {}


class LineRecorder:
    """Writes a line for each test: its name, how it went, and a sign for each line of ours, 1 where it came by."""

    def __init__(self) -> None:
        self._nothing = NOTHING * len(json.loads(LINES.read_text()))
        name_file(os.getpid()).write_bytes(self._nothing)
        self._hits = map_bytes(name_file(os.getpid()))
        self._records = FOLDER / f"{os.getpid()}.jsonl.gz"
        self._reports: list[Any] = []
        setattr(builtins, BYTES, self._hits)

    def pytest_runtest_logstart(self) -> None:
        self._hits[:] = self._nothing
        self._reports = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        record = {
            "name": nodeid,
            "has_passed": all(report.passed for report in self._reports),
            "is_thorough": any(THOROUGH in report.keywords for report in self._reports),
            "seconds": round(sum(report.duration for report in self._reports), 3),
            "lines": self._hits[:].decode(),
        }
        with self._records.open("ab") as file:
            file.write(gzip.compress(json.dumps(record).encode() + b"\n", 1))


def pytest_configure(config: Any) -> None:
    """Of xdist the process that hands the tests out runs none."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(LineRecorder(), "test-recorder")


setattr(builtins, BYTES, join_bytes())

"""Two engines under one suite, and a clock that a test may set."""

import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.engine import Clock, Engine, NewRecord, Record, open_sqlite
from gateway.engine.interface import Delivery
from gateway.engine.journal_clock import read_machine_time
from gateway.testing.memory_engine import MemoryEngine

HOUR, DAY = 3600.0, 86400.0
JUMPS = [3 * HOUR, -3 * HOUR, 2 * DAY, 400 * DAY, 3650 * DAY, 7300 * DAY, -3650 * DAY]  # of the wall clock


class SetClock:
    """Real time, until a test moves it on."""

    def __init__(self) -> None:
        self.wall_ahead = 0.0
        self.steady_ahead = 0.0
        self.clock = Clock(
            lambda: time.time() + self.wall_ahead,
            lambda: time.monotonic() + self.steady_ahead,
            lambda: read_machine_time() + self.steady_ahead,
        )

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall_ahead += seconds

    def pass_by(self, seconds: float) -> None:
        """Time passes for both clocks."""
        self.wall_ahead += seconds
        self.steady_ahead += seconds


def subjects_of(records: list[Record]) -> list[str]:
    return [record.subject for record in records]


def seqs_of(deliveries: list[Delivery]) -> list[int]:
    return [delivery.record.seq for delivery in deliveries]


async def filled(engine: Engine, *subjects: str) -> list[int]:
    """Append a record to each subject, and return the sequences."""
    return [(await engine.append(NewRecord(subject, subject.encode())))[0] for subject in subjects]


@pytest.fixture
def time_of_day() -> SetClock:
    return SetClock()


@pytest.fixture(params=["sqlite", "memory"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path, time_of_day: SetClock) -> AsyncIterator[Engine]:
    if request.param == "memory":
        async with MemoryEngine(time_of_day.clock) as memory:
            yield memory
    else:
        async with await open_sqlite(tmp_path / "journal.db", clock=time_of_day.clock) as sqlite:
            yield sqlite


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def put_content(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def size_of(path: Path) -> int:
    return path.stat().st_size


def names_beside(path: Path) -> list[str]:
    """What the journal's folder holds, less the lock that always stays."""
    return sorted(file.name for file in path.parent.iterdir() if file.suffix != ".lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"

"""All engines under one suite, and a clock that a test may set; on a server's clock it has to wait."""

import math
import stat
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from gateway.cluster.nats.engine import open_nats
from gateway.engine.interface import Delivery, Engine, NewRecord, Record
from gateway.engine.journal_clock import Clock, read_machine_time
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.memory_engine import MemoryEngine
from tests.engine.nats_servers import run_servers

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
        """Set the wall clock."""
        self.wall_ahead += seconds

    def span(self, seconds: float) -> float:
        """So long on the clock of the test."""
        return seconds

    async def pass_by(self, seconds: float) -> None:
        """Time passes for both clocks."""
        self.wall_ahead += seconds
        self.steady_ahead += seconds

    async def outlast(self, seconds: float) -> None:
        """A little more than a span of so long passes."""
        await self.pass_by(seconds + 1)


class ServerClock(SetClock):
    """A server's clock, which cannot be set: a minute takes some seconds, and the test waits for them."""

    def span(self, seconds: float) -> float:
        return max(1.0, math.ceil(seconds / 20))

    async def pass_by(self, seconds: float) -> None:
        await anyio.sleep(seconds / 20)

    async def outlast(self, seconds: float) -> None:
        await anyio.sleep(self.span(seconds) + 1.5)  # the server looks once a second


def subjects_of(records: list[Record]) -> list[str]:
    return [record.subject for record in records]


def seqs_of(deliveries: list[Delivery]) -> list[int]:
    return [delivery.record.seq for delivery in deliveries]


async def filled(engine: Engine, *subjects: str) -> list[int]:
    """Append a record to each subject, and return the sequences."""
    return [(await engine.append(NewRecord(subject, subject.encode())))[0] for subject in subjects]


async def read_all(engine: Engine, pattern: str) -> list[Record]:
    found: list[Record] = []
    while page := await engine.read(pattern, found[-1].seq if found else 0, 1000):
        found += page
    return found


class Known:
    """A journal that is read from memory where that is enough, which for one who writes alone it always is."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def read(self, pattern: str, after: int = 0, limit: int = 100, *, fresh: bool = True) -> list[Record]:
        found: list[Record] = await self._inner.read(pattern, after, limit, fresh=False)
        return found

    async def last(self, subject: str, *, fresh: bool = True) -> Record | None:
        found: Record | None = await self._inner.last(subject, fresh=False)
        return found


ID_WINDOW = 3.0  # seconds in which a NATS server itself remembers ids
KINDS = ["sqlite", "memory", "nats", pytest.param("nats-3", marks=pytest.mark.thorough)]


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_servers(tmp_path_factory.mktemp("nats"), 1) as (server,):
        yield server.url


@pytest.fixture(scope="module")
def nats_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_servers(tmp_path_factory.mktemp("nats-3"), 3) as servers:
        yield ",".join(server.url for server in servers)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def time_of_day(request: pytest.FixtureRequest) -> SetClock:
    is_server = "engine" in request.fixturenames and request.getfixturevalue("kind").startswith("nats")
    return ServerClock() if is_server else SetClock()


@pytest.fixture(params=["sqlite", "memory"])
async def own_engine(request: pytest.FixtureRequest, tmp_path: Path, time_of_day: SetClock) -> AsyncIterator[Engine]:
    """Open an engine that uses the clock of this machine, which can be set."""
    async with AsyncExitStack() as stack:
        yield await open_engine(request.param, tmp_path, time_of_day, stack)


@pytest.fixture
async def engine(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, time_of_day: SetClock
) -> AsyncIterator[Engine]:
    async with AsyncExitStack() as stack:
        if kind.startswith("nats"):
            url = request.getfixturevalue("nats_servers" if kind == "nats-3" else "nats_server")
            nats = await stack.enter_async_context(await open_nats(f"{url}/t{uuid.uuid4().hex[:12]}", window=ID_WINDOW))
            yield cast("Engine", Known(nats)) if kind == "nats-3" else nats
        else:
            yield await open_engine(kind, tmp_path, time_of_day, stack)


async def open_engine(kind: str, folder: Path, time_of_day: SetClock, stack: AsyncExitStack) -> Engine:
    if kind == "memory":
        return await stack.enter_async_context(MemoryEngine(time_of_day.clock))
    return await stack.enter_async_context(await open_sqlite(folder / "journal.db", clock=time_of_day.clock))


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def put_content(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def size_of(path: Path) -> int:
    return path.stat().st_size


def names_beside(path: Path) -> list[str]:
    """Return the names in the journal's folder, without the permanent lock."""
    return sorted(file.name for file in path.parent.iterdir() if file.suffix != ".lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"

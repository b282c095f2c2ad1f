"""Measure the journal beside aiosqlite on the same disk: goal P10.

`.venv/bin/python -m bench.journal [--rounds N] [--seconds S] [--folder DIR]`. Each caller appends a row of 600 bytes,
waits until it is safe, and appends the next. aiosqlite has the same table, the same indexes and `synchronous=FULL`, in
an environment of its own that is made for the run; both are measured in turn. `commit` is a transaction a message as
it is usually written, an execute and a commit; `auto` lets one statement be its own transaction.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.options import parse_options
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite

ROOT = Path(__file__).parent.parent
CALLERS = (1, 16, 32, 100)
WAYS = ("commit", "auto")
BODY = b"x" * 600
GOAL_RATIO, GOAL_CALLERS = 10.0, 32

Latencies = list[float]


async def write(engine: SqliteEngine, callers: int, seconds: float) -> Latencies:
    taken: Latencies = []
    end = time.perf_counter() + seconds

    async def caller(number: int) -> None:
        while (began := time.perf_counter()) < end:
            await engine.append(NewRecord(f"gw.in.{number}", BODY))
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return taken


class Peer:
    """aiosqlite in its own process."""

    def __init__(self, python: Path, folder: Path) -> None:
        script = ROOT / "bench" / "peers" / "aiosqlite_rows.py"
        self._process = subprocess.Popen(
            [python, script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def write(self, way: str, callers: int, seconds: float) -> Latencies:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{way} {callers} {seconds}\n")
        self._process.stdin.flush()
        taken: Latencies = json.loads(self._process.stdout.readline())
        return taken

    def end(self) -> None:
        self._process.communicate()


@contextmanager
def peer(folder: Path) -> Iterator[Peer | None]:
    """The peer in an environment made for it; None, and the reason on the screen, where that fails."""
    home = folder / "environment"
    uv = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
    try:
        subprocess.run([uv, "venv", "-q", "--no-project", "--python", sys.executable, home], check=True)
        python = str(home / "bin" / "python")
        install = [uv, "pip", "install", "-q", "--no-config", "--python", python, "aiosqlite"]
        subprocess.run(install, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"without aiosqlite: {error}")
        yield None
        return
    other = Peer(home / "bin" / "python", folder)
    try:
        yield other
    finally:
        other.end()


async def measure(engine: SqliteEngine, other: Peer | None, rounds: int, seconds: float) -> dict[str, list[Latencies]]:
    """For each who and number of callers the latencies of every round, taken in turn."""
    found: dict[str, list[Latencies]] = {}
    for _ in range(rounds):
        for callers in CALLERS:
            found.setdefault(f"journal {callers}", []).append(await write(engine, callers, seconds))
            if other is None:
                continue
            for way in WAYS:
                found.setdefault(f"{way} {callers}", []).append(other.write(way, callers, seconds))
    return found


def rate(latencies: list[Latencies], seconds: float) -> float:
    """Rows a second, the median of the rounds."""
    return statistics.median(len(some) / seconds for some in latencies)


def shown(latencies: list[Latencies], seconds: float) -> str:
    every = sorted(latency for some in latencies for latency in some)
    p50, p99 = every[len(every) // 2], every[int(len(every) * 0.99)]
    return f"{rate(latencies, seconds):10,.0f}{p50 * 1e3:8.2f}{p99 * 1e3:8.2f}"


def ratio(ours: list[Latencies], theirs: list[Latencies]) -> float:
    """How many times more rows, the median of the rounds: what stood side by side is compared."""
    return statistics.median(len(some) / len(other) for some, other in zip(ours, theirs, strict=True))


def table(found: dict[str, list[Latencies]], seconds: float) -> Iterator[str]:
    ways = [way for way in WAYS if f"{way} 1" in found]
    heads = "".join(f" | {f'aiosqlite, {way}':>26}{'ratio':>9}" for way in ways)
    yield f"{'callers':>7}{'rows/s':>10}{'p50 ms':>8}{'p99 ms':>8}{heads}"
    for callers in CALLERS:
        ours = found[f"journal {callers}"]
        line = f"{callers:>7}{shown(ours, seconds)}"
        for way in ways:
            theirs = found[f"{way} {callers}"]
            line += f" | {shown(theirs, seconds)}{ratio(ours, theirs):8.1f}x"
        yield line
    if ways:
        times = ratio(found[f"journal {GOAL_CALLERS}"], found[f"commit {GOAL_CALLERS}"])
        said = f"{verdict(times >= GOAL_RATIO)} (at least {GOAL_RATIO:g}x)"
        yield f"{GOAL_CALLERS} callers beside aiosqlite, commit: {times:.1f}x  {said}"


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


async def run(folder: Path, rounds: int, seconds: float, alone: bool) -> None:
    with nullcontext() if alone else peer(folder) as other:
        async with await open_sqlite(folder / "journal.db") as engine:
            for line in table(await measure(engine, other, rounds, seconds), seconds):
                print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="S", help="how long each measurement lasts")
    parser.add_argument("--alone", action="store_true", help="without aiosqlite, and so without ratios")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to measure")
    options = parse_options(parser, rounds=1, seconds=0.1, alone=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        asyncio.run(run(Path(folder), options.rounds, options.seconds, options.alone))


if __name__ == "__main__":
    main()

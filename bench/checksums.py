"""Measure the checksums of records beside a journal without them: the goal is under 3 %.

`.venv/bin/python -m bench.checksums [--rounds N] [--rows N] [--folder DIR]`. Two journals on the same disk take the
same rows in turn, from one caller and from many, and are read again; what is compared is processor time, a round's two
sides next to each other. The one without is a journal whose records have no checksum, as version 0.1 wrote them.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias

from bench.options import parse_options
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite import log_table
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite

BODY = b"x" * 600
CALLERS = (1, 32)
PAGE = 100

Act: TypeAlias = Callable[[SqliteEngine], Awaitable[None]]


@contextmanager
def without_checksums() -> Iterator[None]:
    """Write and read records without checksums."""
    calculate = log_table.checksum_of
    log_table.checksum_of = lambda _subject, _data: None  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        log_table.checksum_of = calculate


async def write(engine: SqliteEngine, callers: int, rows: int) -> None:
    async def caller(number: int) -> None:
        for _ in range(rows // callers):
            await engine.append(NewRecord(f"gw.in.{number}", BODY))

    await asyncio.gather(*(caller(number) for number in range(callers)))


async def read(engine: SqliteEngine, rows: int) -> None:
    after = 0
    for _ in range(rows // PAGE):
        after = (await engine.read("gw.in.>", after, PAGE))[-1].seq


async def used(act: Act, engine: SqliteEngine) -> float:
    """Processor seconds, of all threads."""
    began = time.process_time()
    await act(engine)
    return time.process_time() - began


async def run(folder: Path, rounds: int, rows: int) -> None:
    acts: dict[str, Act] = {f"write, {count} callers": partial(write, callers=count, rows=rows) for count in CALLERS}
    acts["read"] = partial(read, rows=rows)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in acts}
    async with await open_sqlite(folder / "with.db") as ours, await open_sqlite(folder / "without.db") as bare:
        for number in range(rounds):
            for name, act in acts.items():
                taken: dict[bool, float] = {}
                for is_ours in (True, False) if number % 2 else (False, True):
                    with nullcontext() if is_ours else without_checksums():
                        taken[is_ours] = await used(act, ours if is_ours else bare)
                found[name].append((taken[True], taken[False]))
    for name, pairs in found.items():
        best = [min(side) / rows * 1e6 for side in zip(*pairs, strict=True)]
        middle = [statistics.median(side) / rows * 1e6 for side in zip(*pairs, strict=True)]
        print(
            f"{name:18} us a row: best {best[0]:6.2f} beside {best[1]:6.2f}, {best[0] / best[1] - 1:+.1%}; "
            f"median {middle[0]:6.2f} beside {middle[1]:6.2f}, {middle[0] / middle[1] - 1:+.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--folder", help="where the journals are made (a temporary folder)")
    args = parse_options(parser, rounds=2, rows=320)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        asyncio.run(run(Path(folder), args.rounds, args.rows))


if __name__ == "__main__":
    main()

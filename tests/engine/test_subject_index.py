"""Subjects are found by their ends, and a purge by the end costs no more than its own records."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite import subject_index
from gateway.engine.sqlite.engine import open_sqlite


async def test_a_large_purge_lets_others_write_in_between(path: Path) -> None:
    async with await open_sqlite(path) as engine:
        for _ in range(20):
            await engine.append(*(NewRecord("gw.in.long", b"x" * 20_000) for _ in range(100)))
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                await engine.append(NewRecord("gw.in.other", b""))
                written += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            assert await engine.purge("gw.in.long") == 2000
            tasks.cancel_scope.cancel()
        assert written > 3


async def test_a_purge_by_the_end_looks_at_nothing_else(path: Path) -> None:
    """The statements that SQLite runs are counted in its own steps."""
    async with await open_sqlite(path) as engine:
        for part in range(10):
            await engine.append(*(NewRecord(f"gw.out.chat.p{part}.c{n}", b"x") for n in range(1000)))
        await engine.append(NewRecord("gw.out.chat.q.mine", b"x"), NewRecord("gw.ask.m.mine", b"x"))
    with closing(sqlite3.connect(path)) as db:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        db.set_progress_handler(count, 1)
        assert subject_index.find_subjects(db, "gw.out.*.*.mine") == ["gw.out.chat.q.mine"]
        db.set_progress_handler(None, 0)
    assert steps < 500

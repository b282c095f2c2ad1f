"""A journal of an older version opens as it is, and becomes today's beside the traffic."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
from anyio import to_thread

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite import subject_index
from gateway.engine.sqlite.backup import create_backup, verify_journal
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.sqlite.schema import APPLICATION_ID, MIGRATIONS
from tests.spine import until

PATTERN = "gw.out.*.*.conv7"


def write_first_version(path: Path, records: int) -> None:
    """As version 0.1 wrote it: each conversation has messages, and replies in two places."""
    path.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("BEGIN")
        query = "INSERT INTO log (subject, ts, data) VALUES (?, ?, ?)"
        db.executemany(query, ((subject, time.time(), b"old") for subject in subjects(records)))
        db.execute("COMMIT")


def subjects(records: int) -> Iterator[str]:
    for number in range(records):
        conv = f"conv{number // 4}"
        yield (f"gw.in.{conv}", f"gw.turn.{conv}", f"gw.out.chat.a{number}.{conv}", f"gw.out.chat.b.{conv}")[number % 4]


async def is_built(engine: SqliteEngine) -> None:
    async def has_ended() -> bool:
        return not (await engine.health()).progress

    await until(has_ended, "the index")


async def test_its_records_are_found_by_their_end_before_and_after_the_index_is_built(path: Path) -> None:
    write_first_version(path, 400)
    async with await open_sqlite(path) as engine:
        before = await engine.read(PATTERN)
        await engine.append(NewRecord("gw.out.chat.new.conv7", b"new"))
        await is_built(engine)
        found = await engine.read(PATTERN)
        assert [record.data for record in found] == [b"old", b"old", b"new"]
        assert found[:2] == before[:2]
        assert await engine.purge(PATTERN) == 3
        assert await engine.read(PATTERN) == []
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM ending WHERE ending = 'conv7'").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM ending").fetchone() == (198,)


def test_the_index_goes_on_where_a_crash_has_left_it(path: Path) -> None:
    write_first_version(path, 4000)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in MIGRATIONS[1]:
            db.execute(statement)
        slices = 1
        while subject_index.build_piece(db, 0.001):
            assert subject_index.find_subjects(db, PATTERN) is None
            slices += 1
        assert slices > 3
        assert subject_index.find_subjects(db, PATTERN) == ["gw.out.chat.a30.conv7", "gw.out.chat.b.conv7"]


async def test_its_records_count_as_unchecked_and_the_backup_says_how_many(path: Path, tmp_path: Path) -> None:
    write_first_version(path, 40)
    assert verify_journal(path).unchecked == 40  # before any gateway has opened it
    async with await open_sqlite(path) as engine:
        await engine.append(NewRecord("gw.in.x", b"new"))
        contents = await to_thread.run_sync(create_backup, path, tmp_path / "copy.db")
    assert (contents.records, contents.unchecked, contents.damaged) == (41, 40, ())


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

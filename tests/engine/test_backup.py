"""Copies of a journal: taken under load, verified, put back."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from gateway.engine.interface import ConsumerSpec, NewRecord, append_in_parts
from gateway.engine.sqlite.backup import create_backup, restore_backup, verify_journal
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import EngineError, HomeBusy
from tests.engine.conftest import content_of, filled, mode_of, names_beside, put_content, size_of
from tests.spine import until


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


async def test_a_copy_taken_under_load_is_whole(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:

        async def write(writer: int) -> None:
            for n in range(1_000_000):
                name = f"{writer}.{n}".encode()
                await engine.append(NewRecord("a.x", name), NewRecord("a.y", name))

        before = await filled(engine, *("b.x" for _ in range(500)))
        writing = [asyncio.ensure_future(write(writer)) for writer in range(5)]
        await anyio.sleep(0.05)
        contents = await to_thread.run_sync(create_backup, path, copy)

        async def has_more() -> bool:
            return contents.records < (await engine.health()).records

        await until(has_more)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
    async with await open_sqlite(copy) as engine:
        found = await engine.read(">", limit=1_000_000)
        assert len(found) == contents.records
        assert found[-1].seq == contents.last_seq
        assert found[-1].ts == contents.newest
        assert [record.seq for record in found[:500]] == before
        left, right = [[record.data for record in found if record.subject == subject] for subject in ("a.x", "a.y")]
        assert left == right
        assert left


async def test_a_copy_can_be_taken_without_a_gateway(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await filled(engine, "a.x")
    assert create_backup(path, copy) == verify_journal(copy)
    assert verify_journal(path).records == 1
    assert mode_of(copy) == 0o600
    assert names_beside(path) == ["journal.db", "journal.db-end"]


async def test_a_copy_holds_what_consumers_are_owed_and_no_sequence_comes_back(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        seqs = await filled(engine, "a.1", "a.2", "a.3")
        first, _ = await (await engine.consumer(ConsumerSpec("c", ("a.*",)))).fetch(2, 0)
        await first.ack()
        await engine.purge("a.3")
        await to_thread.run_sync(create_backup, path, copy)
    async with await open_sqlite(copy) as engine:
        found = await (await engine.consumer(ConsumerSpec("c", ("a.*",)))).fetch(10, 0)
        assert [(delivery.record.seq, delivery.attempt) for delivery in found] == [(seqs[1], 2)]
        assert (await filled(engine, "a.4"))[0] > seqs[2]


async def test_nothing_is_overwritten(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await filled(engine, "a.x")
    put_content(copy, b"mine")
    with pytest.raises(EngineError, match="exists already"):
        create_backup(path, copy)
    assert content_of(copy) == b"mine"


def test_there_must_be_a_journal(path: Path, copy: Path) -> None:
    for attempt in (
        lambda: create_backup(path, copy),
        lambda: verify_journal(path),
        lambda: restore_backup(path, copy),
    ):
        with pytest.raises(EngineError, match="no journal"):
            attempt()
    assert not path.exists()
    assert not copy.exists()


def test_a_text_is_no_journal(copy: Path) -> None:
    copy.write_text("a text, longer than the header of a database would be" * 100)
    with pytest.raises(EngineError, match="damaged"):
        verify_journal(copy)


async def test_verify_finds_damage_deep_inside(path: Path) -> None:
    async with await open_sqlite(path) as engine:
        await append_in_parts(engine, (NewRecord(f"a.{n % 50}", os.urandom(600)) for n in range(2000)))
    with path.open("r+b") as file:
        file.seek(size_of(path) // 2 // 4096 * 4096)
        file.write(os.urandom(8192))
    with pytest.raises(EngineError, match="damaged"):
        verify_journal(path)


async def test_a_copy_takes_the_place_of_the_journal(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        (old,) = await filled(engine, "a.old")
        await to_thread.run_sync(create_backup, path, copy)
        await filled(engine, "a.new")
    kept = restore_backup(copy, path)
    assert kept is not None
    async with await open_sqlite(path) as engine:
        assert [record.seq for record in await engine.read(">")] == [old]
    async with await open_sqlite(kept) as engine:
        assert len(await engine.read(">")) == 2
    assert size_of(copy) > 0


async def test_a_copy_takes_the_place_of_a_damaged_journal(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await filled(engine, "a.x")
        await to_thread.run_sync(create_backup, path, copy)
    with path.open("r+b") as file:
        file.write(os.urandom(8192))
    damaged = content_of(path)
    kept = restore_backup(copy, path)
    assert kept is not None
    assert content_of(kept) == damaged
    assert verify_journal(path).records == 1


async def test_a_copy_can_begin_a_journal(path: Path, copy: Path) -> None:
    async with await open_sqlite(copy) as engine:
        await filled(engine, "a.x")
    assert restore_backup(copy, path) is None
    assert verify_journal(path) == verify_journal(copy)


async def test_nothing_is_restored_under_a_running_gateway(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await filled(engine, "a.x")
        await to_thread.run_sync(create_backup, path, copy)
        with pytest.raises(HomeBusy, match=str(os.getpid())):
            restore_backup(copy, path)
        await filled(engine, "a.y")


async def test_a_damaged_copy_is_not_restored(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await append_in_parts(engine, (NewRecord(f"a.{n % 50}", os.urandom(600)) for n in range(2000)))
        await to_thread.run_sync(create_backup, path, copy)
    with copy.open("r+b") as file:
        file.seek(size_of(copy) // 2 // 4096 * 4096)
        file.write(os.urandom(8192))
    with pytest.raises(EngineError, match="damaged"):
        restore_backup(copy, path)
    assert names_beside(path) == ["journal.db", "journal.db-end"]
    assert verify_journal(path).records == 2000


async def test_a_copy_that_acts_by_itself_is_not_restored(path: Path, copy: Path) -> None:
    async with await open_sqlite(path) as engine:
        await filled(engine, "a", "b")
    await to_thread.run_sync(create_backup, path, copy)
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("CREATE TRIGGER swallow AFTER INSERT ON log BEGIN DELETE FROM log; END")
    with pytest.raises(EngineError, match="acts by itself, by 'swallow'"):
        await to_thread.run_sync(restore_backup, copy, path)

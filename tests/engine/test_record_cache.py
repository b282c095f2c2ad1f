"""Answers of the journal from memory equal those from the disk."""

from pathlib import Path

import pytest

from gateway.engine import record_cache
from gateway.engine.interface import NewRecord, Record, append_in_parts
from gateway.engine.sqlite import log_table
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.sqlite.journal_file import open_reader

PATTERNS = ("a.x.1", "a.*.1", "a.x.*", "a.>", "*.y.2", "*", "b", ">", "a.*.*", "c.x.1")
SUBJECTS = ("a.x.1", "a.y.1", "a.x.2", "a.y.2", "b", "c.x.2")
ROUND = 1000


def on_the_disk(path: Path, pattern: str, after: int) -> list[Record]:
    db = open_reader(path)
    try:
        return log_table.read(db, pattern, after, 10 * ROUND, 0.0)
    finally:
        db.close()


@pytest.mark.parametrize("after", [0, ROUND, 5 * ROUND, 6 * ROUND - 7, 6 * ROUND, 7 * ROUND])
async def test_what_memory_says_stands_on_the_disk(tmp_path: Path, after: int) -> None:
    path = tmp_path / "journal.db"
    async with await open_sqlite(path) as engine:
        for _ in range(6):
            await engine.append(*(NewRecord(SUBJECTS[n % len(SUBJECTS)], b"%d" % n) for n in range(ROUND)))
        assert record_cache.MAX_RECORDS < 6 * ROUND, "some are in memory no more"
        await engine.purge("a.x.2", after=5 * ROUND)
        for pattern in PATTERNS:
            found = await engine.read(pattern, after, 10 * ROUND)
            assert found == on_the_disk(path, pattern, after), pattern


async def test_large_records_do_not_fill_the_memory_and_are_all_found(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        seqs = [(await engine.append(NewRecord("a.x", bytes(record_cache.MAX_BYTES // 3))))[0] for _ in range(5)]
        assert [record.seq for record in await engine.read("a.x")] == seqs
        assert [record.seq for record in await engine.read("a.x", seqs[2])] == seqs[3:]


async def test_the_last_of_a_subject_is_known_after_it_has_left_the_memory(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        (first,) = await engine.append(NewRecord("a.x", b""))
        await append_in_parts(engine, (NewRecord("a.y", b"") for _ in range(record_cache.MAX_RECORDS + 1)))
        last = await engine.last("a.x")
        assert last is not None
        assert last.seq == first

"""A journal whose newest records are gone says so, whatever took them, and keeps what is left as evidence."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.conftest import content_of, put_content

COUNT = 30


@pytest.fixture
async def killed(tmp_path: Path) -> Path:
    """The files of a journal as a gateway leaves them that is killed: its records are in the write-ahead log alone."""
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        for number in range(COUNT):
            await engine.append(NewRecord("a.x", b"%d" % number * 100))
        (tmp_path / "killed").mkdir()
        for suffix in ("", "-wal", "-end"):
            shutil.copyfile(tmp_path / f"journal.db{suffix}", tmp_path / "killed" / f"journal.db{suffix}")
    return tmp_path / "killed" / "journal.db"


async def look(journal: Path) -> tuple[int, str, int]:
    """How many records there are, what is said, and the sequence of the next one."""
    async with await open_sqlite(journal) as engine:
        count = len(await engine.read("a.x", 0, 100))
        said = " ".join((await engine.health()).warnings)
        (seq,) = await engine.append(NewRecord("b.x", b"next"))
    return count, said, seq


async def test_a_journal_that_is_whole_says_nothing(killed: Path) -> None:
    assert await look(killed) == (COUNT, "", COUNT + 1)
    assert await look(killed) == (COUNT, "", COUNT + 2)


def remove(journal: Path, suffix: str) -> None:
    Path(f"{journal}{suffix}").unlink()


def remove_log(journal: Path) -> None:
    remove(journal, "-wal")


def empty_all(journal: Path) -> None:
    journal.write_bytes(b"")


def cut_log(journal: Path) -> None:
    content = Path(f"{journal}-wal").read_bytes()
    Path(f"{journal}-wal").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("harm", [remove_log, empty_all, cut_log])
async def test_lost_records_are_named_until_a_person_has_seen_to_it(killed: Path, harm: Callable[[Path], None]) -> None:
    harm(killed)
    count, said, seq = await look(killed)
    assert count < COUNT
    assert "lost its newest records" in said
    assert f"up to {COUNT - count} records" in said
    assert seq == COUNT + 1, "no new record has the sequence of a lost one"
    left = [path for path in killed.parent.iterdir() if ".lost-" in path.name or ".orphan-" in path.name]
    assert len(left) == (harm is not remove_log), "the rest of the log is evidence"
    assert (await look(killed))[1] == said, "it is still to be seen"
    remove(killed, ".lost")
    assert (await look(killed))[1] == ""


def flip(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


async def test_each_byte_of_the_log_counts_or_is_missed_aloud(killed: Path, tmp_path: Path) -> None:
    chance = random.Random(39)
    content = content_of(Path(f"{killed}-wal"))
    silent = []
    for number in range(100):
        journal = tmp_path / str(number) / "journal.db"
        shutil.copytree(killed.parent, journal.parent)
        at = chance.randrange(len(content))
        put_content(Path(f"{journal}-wal"), flip(content, at, chance.randrange(8)))
        count, said, _ = await look(journal)
        if count < COUNT and not said:
            silent.append(at)
    assert silent == []

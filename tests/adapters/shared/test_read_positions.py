"""How far each chat was read, over restarts."""

import time
from pathlib import Path

import pytest

from gateway.adapters.shared.read_positions import LONGEST_AWAY, OVERLAP, ReadMark, ReadMarks
from gateway.engine.sqlite.engine import open_sqlite
from tests.engine.conftest import JUMPS
from tests.engine.test_journal_clock import BEGUN, Machine


async def test_marks_are_known_after_a_restart_and_of_each_the_last_counts(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        marks = ReadMarks(engine, "net", "bot")
        for at in range(1, 60):
            await marks.move(ReadMark("a", at, "ann"))
        await marks.move(ReadMark("b", 2**60 + 1, inside="thread"))
        assert len(await engine.read("gw.cur.net.>", 0, 500)) < 25, "the outdated go"
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        marks = ReadMarks(engine, "net", "bot")
        await marks.load()
        assert (marks.at("a"), marks.at("b", "thread"), marks.at("b")) == (59, 2**60 + 1, 0)
        assert [one.person for one in marks.since().chats()] == ["ann"]
        other = ReadMarks(engine, "net", "another bot")
        await other.load()
        assert not other.knows("a")


async def test_nothing_is_read_again_where_nobody_was_before_nor_what_a_good_line_has_told(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        marks = ReadMarks(engine, "net", "bot")
        assert not marks.since().time
        proved = time.time() - 1000
        await marks.note_alive(proved)
        await marks.note_alive(proved - 500)
        assert marks.since().time == proved - OVERLAP


async def test_whoever_comes_for_the_first_time_begins_there_and_nobody_else_does(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        marks = ReadMarks(engine, "net", "bot")
        await marks.begin(begun := time.time() - 1000)
        assert marks.since().time == begun - OVERLAP
        marks = ReadMarks(engine, "net", "bot")
        await marks.load()
        await marks.begin(time.time())
        assert marks.since().time == begun - OVERLAP


async def test_a_time_that_is_still_to_come_is_of_a_clock_that_went_wrong(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        marks = ReadMarks(engine, "net", "bot")
        await marks.note_alive(time.time() + 400 * 86_400)
        assert marks.since().time <= time.time() - LONGEST_AWAY
        await marks.note_alive(proved := time.time())
        assert marks.since().time == proved - OVERLAP


@pytest.mark.parametrize("jump", JUMPS)
async def test_whoever_sets_the_clock_makes_no_word_unread(tmp_path: Path, jump: float) -> None:
    machine = Machine()
    async with await open_sqlite(tmp_path / "journal.db", clock=machine.clock) as engine:
        marks = ReadMarks(engine, "net", "bot")
        await marks.note_alive(machine.wall)
        machine.wall += jump
        machine.run(600)
        assert marks.since().time == BEGUN - OVERLAP
        await marks.note_alive(machine.wall)
        machine.wall -= jump
        machine.run(600)
        assert marks.since().time == pytest.approx(BEGUN + 600 - OVERLAP)

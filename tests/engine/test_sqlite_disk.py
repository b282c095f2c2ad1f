"""The journal and its disk: room, damage, and a disk that is full."""

import asyncio
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gateway.engine.interface import ConsumerSpec, NewRecord, append_in_parts
from gateway.engine.sqlite.engine import SqliteEngine, open_sqlite
from gateway.engine.sqlite.faults import JournalFiles
from gateway.errors import EngineError
from tests.engine.conftest import SetClock, content_of, filled, names_beside, put_content, seqs_of, size_of
from tests.spine import until


async def fill_up(engine: SqliteEngine) -> list[int]:
    """Append until not even a small record finds room; what was acknowledged."""
    kept: list[int] = []
    for size in (20_000, 2_000, 10):
        refused = 0
        while refused < 5:
            try:
                kept += await engine.append(NewRecord("a.x", os.urandom(size)))
                refused = 0
            except EngineError as error:
                refused += "no room" in str(error)
    return kept


async def until_well(engine: SqliteEngine) -> None:
    async def is_well() -> bool:
        return (await engine.health()).ok

    await until(is_well, "room on the disk")


class TestRoom:
    async def test_comes_back_from_what_was_purged(self, path: Path, time_of_day: SetClock) -> None:
        async with await open_sqlite(path, clock=time_of_day.clock) as engine:
            for _ in range(4):
                await engine.append(*(NewRecord("a.x", os.urandom(4000)) for _ in range(500)))
            assert (await engine.health()).size > 2000 * 4000
            await engine.purge("a.x")
            assert (await engine.health()).size < 2000 * 400
        full = size_of(path)
        async with await open_sqlite(path, clock=time_of_day.clock) as engine:
            for _ in range(30):
                time_of_day.steady_ahead += 61
                await engine.append(NewRecord("b.x", b""))
        assert size_of(path) < full / 4

    async def test_what_stays_among_what_was_purged_is_moved_together(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            for turn in range(600):
                events = [NewRecord(f"event.{number}", os.urandom(1100)) for number in range(13)]
                await engine.append(*(NewRecord("turn.x", b"%d" % turn * 200) for _ in range(3)), *events)
            kept = sum(len(record.data) for record in await engine.read("turn.x", limit=2000))
            assert await engine.purge("event.*") == 600 * 13
            assert (await engine.health()).size < 1.6 * kept
            assert [record.data for record in await engine.read("turn.x", limit=2000)] == [
                b"%d" % turn * 200 for turn in range(600) for _ in range(3)
            ]

    async def test_what_was_purged_is_not_in_the_file_any_more(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await engine.append(NewRecord("a.x", b"a secret between us"), NewRecord("a.y", b"something else"))
            await engine.purge("a.x")
        content = content_of(path)
        assert b"something else" in content
        assert b"secret" not in content

    async def test_what_is_over_is_removed_from_the_file(self, path: Path, time_of_day: SetClock) -> None:
        async with await open_sqlite(path, clock=time_of_day.clock) as engine:
            await append_in_parts(engine, (NewRecord("a.x", b"", ttl=60) for _ in range(1200)))
            await engine.append(NewRecord("b.x", b""))
            assert (await engine.health()).records == 1201
            await time_of_day.pass_by(61)
            while (await engine.health()).records > 1:
                await engine.purge("nothing")


class TestDamage:
    async def make(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await append_in_parts(engine, (NewRecord(f"a.{n % 50}", os.urandom(600)) for n in range(2000)))

    def harm(self, path: Path, where: str) -> None:
        size = size_of(path)
        with path.open("r+b") as file:
            if where == "end":
                file.truncate(size // 2)
            else:
                file.seek({"header": 0, "middle": size // 2 // 4096 * 4096}[where])
                file.write(os.urandom(200_000))

    @pytest.mark.parametrize("where", ["header", "middle", "end"])
    async def test_is_set_aside_and_said(self, path: Path, where: str, caplog: pytest.LogCaptureFixture) -> None:
        await self.make(path)
        self.harm(path, where)
        damaged = content_of(path)
        with caplog.at_level(logging.WARNING):
            engine = await open_sqlite(path)
        async with engine:
            health = await engine.health()
            assert health.ok
            assert "was damaged" in health.detail
            kept = path.with_name(next(name for name in names_beside(path) if "damaged" in name))
            assert str(kept) in health.detail
            assert str(kept) in caplog.text
            assert content_of(kept) == damaged
            await filled(engine, "a.x")
        async with await open_sqlite(path) as engine:
            assert len(await engine.read(">")) == 1
            assert (await engine.health()).detail == "well"
            assert content_of(kept) == damaged

    async def test_found_while_running_stops_all_writing_and_is_said(
        self, path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        await self.make(path)
        async with await open_sqlite(path) as engine:
            self.harm(path, "middle")
            with caplog.at_level(logging.ERROR), pytest.raises(EngineError, match="is damaged"):
                await engine.read(">", limit=5000)
            health = await engine.health()
            assert not health.ok
            assert "restore a backup" in health.detail
            with pytest.raises(EngineError, match="is damaged"):
                await engine.append(NewRecord("a.x", b""))
        assert len(caplog.records) == 1

    async def test_does_not_lose_a_write_ahead_log_whose_journal_is_missing(self, path: Path) -> None:
        path.parent.mkdir()
        put_content(Path(f"{path}-wal"), b"what is left")
        async with await open_sqlite(path) as engine:
            await filled(engine, "a.x")
        (kept,) = [name for name in names_beside(path) if "orphan" in name]
        assert content_of(path.with_name(kept)) == b"what is left"


class TestPlace:
    @pytest.mark.parametrize("other", [None, b"something else"])
    async def test_a_file_that_is_deleted_or_replaced_takes_nothing_more(self, path: Path, other: bytes | None) -> None:
        async with await open_sqlite(path) as engine:
            await engine.append(NewRecord("a.x", b"one"))
            path.rename(path.with_name("kept"))  # noqa: ASYNC240 - at once
            if other:
                put_content(path, other)
            with pytest.raises(EngineError, match=r"deleted or replaced.*restore a backup"):
                await engine.append(NewRecord("a.x", b"two"))
            health = await engine.health()
            assert not health.ok
            assert "deleted or replaced" in health.detail

    def test_a_file_that_goes_right_after_a_commit_is_found_before_the_next(self, path: Path) -> None:
        path.parent.mkdir()
        put_content(path, b"a journal")
        files = JournalFiles(path)
        path.unlink()
        files.note_size()  # the commit stands: it must not fail for this
        assert "deleted or replaced" in files.find_damage()

    async def test_while_its_place_cannot_be_looked_at_it_takes_what_comes(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await engine.append(NewRecord("a.x", b"one"))
            aside = path.parent.with_name("aside")
            path.parent.rename(aside)
            path.parent.symlink_to(path.parent)
            await engine.append(NewRecord("a.x", b"two"))
            path.parent.unlink()
            aside.rename(path.parent)
            assert [record.data for record in await engine.read("a.x")] == [b"one", b"two"]
            assert (await engine.health()).ok


class TestLimit:
    async def test_a_limit_of_its_own_is_a_full_disk_too(self, path: Path, time_of_day: SetClock) -> None:
        async with await open_sqlite(path, max_bytes=3 << 20, clock=time_of_day.clock) as engine:
            kept = await fill_up(engine)
            health = await engine.health()
            assert (1 << 20) < health.size <= 3 << 20
            assert not health.ok
            assert "its limit" in health.detail
            assert await engine.purge("a.x", upto=kept[len(kept) // 2]) == len(kept) // 2 + 1
            await until_well(engine)
            await engine.append(NewRecord("a.x", os.urandom(20_000)))


@pytest.mark.machine
class TestFullDisk:
    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        """A disk of four megabytes."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True)
        if mounted.returncode:
            pytest.skip(f"only root can mount a small disk: {mounted.stderr.decode().strip()}")
        yield disk
        subprocess.run(["umount", str(disk)], check=True)

    async def test_fails_the_callers_says_so_and_recovers_by_itself(
        self, disk: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        ballast = disk / "ballast"
        put_content(ballast, bytes(2 << 20))
        async with await open_sqlite(disk / "journal.db") as engine:
            consumer = await engine.consumer(ConsumerSpec("c", ("b.*",), ack_wait=3600))
            (waits,) = await filled(engine, "b.x")
            kept = await fill_up(engine)
            assert kept
            health = await engine.health()
            assert not health.ok
            assert "the disk is full" in health.detail
            with pytest.raises(EngineError, match="the disk is full"):
                await engine.append(NewRecord("a.x", os.urandom(20_000)))
            assert len(await engine.read("a.x", limit=1000)) == len(kept)
            assert [r.levelname for r in caplog.records if "no room" in r.getMessage()][:1] == ["ERROR"]

            ballast.unlink()
            await until_well(engine)
            assert (await engine.health()).detail == "well"
            assert seqs_of(await consumer.fetch(1, 0)) == [waits]
            kept += await engine.append(NewRecord("a.x", os.urandom(20_000)))
            assert [record.seq for record in await engine.read("a.x", limit=1000)] == kept
        async with await open_sqlite(disk / "journal.db") as engine:
            assert [record.seq for record in await engine.read("a.x", limit=1000)] == kept

    async def test_lets_no_append_through_in_part(self, disk: Path) -> None:
        async with await open_sqlite(disk / "journal.db") as engine:

            async def put(n: int) -> None:
                name = str(n).encode()
                await engine.append(
                    NewRecord("a.x", name), NewRecord("a.body", os.urandom(30_000)), NewRecord("a.y", name)
                )

            outcomes = await asyncio.gather(*(put(n) for n in range(300)), return_exceptions=True)
            kept = {str(n).encode() for n, outcome in enumerate(outcomes) if outcome is None}
            assert 0 < len(kept) < 300
            for subject in ("a.x", "a.y"):
                assert {record.data for record in await engine.read(subject, limit=1000)} == kept

    async def test_a_consumer_waits_and_goes_on(self, disk: Path) -> None:
        ballast = disk / "ballast"
        async with await open_sqlite(disk / "journal.db") as engine:
            consumer = await engine.consumer(ConsumerSpec("c", ("b.*",)))
            seqs = await filled(engine, *(f"b.{n}" for n in range(3)))
            put_content(ballast, bytes(2 << 20))
            await fill_up(engine)
            fetching = asyncio.ensure_future(consumer.fetch(10, 60))
            await anyio.sleep(0.05)
            assert not fetching.done()
            ballast.unlink()
            assert seqs_of(await fetching) == seqs


def remove(path: Path) -> None:
    path.unlink()


async def test_a_disk_that_does_not_answer_is_no_damage_and_all_goes_on_when_it_does(tmp_path: Path) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    async with await open_sqlite(home / "journal.db") as engine:
        (first,) = await engine.append(NewRecord("a.x", b"1"))
        home.rename(away)
        put_content(home, b"a file where the folder was")
        with pytest.raises(EngineError, match=r"the disk does not answer: .*; check the file system"):
            await engine.append(NewRecord("a.x", b"2"))
        remove(home)
        away.rename(home)
        await until_well(engine)
        assert await engine.append(NewRecord("a.x", b"3")) == [first + 1]

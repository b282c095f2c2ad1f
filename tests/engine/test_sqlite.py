"""Promises of the SQLite journal beyond the contract: one process, restarts, limits, an idle loop."""

import asyncio
import contextlib
import math
import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from gateway.cluster.sqlite_journal import make_journal_file
from gateway.cluster.stored_journal import StoredRecord
from gateway.engine.interface import ConsumerSpec, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import EngineError, EngineTooNew, HomeBusy
from tests.engine.conftest import SetClock, content_of, filled, mode_of, seqs_of
from tests.spine import until
from tests.waits import measure_wait


class TestOpening:
    async def test_makes_a_journal_that_its_owner_alone_can_read(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await filled(engine, "a.x")
            for file in path.parent.iterdir():
                assert mode_of(file) == 0o600, file
        assert mode_of(path.parent) == 0o700

    async def test_leaves_one_file_its_lock_and_its_end_behind(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await filled(engine, "a.x")
        assert sorted(file.name for file in path.parent.iterdir()) == [
            "journal.db",
            "journal.db-end",
            "journal.db.lock",
        ]

    @pytest.mark.process
    async def test_refuses_a_second_process_and_names_the_first(self, path: Path) -> None:
        program = f"""
import asyncio
from pathlib import Path
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import HomeBusy

async def main():
    try:
        await open_sqlite(Path({str(path)!r}))
    except HomeBusy as error:
        print(error)

asyncio.run(main())
"""
        async with await open_sqlite(path):
            done = await anyio.run_process([sys.executable, "-c", program])
        assert f"in use by process {os.getpid()}" in done.stdout.decode()

    async def test_refuses_a_second_opening_in_the_same_process(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            with pytest.raises(HomeBusy, match=str(os.getpid())):
                await open_sqlite(path)
            await filled(engine, "a.x")
        async with await open_sqlite(path) as engine:
            assert len(await engine.read(">")) == 1

    async def test_refuses_a_journal_of_a_later_version_and_leaves_it_alone(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await filled(engine, "a.x")
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
        before = content_of(path)
        for _ in range(2):
            with pytest.raises(EngineTooNew, match="version 99"):
                await open_sqlite(path)
        assert content_of(path) == before

    async def test_refuses_another_programs_database(self, path: Path) -> None:
        path.parent.mkdir()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE photos (name)")
        with pytest.raises(EngineError, match="not a journal"):
            await open_sqlite(path)
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM photos").fetchone() == (0,)

    async def test_says_where_it_cannot_write(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(EngineError, match="cannot be opened"):
            await open_sqlite(tmp_path / "file" / "journal.db")

    async def test_that_is_cancelled_leaves_no_lock(self, path: Path) -> None:
        for steps in range(4):
            opening = asyncio.ensure_future(open_sqlite(path))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await opening).close()
        async with await open_sqlite(path) as engine:
            await filled(engine, "a.x")


class TestRestart:
    async def test_keeps_everything(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await engine.append(NewRecord("a.x", b"1", msg_id="m"), NewRecord("b.x", b"2"))
            before = await engine.read(">")
        async with await open_sqlite(path) as engine:
            assert await engine.read(">") == before
            assert (await engine.health()).records == 2
            with pytest.raises(EngineError, match="'m' is in the journal"):
                await engine.append(NewRecord("a.y", b"", msg_id="m"))

    async def test_makes_what_was_in_flight_due_at_once_and_counts_on(self, path: Path) -> None:
        spec = ConsumerSpec("c", ("a.*",), ack_wait=3600)
        async with await open_sqlite(path) as engine:
            seqs = await filled(engine, "a.1", "a.2", "b.1", "a.3")
            held, refused = await (await engine.consumer(spec)).fetch(2, 0)
            await refused.nak(3600)
        async with await open_sqlite(path) as engine:
            assert await engine.depth("c") == 3
            found = await (await engine.consumer(spec)).fetch(10, 0)
            assert [(delivery.record.seq, delivery.attempt) for delivery in found] == [
                (held.record.seq, 2),
                (refused.record.seq, 2),
                (seqs[3], 1),
            ]

    async def test_keeps_the_backlog_of_a_consumer_that_is_away(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await engine.consumer(ConsumerSpec("hook-gone", ("a.*",), new_only=True))
        async with await open_sqlite(path) as engine:
            seqs = await filled(engine, "a.1", "b.1", "a.2")
            assert await engine.depth("hook-gone") == 2
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(ConsumerSpec("hook-gone", ("a.*",), new_only=True))
            assert seqs_of(await consumer.fetch(10, 0)) == [seqs[0], seqs[2]]

    async def test_ends_the_leases_and_never_repeats_a_token(self, path: Path) -> None:
        tokens = []
        for _ in range(3):
            async with await open_sqlite(path) as engine:
                assert await engine.holder("bot") is None
                lease = await engine.lease("bot", "one", ttl=3600)
                assert lease is not None
                tokens.append(lease.token)
        assert sorted(set(tokens)) == tokens

    async def test_finds_a_rare_record_behind_many_others(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            await engine.consumer(ConsumerSpec("c", ("rare.*",)))
            for _ in range(10):
                await engine.append(*(NewRecord(f"many.{n % 50}", b"") for n in range(1000)))
            (seq,) = await filled(engine, "rare.x")
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(ConsumerSpec("c", ("rare.*",)))
            assert seqs_of(await consumer.fetch(10, 0)) == [seq]


class TestWaking:
    """Consumers whose deliveries only wake."""

    SPEC = ConsumerSpec("c", ("a.*",), only_wakes=True)

    async def test_takes_and_acknowledges_without_a_commit(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(self.SPEC)
            seqs = await filled(engine, "a.x", "b.x", "a.y")
            before = (await engine.health()).commits
            deliveries = await consumer.fetch(10, 1)
            assert seqs_of(deliveries) == [seqs[0], seqs[2]]
            await consumer.ack(deliveries[:1])
            assert await engine.depth("c") == 1
            assert (await engine.health()).commits - before <= 1  # that of the question itself

    async def test_goes_on_where_it_was_when_the_journal_was_closed(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(self.SPEC)
            seqs = await filled(engine, "a.x", "a.x", "a.x")
            done, _held = await consumer.fetch(2, 1)
            await done.ack()
        async with await open_sqlite(path) as engine:
            assert [record.seq for record in await engine.list_owed("c", math.inf)] == seqs[1:]
            consumer = await engine.consumer(self.SPEC)
            assert seqs_of(await consumer.fetch(10, 1)) == seqs[1:]

    async def test_misses_nothing_after_a_crash(self, path: Path, tmp_path: Path) -> None:
        crashed = tmp_path / "crashed" / path.name
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(self.SPEC)
            seqs = await filled(engine, "a.x", "a.y", "a.z")
            done, *_held = await consumer.fetch(3, 1)
            await done.ack()
            await engine.list_owed("c", math.inf)  # writes it down
            (late,) = await filled(engine, "a.x")
            await consumer.ack(await consumer.fetch(10, 1))
            shutil.copytree(path.parent, crashed.parent)
        async with await open_sqlite(crashed) as engine:
            consumer = await engine.consumer(self.SPEC)
            assert seqs_of(await consumer.fetch(10, 1)) == [*seqs[1:], late]

    async def test_loses_nothing_in_a_life_that_begins_with_what_was_out(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(self.SPEC)
            (seq,) = await filled(engine, "a.x")
            assert seqs_of(await consumer.fetch(1, 1)) == [seq]
        for _ in range(2):
            async with await open_sqlite(path) as engine:
                consumer = await engine.consumer(self.SPEC)
                await engine.list_owed("c", math.inf)  # writes it down as not handed out
                assert seqs_of(await consumer.fetch(1, 1)) == [seq]

    async def test_takes_over_what_an_older_version_had_handed_out(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            seqs = await filled(engine, "a.x", "a.x", "a.x")
            consumer = await engine.consumer(replace(self.SPEC, only_wakes=False))
            _, done = await consumer.fetch(2, 1)
            await done.ack()
        async with await open_sqlite(path) as engine:
            consumer = await engine.consumer(self.SPEC)
            assert seqs_of(await consumer.fetch(10, 1)) == [seqs[0], seqs[2]]


class NoBlob(bytes):
    """Bytes that come into the database as a text, which it refuses."""

    def __conform__(self, _protocol: object) -> str:
        return "no blob"


class TestBatches:
    async def test_an_operation_that_fails_after_a_write_takes_no_neighbour_with_it(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:

            async def put(n: int) -> list[int]:
                return await engine.append(NewRecord("a.x", b"first"), NewRecord("a.y", NoBlob() if n == 25 else b""))

            outcomes = await asyncio.gather(*(put(n) for n in range(50)), return_exceptions=True)
            failed = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, BaseException)]
            assert failed == [25]
            assert isinstance(outcomes[25], EngineError)
            assert len(await engine.read(">", limit=1000)) == 98
            assert (await engine.health()).ok

    async def test_cancelled_callers_harm_nobody(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            appending = [
                asyncio.ensure_future(
                    engine.append(NewRecord("a.x", str(n).encode()), NewRecord("a.y", str(n).encode()))
                )
                for n in range(300)
            ]
            await anyio.lowlevel.checkpoint()
            for task in appending[::2]:
                task.cancel()
            await asyncio.gather(*appending, return_exceptions=True)
            assert all(len(task.result()) == 2 for task in appending[1::2])
            await engine.append(NewRecord("end", b""))
            left, right = [[r.data for r in await engine.read(s, limit=1000)] for s in ("a.x", "a.y")]
            assert left == right
            assert {str(n).encode() for n in range(1, 300, 2)} <= set(left)

    async def test_more_at_once_than_a_batch_holds(self, path: Path) -> None:
        async with await open_sqlite(path) as engine:
            seqs = await asyncio.gather(*(engine.append(NewRecord("a.x", b"")) for _ in range(1700)))
            assert [seq for (seq,) in seqs] == list(range(1, 1701))


async def worst_lag(seconds: float) -> float:
    """How late a ticker is at worst; the least of three tries, for whatever else runs on this machine."""
    tries = []
    for _ in range(3):
        worst, end = 0.0, time.perf_counter() + seconds / 3
        while (before := time.perf_counter()) < end:
            waited = measure_wait()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before - 0.001 - (measure_wait() - waited))
        tries.append(worst)
    return min(tries)


class TestLoop:
    async def test_is_never_blocked(self, path: Path) -> None:
        """The lag of a ticker stays near that of an idle loop: under load, and while every commit waits."""
        async with await open_sqlite(path) as engine:
            await engine.consumer(ConsumerSpec("c", ("a.*",)))

            async def write() -> None:
                while True:
                    await engine.append(NewRecord("a.x", b"x" * 5000))
                    await engine.read("a.x", limit=5)

            idle = await worst_lag(0.3)
            writing = [asyncio.ensure_future(write()) for _ in range(10)]
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
                busy = await worst_lag(0.6)
                other.execute("BEGIN IMMEDIATE")
                stuck = await worst_lag(0.6)
                other.execute("ROLLBACK")
            for task in writing:
                task.cancel()
            await asyncio.gather(*writing, return_exceptions=True)
        assert busy < idle + 0.05
        assert stuck < idle + 0.05

    async def test_health_says_that_the_disk_does_not_answer(self, path: Path, time_of_day: SetClock) -> None:
        async with await open_sqlite(path, clock=time_of_day.clock) as engine:
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                appending = asyncio.ensure_future(engine.append(NewRecord("a.x", b"")))
                await until(lambda: engine._writer.facts.busy_since is not None)
                await time_of_day.pass_by(30)
                health = await engine.health()
                assert not health.ok
                assert "has not answered for 30 s" in health.detail
                other.execute("ROLLBACK")
            assert len(await appending) == 1
            assert (await engine.health()).ok


@pytest.mark.process
async def test_the_journal_costs_an_idle_process_nothing(path: Path) -> None:
    """No polling: next to no processor time in half a second with consumers that wait."""
    async with await open_sqlite(path) as engine:
        consumers = [await engine.consumer(ConsumerSpec(f"c{n}", (f"a.{n}",))) for n in range(20)]
        waiting = [asyncio.ensure_future(consumer.fetch(1, 60)) for consumer in consumers]
        await anyio.sleep(0.05)
        before = time.process_time()
        for _ in range(10):
            await anyio.sleep(0.05)
        spent = time.process_time() - before
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert spent < 0.05


async def test_a_file_that_came_out_of_shards_is_refused_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with make_journal_file(path) as file:
        file.add(StoredRecord(5, "a.x", b"", 1.0))
        file.end(1 << 40)
    before = path.read_bytes()
    with pytest.raises(EngineError, match=r"0\.1\.0 \(456da991\), .*people export.*sessions export"):
        await open_sqlite(path)
    assert path.read_bytes() == before

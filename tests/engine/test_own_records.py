"""What a gateway that works alone on a journal of NATS says from memory is what stands there.

Others write all the same now and then, as one that was held up might.
"""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.engine import ConsumerSpec, Engine, NewRecord, Record
from gateway.engine.nats.engine import NatsEngine, open_nats
from gateway.engine.nats.own_records import OwnRecords
from gateway.errors import Conflict, EngineError
from tests.engine.conftest import LastingRight
from tests.engine.nats_requests import count_requests
from tests.engine.nats_servers import run_servers
from tests.spine import until

WRITERS = 8
BUSY_SECONDS = 4.0


@pytest.fixture
async def two(nats_server: str) -> AsyncIterator[tuple[NatsEngine, NatsEngine, LastingRight]]:
    """One that works alone, another one that writes all the same, and the right of the first."""
    url = f"{nats_server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as engine, await open_nats(url) as other:
        engine.work_alone(right := LastingRight())
        await engine.append(NewRecord("a.x", b"1"))
        yield engine, other, right


async def read_data(engine: Engine, pattern: str, after: int = 0) -> list[bytes]:
    return [record.data for record in await engine.read(pattern, after, 1000)]


async def test_what_we_wrote_is_known_without_asking(nats_server: str) -> None:
    async with await open_nats(nats_server) as engine:
        engine.work_alone(LastingRight())
        (first,) = await engine.append(NewRecord("a.x", b"1"))
        assert await engine.read("b.*") == []
        async with count_requests(nats_server) as counts:
            (second,) = await engine.append(NewRecord("a.x", b"2", expect=first))
            assert await read_data(engine, "a.x", first - 1) == [b"1", b"2"]
            assert await engine.read("a.*", second) == await engine.read("b.*") == []
            last = await engine.last("a.x")
            assert last is not None
            assert last.seq == second
            await until(lambda: counts["append"])
            assert counts == {"append": 1}


async def test_what_is_told_of_before_its_writer_hears_of_it_is_waited_for() -> None:
    own = OwnRecords()
    own.right = LastingRight()
    put = NewRecord("a.x", b"")
    own.add(1, [put], [1], 1, 0.0)
    found: list[list[Record] | None] = []

    async def look() -> None:
        await own.catch_up()
        found.append(own.read("a.x", 0, 10))

    async with anyio.create_task_group() as tasks:
        own.note(2)
        await look()
        with own.writing():
            tasks.start_soon(look)
            await anyio.lowlevel.checkpoint()
            own.add(1, [put], [2], 2, 0.0)
    assert found == [None, [Record(1, "a.x", b"", 0.0), Record(2, "a.x", b"", 0.0)]]


async def test_what_somebody_else_wrote_is_read_when_it_is_heard_of(
    two: tuple[NatsEngine, NatsEngine, LastingRight],
) -> None:
    engine, other, _ = two
    consumer = await engine.consumer(ConsumerSpec("c", ("in.*",)))
    tail = await engine.tail("live.x")
    first = (await engine.append(NewRecord("in.x", b"1")))[0]
    await consumer.fetch(10, 5)
    await other.append(NewRecord("in.x", b"2"))
    assert [one.record.data for one in await consumer.fetch(10, 30)] == [b"2"]
    assert await read_data(engine, "in.x", first) == [b"2"]
    await other.append(NewRecord("live.x", b"3"))
    await anext(tail)
    assert await read_data(engine, "live.x") == [b"3"]


async def test_what_somebody_else_wrote_is_read_when_we_have_written_behind_it(
    two: tuple[NatsEngine, NatsEngine, LastingRight],
) -> None:
    engine, other, _ = two
    last = await engine.last("a.x")
    assert last is not None
    (theirs,) = await other.append(NewRecord("a.x", b"2"))
    with pytest.raises(Conflict):
        await engine.append(NewRecord("a.x", b"3", expect=last.seq))
    await engine.append(NewRecord("b.x", b"4"))
    assert await read_data(engine, "a.x", last.seq) == [b"2"]
    assert (await engine.last("a.x") or last).seq == theirs


@pytest.mark.parametrize("what", ["in doubt", "anew"])
async def test_with_a_right_that_is_not_the_same_nothing_is_known(
    two: tuple[NatsEngine, NatsEngine, LastingRight], what: str
) -> None:
    engine, other, right = two
    (ours,) = await engine.append(NewRecord("a.x", b"2"))
    assert await engine.read("a.x", ours) == []
    await other.append(NewRecord("a.x", b"3"))
    if what == "anew":
        right.token = 2
    else:
        right.is_certain = False
    assert await read_data(engine, "a.x", ours) == [b"3"]


async def test_what_is_over_or_purged_is_not_known_any_more(two: tuple[NatsEngine, NatsEngine, LastingRight]) -> None:
    engine, _, _ = two
    (first,) = await engine.append(NewRecord("a.x", b"2", ttl=1))
    (second,) = await engine.append(NewRecord("a.x", b"3"))
    assert await read_data(engine, "a.x", first - 1) == [b"2", b"3"]
    await anyio.sleep(2.5)
    assert await read_data(engine, "a.x", first - 1) == [b"3"]
    assert await engine.purge("a.*", second) == 2
    assert await engine.read("a.x", first - 1) == []


class Memory:
    """Whether each of many who write side by side reads at once what was acknowledged to him, and not what is gone."""

    def __init__(self, engine: NatsEngine) -> None:
        self.engine = engine
        self.rounds = 0
        self.end = time.monotonic() + BUSY_SECONDS

    async def write(self, number: int) -> None:
        subject, after = f"own.{number}.end", 0
        kept: list[bytes] = []
        while time.monotonic() < self.end:
            data = f"{number}-{self.rounds}".encode()
            try:
                seqs = await self.engine.append(NewRecord(subject, data), NewRecord(f"side.{number}", data))
                kept.append(data)
                if self.rounds % 7 == 0:
                    await self.engine.purge(subject, seqs[0] - 1)
                    kept, after = [data], after if self.rounds % 2 else seqs[0] - 1
                assert await read_data(self.engine, subject, after) == kept
                assert await read_data(self.engine, f"own.{number}.*", after) == kept
                last = await self.engine.last(subject)
                assert isinstance(last, Record)
                assert last.data == data
                assert await self.engine.read(f"side.{number}", seqs[1]) == []
                self.rounds += 1
            except EngineError:
                await anyio.sleep(0.05)

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            for number in range(WRITERS):
                tasks.start_soon(self.write, number)
            yield


async def test_whoever_wrote_reads_it_at_once_while_others_write_and_the_server_dies(tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with await open_nats(server.url) as engine, await open_nats(server.url) as other:
            engine.work_alone(LastingRight())
            memory = Memory(engine)
            async with memory.busy():
                for number in range(8):
                    await other.append(NewRecord(f"theirs.{number}", b""))
                    await anyio.sleep(0.1)
                server.kill()
                server.start()
                await other.append(NewRecord("theirs.last", b""))
            assert memory.rounds > 5 * WRITERS
            assert len(await engine.read("theirs.*")) == 9

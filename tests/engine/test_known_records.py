"""Answers from memory about a journal of NATS equal its content, at least since the last message, whoever wrote.

What the server shows may come late; here it is made to.
"""

import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from nats.aio.msg import Msg

from gateway.cluster.nats.connection import open_connection
from gateway.cluster.nats.engine import WINDOW_SECONDS, NatsEngine, open_nats, open_on_connection, split_address
from gateway.cluster.nats.names import Names
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, Record, SettledRecords
from gateway.errors import Conflict, EngineError
from gateway.records.subjects import token_of
from tests.audit import audit
from tests.engine.conftest import filled
from tests.engine.nats_requests import count_requests, count_trips
from tests.engine.nats_servers import run_servers
from tests.lanes.desk import QUICK, served
from tests.spine import replies, until

RECORDS, PURGES = ".r.>", ".p"
START = 2  # from which on the engine knows what it is shown
WRITERS = 8
BUSY_SECONDS = 4.0


class LateShows:
    """A connection on which comes late or, below zero, never what the server shows; all else at once."""

    def __init__(self, inner: Any, lag: Callable[[], float], what: str) -> None:
        self._inner = inner
        self._lag = lag
        self._what = what

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]]) -> Any:
        async def hear_late(message: Msg) -> None:
            if (lag := self._lag()) >= 0:
                await anyio.sleep(lag)
                await hear(message)

        return await self._inner.listen(subject, hear_late if subject.endswith(self._what) else hear)


@asynccontextmanager
async def open_late(url: str, lag: Callable[[], float], what: str = RECORDS) -> AsyncIterator[NatsEngine]:
    """A journal that knows late what others wrote."""
    servers, name = split_address(url)
    connection: Any = LateShows(await open_connection(servers), lag, what)
    async with await open_on_connection(connection, Names(name), WINDOW_SECONDS) as engine:
        yield engine


@pytest.fixture
def url(nats_server: str) -> str:
    return f"{nats_server}/t{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def two(url: str) -> AsyncIterator[tuple[NatsEngine, NatsEngine]]:
    """One that hears late of what the other one writes."""
    async with open_late(url, lambda: 0.5) as engine, await open_nats(url) as other:
        await other.append(NewRecord("a.x", b"1"))
        yield engine, other


async def read_data(engine: Engine, pattern: str, after: int = 0) -> list[bytes]:
    return [record.data for record in await engine.read(pattern, after, 1000, fresh=False)]


async def knows(engine: Engine, pattern: str, after: int, data: list[bytes]) -> bool:
    return await read_data(engine, pattern, after) == data


async def test_what_anybody_wrote_is_known_without_asking(nats_server: str, url: str) -> None:
    token = token_of("a conversation")
    x, y, both = (f"a.{one}.{token}" for one in ("x", "y", "*"))
    async with await open_nats(url) as engine, await open_nats(url) as other:
        await engine.append(NewRecord("of.none", b""))
        assert await engine.read("b.*", fresh=False) == []
        journal = url.rpartition("/")[2]
        async with count_requests(nats_server, journal) as counts:
            (first,) = await engine.append(NewRecord(x, b"1"))
            (theirs,) = await other.append(NewRecord(y, b"2"))
            (second,) = await engine.append(NewRecord(x, b"3", expect=first))
            assert await read_data(engine, x, first - 1) == [b"1", b"3"]
            await until(lambda: knows(other, x, first - 1, [b"1", b"3"]))  # it was not told yet, perhaps
            assert await read_data(engine, both, first) == [b"2", b"3"]
            assert await engine.read(both, second, fresh=False) == await engine.read("b.*", fresh=False) == []
            last = await engine.last(y, fresh=False)
            assert last is not None
            assert last.seq == theirs
            await until(lambda: counts["append"] == 3)
            assert counts == {"append": 3}


async def test_of_an_append_either_all_is_known_or_nothing(url: str) -> None:
    lags = iter([0.0, 0.5])
    async with open_late(url, lambda: next(lags, 0.0)) as engine, await open_nats(url) as other:
        heard = await engine.tail("a.x")
        await other.append(NewRecord("a.x", b"1"), NewRecord("a.y", b"2"))
        await anext(heard)
        assert await read_data(engine, "a.y") == [b"2"]


async def hear_delivery(engine: NatsEngine, _other: NatsEngine) -> None:
    consumer = await engine.consumer(ConsumerSpec("c", ("in.*",)))
    assert await consumer.fetch(1, 60)


async def hear_tail(engine: NatsEngine, other: NatsEngine) -> None:
    tail = await engine.tail("told.x")
    await other.append(NewRecord("told.x", b""))
    await anext(tail)


async def hear_message(engine: NatsEngine, other: NatsEngine) -> None:
    tail = await engine.tail("told.x")
    await other.publish("told.x", b"")
    await anext(tail)


async def hear_question(engine: NatsEngine, other: NatsEngine) -> None:
    async def look(_data: bytes) -> bytes:
        return b"".join(await read_data(engine, "in.*", START))

    await engine.serve("node.one", look)
    assert await other.request("node.one", b"", 60) == b"theirs"


async def hear_answer(engine: NatsEngine, other: NatsEngine) -> None:
    async def answer(_data: bytes) -> bytes:
        return b""

    await other.serve("node.other", answer)
    await engine.request("node.other", b"", 60)


async def take_lease(engine: NatsEngine, _other: NatsEngine) -> None:
    assert await engine.lease("bot", "engine")


async def meet_conflict(engine: NatsEngine, _other: NatsEngine) -> None:
    with pytest.raises(Conflict):
        await engine.append(NewRecord("a.x", b"3", expect=1))


async def read_newest(engine: NatsEngine, _other: NatsEngine) -> None:
    await engine.last("in.x")


@pytest.mark.parametrize(
    "hear",
    [
        hear_delivery,
        hear_tail,
        hear_message,
        hear_question,
        hear_answer,
        take_lease,
        meet_conflict,
        read_newest,
    ],
)
async def test_what_we_have_heard_of_is_seen_though_it_is_not_shown_yet(
    two: tuple[NatsEngine, NatsEngine], hear: Callable[[NatsEngine, NatsEngine], Awaitable[None]]
) -> None:
    engine, other = two
    assert await engine.append(NewRecord("b.x", b"")) == [START]
    await anyio.sleep(0.7)
    assert await read_data(engine, "in.*", START) == []
    await other.append(NewRecord("in.x", b"theirs"), NewRecord("a.x", b"2"))
    await hear(engine, other)
    assert await read_data(engine, "in.*", START) == [b"theirs"]


async def test_what_others_remove_is_not_read_for_long_and_no_conflict_goes_on_for_ever(
    two: tuple[NatsEngine, NatsEngine],
) -> None:
    engine, other = two
    (seq,) = await engine.append(NewRecord("b.x", b"1"))
    assert await read_data(engine, "b.x") == [b"1"]
    await other.purge("b.x")
    with pytest.raises(Conflict):
        await engine.append(NewRecord("b.x", b"2", expect=seq))
    assert await read_data(engine, "b.x") == []
    (seq,) = await engine.append(NewRecord("b.x", b"3", expect=0), settled=[SettledRecords("b.x", seq, 1)])
    await other.purge("b.*", seq)
    await until(lambda: read_data_is(engine, "b.x", []))


async def read_data_is(engine: Engine, pattern: str, expected: list[bytes]) -> bool:
    return await read_data(engine, pattern) == expected


async def test_one_that_is_not_shown_is_read_all_the_same(url: str) -> None:
    lags = iter([0, 0, -1, 0, 0])
    async with open_late(url, lambda: next(lags)) as engine, await open_nats(url) as other:
        await filled(other, "a.x", "a.x", "b.missed", "b.x")
        await until(lambda: read_data(engine, "b.*", START))  # it was not told yet, perhaps
        assert await read_data(engine, "b.*", START) == [b"b.missed", b"b.x"]
        (last,) = await filled(other, "b.y")
        await until(lambda: knows(engine, "b.*", last - 1, [b"b.y"]))


async def test_a_purge_is_heard_of_before_what_it_removed(two: tuple[NatsEngine, NatsEngine]) -> None:
    engine, other = two
    await other.append(NewRecord("a.x", b""))
    (seq,) = await other.append(NewRecord("b.x", b""))
    await other.purge("b.x", seq)
    await anyio.sleep(1)
    (last,) = await engine.append(NewRecord("a.x", b"ours"))
    await anyio.sleep(1)
    assert await read_data(engine, "b.*", START) == []
    assert await read_data(engine, "a.*", last - 1) == [b"ours"]


async def test_a_purge_is_heard_of_after_what_came_behind_it(url: str) -> None:
    async with open_late(url, lambda: 0.5, PURGES) as engine, await open_nats(url) as other:
        await filled(engine, "a.x", "b.x")
        await other.purge("b.*")
        await filled(engine, "b.x")

        async def is_heard_of() -> bool:
            return await read_data(engine, "b.*", 1) == await read_data(engine, "b.*", START) == [b"b.x"]

        await until(is_heard_of)


async def test_a_purge_that_races_with_appends_leaves_the_same_in_memory_and_on_the_servers(url: str) -> None:
    """With and without a limit, of all or of what lies between two; records of all of them are on their way."""
    chance = random.Random(7)
    async with open_late(url, lambda: chance.random() / 50 - 0.001) as engine, await open_nats(url) as other:
        subjects = [f"s.{number}" for number in range(4)]
        last: dict[str, int] = dict.fromkeys(subjects, 0)
        end = time.monotonic() + BUSY_SECONDS

        async def write(writer: NatsEngine) -> None:
            while time.monotonic() < end:
                subject = chance.choice(subjects)
                (last[subject],) = await writer.append(NewRecord(subject, b""))
                await read_data(engine, subject)

        async def remove(remover: NatsEngine) -> None:
            while time.monotonic() < end:
                subject = chance.choice(subjects)
                upto = chance.choice([None, last[subject], last[subject] + 2, last[subject] - 3])
                await remover.purge(chance.choice([subject, "s.*"]), upto, chance.choice([0, 0, last[subject] - 6]))
                await anyio.sleep(chance.random() / 50)

        async with anyio.create_task_group() as tasks:
            for one in (engine, other):
                for act in (write, write, write, remove):
                    tasks.start_soon(act, one)
        (seq,) = await engine.append(NewRecord("s.0", b""))
        for subject in (*subjects, "s.*"):
            for after in (0, *(seq - back for back in range(0, 40, 3))):
                await until(partial(knows_all, engine, subject, after), f"{subject} after {after}")


async def knows_all(engine: NatsEngine, subject: str, after: int) -> bool:
    known = [one.seq for one in await engine.read(subject, after, 1000, fresh=False)]
    return known == [one.seq for one in await engine.read(subject, after, 1000)]


async def test_what_is_over_or_large_is_not_known(two: tuple[NatsEngine, NatsEngine]) -> None:
    engine, other = two
    (first,) = await other.append(NewRecord("b.x", b"2", ttl=1))
    (second,) = await other.append(NewRecord("b.x", b"3"))
    (large,) = await other.append(NewRecord("b.x", b"4" * 3_000_000))
    (last,) = await engine.append(NewRecord("b.x", b"5"))
    assert [one.seq for one in await engine.read("b.x", fresh=False)] == [first, second, large, last]

    async def is_over() -> bool:
        return await read_data(engine, "b.x") == [b"3", b"4" * 3_000_000, b"5"]

    await until(is_over, "the end of the first")


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
                last = await self.engine.last(subject, fresh=False)
                assert isinstance(last, Record)
                assert last.data == data
                assert await self.engine.read(f"side.{number}", seqs[1], fresh=False) == []
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
            memory = Memory(engine)
            async with memory.busy():
                for number in range(8):
                    await other.append(NewRecord(f"theirs.{number}", b""))
                    await anyio.sleep(0.1)
                server.kill()
                server.start()
                await other.append(NewRecord("theirs.last", b""))
            assert memory.rounds > 5 * WRITERS
            assert len(await engine.read("theirs.*", fresh=False)) == 9


async def test_nodes_that_know_late_race_for_the_same_conversations_and_nothing_is_lost(url: str) -> None:
    """Each may claim a turn that is over, find nothing to do where there is something, or end a lane too early."""
    chance = random.Random(3)
    settings = replace(QUICK, lease=3.0, ack_wait=2.0, folded=1)  # doorbells ring again, beside living nodes
    chats = "123456"

    def lag() -> float:
        return chance.choice([0, 0, 0.01, 0.1, 0.3, -1])

    async with (
        open_late(url, lag) as one,
        open_late(url, lag) as two,
        await open_nats(url) as three,
        served(one, settings=settings, node="a") as a,
        served(two, settings=settings, node="b") as b,
        served(three, settings=settings, node="c") as c,
    ):
        last: dict[str, int | None] = {}
        for number in range(12):
            for chat in chats:
                last[chat] = await (a, b, c)[(number + int(chat)) % 3].say(f"{number}", chat)
            await anyio.sleep(chance.random() / 5)
        for chat, seq in last.items():
            await c.answered(seq, chat)
        for chat in chats:
            assert await replies(three, chat) == [f"re {number}" for number in range(12)]
        assert (await audit(three)).faults == []

        async def is_quiet() -> bool:
            return await three.depth("turns") == 0

        await until(is_quiet, "the last acknowledgement")


async def test_turns_of_several_nodes_wait_few_times_for_three_servers(nats_servers: str) -> None:
    """The message, the claim, the end with the reply, the acknowledgement; each node finds out what the others did."""
    name = f"t{uuid.uuid4().hex[:12]}"
    url = f"{nats_servers}/{name}"
    async with (
        await open_nats(url) as one,
        await open_nats(url) as two,
        await open_nats(url) as three,
        served(one, node="a") as a,
        served(two, node="b") as b,
        served(three, node="c") as c,
    ):
        for chat in "123":
            await a.answered(await a.say("hello", chat), chat)
        async with count_requests(nats_servers, name) as counts:
            for number in range(10):
                for chat in "123":
                    await a.answered(await (a, b, c)[number % 3].say("hello", chat), chat)
            await until(lambda: counts["append"] >= 90)
        assert count_trips(counts) <= 30 * 5, counts
        assert min(len(node.work.runs) for node in (a, b, c)) > 0

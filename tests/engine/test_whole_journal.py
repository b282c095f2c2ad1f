"""A journal is taken from a file to real NATS servers and back: nothing of it becomes another."""

import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.cluster.nats.streams import list_subjects
from gateway.cluster.sqlite_journal import make_journal_file, open_journal_file
from gateway.cluster.stored_journal import StoredRecord, check_same
from gateway.engine.interface import PART_BYTES, ConsumerSpec, Engine, NewRecord, SettledRecords
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import Duplicate, EngineError

ALL = ConsumerSpec("hook:of all", ("in.*", "ev.>"), ack_wait=60)
NONE = ConsumerSpec("hook-of-none", ("no.such",), new_only=True)
LARGE = bytes(range(256)) * (3 * PART_BYTES // 256)


async def fill(engine: Engine) -> None:
    """Gaps at the beginning, in the middle and at the end; limits, ids, what is large; and consumers on their way."""
    for number in range(30):
        await engine.append(NewRecord(f"in.{number % 3}", f"{number}".encode(), msg_id=f"m:{number} ü"))
    await engine.append(NewRecord("chain.a", b"", expect=0), NewRecord("ev.large.one", LARGE))
    await engine.append(NewRecord("short", b"over soon", ttl=3600), NewRecord("kept", b"1"), NewRecord("kept", b"2"))
    consumer = await engine.consumer(ALL)
    await engine.consumer(NONE)
    for delivery in await consumer.fetch(20, 1):
        number = int(delivery.record.data)
        if number in (7, 12):
            await delivery.nak()
        elif number != 9:
            await delivery.ack()
    for again in await consumer.fetch(2, 1):
        assert again.attempt == 2
    await engine.append(NewRecord("kept", b"3"), settled=[SettledRecords("kept", 10**9, 3600)])
    await engine.purge("in.*", 4)
    await engine.purge("in.*", 26, after=23)
    await engine.append(NewRecord("end", b"gone"))
    await engine.purge("end")


def follow(records: Iterable[StoredRecord]) -> AsyncIterator[StoredRecord]:
    async def each() -> AsyncIterator[StoredRecord]:
        for one in records:
            yield one

    return each()


async def check_whole(engine: Engine) -> None:
    """What the gateway above sees: whether it is this engine or that one, it goes on where it was."""
    assert [one.seq for one in await engine.read("in.*")] == [*range(5, 24), *range(27, 31)]
    assert (await engine.read("ev.>"))[0].data == LARGE
    assert (await engine.read("chain.*"))[0].seq == 31
    with pytest.raises(Duplicate):
        await engine.append(NewRecord("in.2", b"again", msg_id="m:29 ü"))
    assert sorted(await engine.consumers()) == sorted([ALL.name, NONE.name])
    assert await engine.depth(ALL.name) == 3 + 4 + 3 + 1  # in hands, of each side of the gap, and the large one
    consumer = await engine.consumer(ALL)
    got = {delivery.record.seq: delivery.attempt for delivery in await consumer.fetch(3, 3)}
    assert got == {8: 3, 10: 2, 13: 3}
    fresh = [delivery.record.seq for delivery in await consumer.fetch(100, 1)]
    assert fresh == [21, 22, 23, 27, 28, 29, 30, 32]
    (following,) = await engine.append(NewRecord("next", b"", expect=0))
    assert following > 37  # which was the last there ever was


async def check_short_lived(url: str) -> None:
    """The server knows of limits, also of one that a record gets later."""
    async with await open_nats(url) as engine:
        await engine.append(settled=[SettledRecords("kept", 10**9, 1800)])
        kept: dict[bytes, float | None] = {b"3": None}
        while kept[b"3"] is None:  # nobody waits for the servers to have noted it
            kept = {one.data: one.until async for one in engine.get_journal().read() if len(one.data) < 10}
    assert kept[b"27"] is None
    for data, left in ((b"over soon", 3600), (b"1", 3600), (b"2", 3600), (b"3", 1800)):
        assert kept[data] == pytest.approx(time.time() + left, abs=150)


async def take_to_servers(path: Path, url: str) -> None:
    async with await open_nats(url, takes_marked=True) as engine:
        servers, file = engine.get_journal(), await open_journal_file(path)
        await servers.fill(file.read(), file.read_last_seq(), "filling here", lambda _done: None)
        for one in file.read_consumers():
            await servers.add_consumer(one)
        assert (await check_same(follow(file.read()), servers.read())).records == file.count()
        file.close()
        with pytest.raises(EngineError, match="cut off"):
            await engine.check_mark()
        await servers.set_mark("")


async def lose_stream(url: str) -> None:
    """Remove the stream, as a migration that was cut off while it recreated the stream."""
    async with await open_nats(url) as engine:
        await engine.get_journal().set_mark("filling here")
        await engine._call(f"STREAM.DELETE.{engine._names.stream}")
    with pytest.raises(EngineError, match="cut off"):
        await open_nats(url)


async def take_to_file(url: str, path: Path) -> None:
    async with await open_nats(url) as engine:
        servers = engine.get_journal()
        await engine.take_back()
        with make_journal_file(path) as file:
            async for record in servers.read():
                file.add(record)
            file.add_consumers(await servers.read_consumers(await engine.consumers()))
            file.end(await servers.read_last_seq())
            await check_same(servers.read(), follow(file.read()))


@pytest.mark.parametrize("kind", ["nats", "nats-3"])
async def test_it_goes_on_where_it_was_on_either_engine(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    servers = request.getfixturevalue("nats_servers" if kind == "nats-3" else "nats_server")
    url = f"{servers}/t{uuid.uuid4().hex[:12]}"
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        await fill(engine)
    begun = time.time()
    await take_to_servers(tmp_path / "journal.db", url)
    await lose_stream(url)
    await take_to_servers(tmp_path / "journal.db", url)
    await check_short_lived(url)
    await take_to_file(url, tmp_path / "back.db")
    async with await open_sqlite(tmp_path / "back.db") as engine:
        await check_whole(engine)
        assert all(one.ts < begun for one in await engine.read("in.*"))
    async with await open_nats(url) as engine:
        await engine.take_back()
        assert all(one.ts < begun for one in await engine.read("in.*"))
        await check_nothing_is_left_of_what_is_purged(engine)


async def check_nothing_is_left_of_what_is_purged(engine: NatsEngine) -> None:
    """What is large is not one message, and what was taken along lies elsewhere than what is written now."""
    (large,) = await engine.read("ev.>")
    (later,) = await engine.append(NewRecord("ev.large.two", LARGE))
    assert await engine.purge("ev.>", large.seq - 1) == 0
    assert [one.data == LARGE for one in await engine.read("ev.>")] == [True, True]
    assert await engine.purge("ev.>", large.seq) == 1
    assert [(one.seq, one.data == LARGE) for one in await engine.read("ev.>")] == [(later, True)]
    names = engine._names
    left = await list_subjects(engine._connection, names.stream, names.piece_filter(">"))
    assert {where.split(".")[4] for where in left} == {"two"}


async def test_who_opens_a_journal_while_it_is_made_anew_is_not_in_the_way(nats_servers: str) -> None:
    url = f"{nats_servers}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as engine, anyio.create_task_group() as tasks:
        made = anyio.Event()
        for _ in range(8):
            tasks.start_soon(make_other_stream, engine, made)
        await engine.get_journal().fill([], 7, "filling here", lambda _done: None)
        assert await engine.get_journal().read_last_seq() == 7
        tasks.cancel_scope.cancel()


async def make_other_stream(engine: NatsEngine, made: anyio.Event) -> None:
    """As soon as the first one of records is gone, once."""
    name = engine._names.stream
    while not made.is_set():
        with suppress(EngineError):
            await engine._call(f"STREAM.CREATE.{name}", name=name, subjects=[engine._names.all_records])
            made.set()

"""A journal of several shards: what belongs together stands in one, and wherever it is taken it goes on."""

import uuid
from pathlib import Path

import anyio
import pytest

from gateway.engine import ConsumerSpec, Engine, NewRecord, open_sqlite
from gateway.engine.journal_position import SHARD_BITS
from gateway.engine.nats.engine import NatsEngine, open_nats
from gateway.errors import Conflict, Duplicate, EngineError
from gateway.record_subjects import token_of
from tests.engine.conftest import ID_WINDOW, SHARDS
from tests.engine.test_whole_journal import take_to_file, take_to_servers

TOKENS = [next(t for n in range(99) if int(t := token_of(f"{n}"), 16) % SHARDS == one) for one in range(SHARDS)]
ALL = ConsumerSpec("all", ("turn.*",), ack_wait=60)


@pytest.fixture
def url(nats_server: str) -> str:
    return f"{nats_server}/t{uuid.uuid4().hex[:12]}"


async def open_shards(url: str, shards: int = SHARDS) -> NatsEngine:
    return await open_nats(url, window=ID_WINDOW, shards=shards)


async def test_a_conversation_stands_in_one_shard_and_what_is_nobodys_in_one_of_its_own(url: str) -> None:
    async with await open_shards(url) as engine:
        assert engine.shards() == tuple(number << SHARD_BITS for number in range(SHARDS + 1))
        seqs = [await engine.append(NewRecord(f"a.{one}", b"1"), NewRecord(f"b.{one}.x", b"2")) for one in TOKENS]
        assert [[seq >> SHARD_BITS for seq in pair] for pair in seqs] == [[one, one] for one in range(1, SHARDS + 1)]
        (alone,) = await engine.append(NewRecord("switches", b"3"))
        assert alone == 1
        everything = [alone, *(seq for pair in seqs for seq in pair)]
        assert [record.seq for record in await engine.read(">")] == everything
        assert await engine.purge(">", seqs[1][0], after=alone) == 3
        assert [record.seq for record in await engine.read(">")] == [alone, *everything[4:]]


async def test_of_an_append_to_several_shards_the_first_ones_stand_where_a_later_one_is_refused(url: str) -> None:
    async with await open_shards(url) as engine:
        puts = [NewRecord(f"a.{one}", b"1", msg_id="m", expect=0 if one == TOKENS[0] else 7) for one in TOKENS]
        with pytest.raises(Duplicate):
            await engine.append(*puts)
        puts = [NewRecord(put.subject, b"1", expect=put.expect) for put in puts]
        with pytest.raises(Conflict):
            await engine.append(*puts)
        assert [record.subject for record in await engine.read("a.*")] == [puts[0].subject]


async def test_a_consumer_is_given_a_little_of_each_shard_and_leaves_to_others_what_it_does_not_take(url: str) -> None:
    async with await open_shards(url) as engine, await open_shards(url) as other:
        consumer, second = await engine.consumer(ALL), await other.consumer(ALL)
        taken, before = {}, await consumer.fetch(1, 0)
        assert before == []
        for one in TOKENS:
            await engine.append(*(NewRecord(f"turn.{one}", b"") for _ in range(20)))
        for delivery in await consumer.fetch(4, 60):
            taken[delivery.record.seq] = delivery
        assert 0 < len(taken) <= 4
        while len(taken) < 20 * SHARDS:
            for delivery in await second.fetch(8, 60):
                taken.setdefault(delivery.record.seq, delivery)
        assert {seq >> SHARD_BITS for seq in [*taken][:20]} == set(range(1, SHARDS + 1))
        for delivery in taken.values():
            await delivery.ack()
        assert await engine.depth(ALL.name) == 0
        await engine.forget_consumer(ALL.name)
        assert await other.consumers() == []


async def test_who_fetches_again_and_again_keeps_what_came_beside_what_it_took(url: str) -> None:
    async with await open_shards(url) as engine:
        consumer, taken, repeated = await engine.consumer(ALL), set[int](), 0
        for one in TOKENS:
            await engine.append(*(NewRecord(f"turn.{one}", b"") for _ in range(20)))
        while len(taken) < 20 * SHARDS:
            for delivery in await consumer.fetch(1, 60):
                await anyio.sleep(0.02)
                await delivery.ack()
                taken.add(delivery.record.seq)
                repeated += delivery.attempt > 1
    assert repeated < 10  # where this process stands still for a while, some are for others


async def test_who_takes_one_leaves_the_others_untried(url: str) -> None:
    """Each delivery counts as a try, and a hook that takes long has only so many of them."""
    async with await open_shards(url) as engine, await open_shards(url) as other:
        consumer, second = await engine.consumer(ALL), await other.consumer(ALL)
        for one in (*TOKENS, "none"):
            await engine.append(*(NewRecord(f"turn.{one}", b"") for _ in range(20)))
        (first,) = await consumer.fetch(1, 60)
        tries = {first.record.seq: first.attempt}
        while len(tries) < 20 * (SHARDS + 1):
            tries |= {one.record.seq: one.attempt for one in await second.fetch(100, 60)}
    assert set(tries.values()) == {1}


async def test_another_number_of_shards_is_refused_with_what_helps(url: str) -> None:
    async with await open_shards(url):
        pass
    for number in (1, SHARDS + 1):
        with pytest.raises(EngineError, match=f"journal.shards: {SHARDS}, and .* says {number}: .*migrate --to sqlite"):
            await open_shards(url, number)


async def go_on(engine: Engine, number: int) -> None:
    """Each conversation has had so many turns. Two more come; nobody writes behind one that is not its last."""
    for one in TOKENS:
        subject, newest = f"turn.{one}", await engine.last(f"turn.{one}")
        found = await engine.read(subject)
        assert [int(record.data) for record in found] == [*range(number)]
        assert newest == found[-1]
        with pytest.raises(Duplicate):
            await engine.append(NewRecord(subject, b"", msg_id=f"{one}:{number - 1}", expect=newest.seq))
        for stale in (0, found[-2].seq, newest.seq + 1):
            with pytest.raises(Conflict):
                await engine.append(NewRecord(subject, b"", expect=stale))
        end = newest.seq
        for turn in (number, number + 1):
            (seq,) = await engine.append(NewRecord(subject, b"%d" % turn, msg_id=f"{one}:{turn}", expect=end))
            assert seq > end
            end = seq
        with pytest.raises(Conflict):
            await engine.append(NewRecord(subject, b"", expect=newest.seq))
    await engine.append(NewRecord("switches", b"%d" % number))
    assert (await engine.read("switches"))[-1] == await engine.last("switches")
    last = await engine.last("switches")
    assert last is not None
    assert last.data == b"%d" % number


async def take(engine: Engine, turns: list[int]) -> None:
    """A consumer is owed these turns of each conversation; the very first stays in its hands."""
    consumer, found = await engine.consumer(ALL), list[int]()
    while len(found) < len(turns) * SHARDS:
        for delivery in await consumer.fetch(100, 1):
            found.append(int(delivery.record.data))
            if delivery.record.data != b"0":
                await delivery.ack()
    assert sorted(found) == sorted(turns * SHARDS)
    assert await engine.depth(ALL.name) == SHARDS


@pytest.mark.parametrize(("where", "shards"), [("nats_server", 1), ("nats_servers", 2)])
async def test_a_conversation_goes_on_wherever_its_journal_is_taken(
    where: str, shards: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """From a file into shards, back into a file, and into another number of shards; on one server, and on three."""
    url = f"{request.getfixturevalue(where)}/t{uuid.uuid4().hex[:12]}"
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        for one in TOKENS:
            await engine.append(*(NewRecord(f"turn.{one}", b"%d" % turn, msg_id=f"{one}:{turn}") for turn in (0, 1)))
        await take(engine, [0, 1])
    await take_to_servers(tmp_path / "journal.db", url, SHARDS)
    async with await open_shards(url) as nats:
        await nats.take_back()
        await go_on(nats, 2)
        await take(nats, [0, 2, 3])
        await go_on(nats, 4)
    await take_to_file(url, tmp_path / "back.db", SHARDS)
    async with await open_sqlite(tmp_path / "back.db") as engine:
        await go_on(engine, 6)
        await take(engine, [0, 4, 5, 6, 7])
    await take_to_servers(tmp_path / "back.db", f"{url}-again", shards)
    async with await open_shards(f"{url}-again", shards) as nats:
        await nats.take_back()
        await go_on(nats, 8)
        await take(nats, [0, 8, 9])

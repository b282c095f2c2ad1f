"""The journal on NATS, where servers are cut off or are not what we need, and several gateways share it."""

import time
import uuid
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from gateway.cluster.nats.connection import NO_MAJORITY, ServerRefusal, describe_failure
from gateway.cluster.nats.consumer import REQUEST_SECONDS
from gateway.cluster.nats.engine import open_nats, split_address
from gateway.cluster.nats.live import FAILED, VERSION
from gateway.cluster.nats.names import has_pattern, merge_patterns
from gateway.cluster.nats.removals import list_removals
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, SettledRecords
from gateway.engine.subjects import matches
from gateway.errors import Conflict, Duplicate, EngineError
from gateway.messages.message import Address, Reply
from gateway.outbox.send_journal import SendJournal
from gateway.records import records, subjects
from tests.adapters.line import line_to
from tests.engine.conftest import filled, read_all
from tests.engine.cut_line import open_line
from tests.engine.nats_requests import count_requests
from tests.engine.nats_servers import run_servers
from tests.http_server import find_free_ports
from tests.lanes.desk import QUICK, Watched, served
from tests.spine import until
from tests.waits import Stopwatch

DAY = 86400.0
LAST = 1 << 62  # whatever there is
BUSY_SECONDS = 1.0  # that this machine may do something else


async def test_who_is_not_there_is_told_of_and_waited_for(tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 1) as servers:
        async with await open_nats(f"{servers[0].url}/kills") as engine:
            await filled(engine, "a.x")
            servers[0].kill()
            await until(lambda: "is gone" in engine.failure(), limit=60)
            assert not (await engine.health()).ok
            with pytest.raises(EngineError, match="does not answer"):
                await engine.append(NewRecord("a.x", b"2"))
            servers[0].start()
            await until(lambda: not engine.failure(), limit=60)
            await engine.append(NewRecord("a.x", b"3"))
            assert [record.data for record in await engine.read(">")] == [b"a.x", b"3"]


class LostRight:
    """A right that is lost until it is given back."""

    def __init__(self) -> None:
        self.failure = ""
        self.given_back = anyio.Event()
        self.given_back.set()

    async def wait(self) -> None:
        await self.given_back.wait()


async def test_what_was_begun_before_its_right_ended_is_not_written_after_it(tmp_path: Path) -> None:
    right = LostRight()
    with run_servers(tmp_path / "nats", 1) as servers:
        async with await open_nats(servers[0].url) as engine:
            engine.write_under(right)
            await filled(engine, "a.x")
            servers[0].kill()
            await until(lambda: bool(engine.failure()), limit=60)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(filled, engine, "b.x")
                await anyio.sleep(0.2)
                right.given_back = anyio.Event()  # while it is tried again and again
                servers[0].start()
                await until(lambda: not engine.failure(), limit=60)
                await anyio.sleep(1.2)  # the longest pause between two tries
                assert await engine.last("b.x") is None
                right.given_back.set()
            assert await engine.last("b.x") is not None


async def test_who_is_stopped_as_he_begins_to_serve_can_begin_again(tmp_path: Path) -> None:
    async def answer(data: bytes) -> bytes:
        return data

    with run_servers(tmp_path, 1) as (server,):
        async with await open_nats(server.url) as engine:
            server.pause()
            with anyio.move_on_after(0.5):
                await engine.serve("node.one", answer)
            server.resume()
            await engine.serve("node.one", answer)
            assert await engine.request("node.one", b"hello", 60) == b"hello"
            where, client = engine._names.live("node.one"), engine._connection.client
            told = await client.request(where, b"hello", 60, headers={VERSION: "next"})
            assert "a message of version 'next' came" in (told.headers or {})[FAILED]
            assert await engine.request("node.one", b"hello", 60) == b"hello"


async def test_nobody_there_is_said_soon_and_is_an_error_that_names_the_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (port,) = find_free_ports(1)
    words = f"no NATS server answers at nats://127.0.0.1:{port}"
    with pytest.raises(EngineError, match=words):
        await open_nats(f"nats://127.0.0.1:{port}")
    (said,) = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert said.startswith(words)
    assert said.endswith("; it is tried again for 12 s")


async def test_two_who_write_one_chain_are_told_apart(nats_servers: str) -> None:
    url = f"{nats_servers}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as one, await open_nats(url) as two:
        won: Counter[str] = Counter()

        async def race(engine: Engine, name: str) -> None:
            for _ in range(60):
                last = await engine.last("a.x")
                try:
                    await engine.append(NewRecord("a.x", name.encode(), expect=last.seq if last else 0))
                    won[name] += 1
                except Conflict:
                    continue

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(race, one, "one")
            tasks.start_soon(race, two, "two")
        kept = Counter(record.data.decode() for record in await read_all(one, "a.x"))
        assert kept == won


async def test_who_listens_is_told_what_was_appended_while_he_was_cut_off(nats_server: str) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    async with (
        line_to(nats_server) as (url, line),
        await open_nats(f"{nats_server}/{name}") as other,
        await open_nats(f"{url.replace('http', 'nats')}/{name}") as engine,
    ):
        await filled(other, "a.before")
        assert await engine.last("a.before")  # a tail tells what its gateway has not heard of yet
        tail, quiet = await engine.tail("a.>", "*.x", "b.x"), await engine.tail("c.*")
        heard = await filled(other, "a.1", "b.x")
        assert [(await anext(tail)).seq for _ in heard] == heard
        line.cut()
        missed = await filled(other, "b.x", "a.2.y", "c.1", "d.1", "a.x")
        await line.open()
        await until(lambda: not engine.failure() and not engine._connection.disconnection.describe(), limit=60)
        later = await filled(other, "a.3")
        assert [(await anext(tail)).seq for _ in range(4)] == [missed[0], missed[1], missed[4], *later]
        assert (await anext(quiet)).seq == missed[2]
        line.cut()
        many = await other.append(*(NewRecord("a.x", b"") for _ in range(1000)))
        many += await other.append(*(NewRecord("b.x", b"") for _ in range(500)))
        await line.open()
        await until(lambda: tail.dropped >= 500, limit=60)
        assert tail.dropped == 500
        assert (await anext(tail)).seq == many[500]


async def test_who_listens_has_the_server_know_it_before_he_is_told_so(nats_server: str) -> None:
    """Else what another one publishes right then would be told to nobody."""
    async with open_line(nats_server) as line, await open_nats(f"{line.url}/t{uuid.uuid4().hex[:12]}") as engine:
        tail = await engine.tail("told.x")
        sent = bytes(line.sent)
    assert sent.index(b"SUB " + engine._names.live("told.x").encode()) < sent.rindex(b"PING")
    assert tail.dropped == 0


async def test_a_doorbell_whose_owner_is_gone_rings_within_the_lease_and_a_second(nats_server: str) -> None:
    settings = replace(QUICK, lease=3.0, ack_wait=3.5)
    took = list[float]()
    while not took or min(took) > settings.lease + 1 + BUSY_SECONDS:
        assert len(took) < 3, took  # in one of the rounds at least this machine does not stand still
        held = Watched()
        held.acts["work"] = held.hold
        name = f"t{uuid.uuid4().hex[:12]}"
        async with (
            line_to(nats_server) as (url, line),
            await open_nats(f"{url.replace('http', 'nats')}/{name}") as lost,
            await open_nats(f"{nats_server}/{name}") as engine,
            served(lost, held, settings, node="a") as one,
        ):
            seq = await one.say("work")
            await one.running(1)
            async with served(engine, settings=settings, node="b") as two:
                line.cut()
                with Stopwatch() as watch:
                    await two.running(1)
                took.append(watch.seconds)
                await two.answered(seq)
            await line.open()
            held.gate.set()
            await until(lambda: held.now == 0, limit=60)  # noqa: B023 - it is waited for at once
            assert len(await read_all(engine, "gw.out.>")) == 1
            assert [turn.open.attempt for turn in two.work.runs] == [2]


async def test_what_comes_for_one_who_fetches_no_more_is_for_the_other_at_once(nats_server: str) -> None:
    url = f"{nats_server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as one, await open_nats(url) as two:
        mine, theirs = [await engine.consumer(ConsumerSpec("c", ("in.*",), ack_wait=3600)) for engine in (one, two)]
        with anyio.move_on_after(1):
            await mine.fetch(1, 3600)
        (seq,) = await filled(two, "in.1")
        (delivery,) = await theirs.fetch(1, 3600)
        assert delivery.record.seq == seq
        with anyio.move_on_after(1):
            await theirs.fetch(10, 3600)  # more than comes now
        (seq,) = await filled(one, "in.2")
        await two.close()
        assert [delivery.record.seq for delivery in await mine.fetch(1, 3600)] == [seq]


async def test_a_consumer_that_is_there_as_it_should_be_is_not_made_anew(nats_server: str) -> None:
    """Each time is a vote of all servers, and gateways begin in hundreds."""
    name = f"t{uuid.uuid4().hex[:12]}"
    url = f"{nats_server}/{name}"
    async with (
        await open_nats(url) as one,
        await open_nats(url) as other,
        count_requests(nats_server, name) as counts,
    ):
        for patterns in (("in.*",), ("in.*", "out.>")):
            for engine in (one, other):
                await engine.consumer(ConsumerSpec("c", patterns))
        await one.consumer(ConsumerSpec("c", ("in.*",)))
        await until(lambda: counts["state of a consumer"] == 5)
        assert counts["other call"] == 3


async def test_many_who_fetch_get_alike_and_ask_seldom(nats_server: str) -> None:
    """Also who happens to get more at first."""
    gateways, count = 3, 150
    name = f"t{uuid.uuid4().hex[:12]}"
    got: Counter[int] = Counter()

    async def take(engine: Engine, number: int) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("in.*",), ack_wait=60))
        while True:
            for delivery in await consumer.fetch(256, 60):
                await delivery.ack()
                got[number] += 1

    async with AsyncExitStack() as stack:
        began, url = time.monotonic(), f"{nats_server}/{name}"
        engines = [await stack.enter_async_context(await open_nats(url)) for _ in range(gateways)]
        counts = await stack.enter_async_context(count_requests(nats_server, name))
        async with anyio.create_task_group() as tasks:
            for number, engine in enumerate(engines):
                tasks.start_soon(take, engine, number)
            await until(lambda: counts["pull"] == gateways)
            for number in range(count):
                await filled(engines[0], f"in.{number}")
            await until(lambda: got.total() == count)
            tasks.cancel_scope.cancel()
        asked_again = 5 + (time.monotonic() - began) / REQUEST_SECONDS
        assert counts["pull"] <= gateways * asked_again
    assert all(abs(one - count / gateways) < 0.2 * count / gateways for one in got.values()), got


async def test_two_gateways_see_each_other_s_words_and_leases(nats_server: str) -> None:
    url = f"{nats_server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as one, await open_nats(url) as two:
        tail = await two.tail("a.>")
        await one.publish("a.live", b"1")
        await one.append(NewRecord("a.kept", b"2"))
        assert [(await anext(tail)).data for _ in range(2)] == [b"1", b"2"]
        lease = await one.lease("bot", "one", 60)
        assert lease is not None
        assert await two.lease("bot", "two", 60) is None
        assert await two.holder("bot") == "one"

        async def shout(data: bytes) -> bytes:
            return data.upper()

        await two.serve("ctl.two", shout)
        assert await one.request("ctl.two", b"hello", 60) == b"HELLO"
        consumers = [await engine.consumer(ConsumerSpec("c", ("in.*",))) for engine in (one, two)]
        seqs = await filled(one, *(f"in.{n}" for n in range(30)))
        got: list[int] = []
        for consumer in consumers:
            got += [delivery.record.seq for delivery in await consumer.fetch(15, 5)]
        assert sorted(got) == sorted(set(got))
        assert set(got) <= set(seqs)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("allow_msg_ttl", False),
        ("allow_atomic", False),
        ("retention", "interest"),
        ("storage", "memory"),
        ("discard", "old"),
        ("duplicate_window", 1_000_000_000),
        ("max_msg_size", 1000),
        ("max_age", 3_600_000_000_000),
        ("max_msgs_per_subject", 5),
    ],
)
async def test_a_stream_that_keeps_less_than_a_journal_is_refused(
    nats_server: str, setting: str, value: bool | str | int
) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    async with await open_nats(f"{nats_server}/{name}") as engine:
        config = (await engine._connection.call(f"STREAM.INFO.{name}"))["config"]
        await engine._connection.call(f"STREAM.DELETE.{name}")
        config["metadata"] = {}
        await engine._connection.call(f"STREAM.CREATE.{name}", **{**config, setting: value})
    remedy = "remove it" if setting in ("retention", "storage") else "nats stream edit"
    with pytest.raises(EngineError, match=f"the stream '{name}' .* has {setting} .*{remedy}"):
        await open_nats(f"{nats_server}/{name}")


async def test_what_three_servers_know_is_kept_by_three(nats_servers: str) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    async with await open_nats(f"{nats_servers.split(',')[0]}/{name}") as engine:
        config = (await engine._connection.call(f"STREAM.INFO.{name}"))["config"]
        assert config["num_replicas"] == 3
        await engine._connection.call(f"STREAM.UPDATE.{name}", **{**config, "num_replicas": 1})
    with pytest.raises(EngineError, match=f"'{name}' .* has num_replicas 1, where a journal needs 3: .*stream edit"):
        await open_nats(f"{nats_servers}/{name}")


async def test_what_is_forgotten_leaves_nothing_behind(nats_server: str) -> None:
    url = f"{nats_server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url) as one, await open_nats(url) as two:
        await one.consumer(ConsumerSpec("c", ("a.*",)))
        before = (len(one._connection.on_return), len(one._connection.client._subs))
        await one.forget_consumer("c")
        for round_ in range(10):
            consumer = await one.consumer(ConsumerSpec("c", ("a.*",)))
            assert await consumer.fetch(1, 0) == []
            await (two if round_ % 2 else one).forget_consumer("c")
            if round_ % 2:
                with pytest.raises(EngineError, match="forgotten"):
                    await consumer.fetch(1, 30)
        await one.consumer(ConsumerSpec("c", ("a.*",)))
        assert (len(one._connection.on_return), len(one._connection.client._subs)) == before


async def test_a_journal_in_shards_is_refused_before_anything_is_written(nats_server: str) -> None:
    """0.1.0 wrote on its first stream how many it has."""
    name = f"t{uuid.uuid4().hex[:12]}"
    async with await open_nats(f"{nats_server}/{name}") as engine:
        config = (await engine._call(f"STREAM.INFO.{name}"))["config"]
        config["metadata"] = {"hermes-gateway-shards": "16", "hermes-gateway-shards-since": "0"}
        await engine._call(f"STREAM.UPDATE.{name}", **config)
        await engine._call(f"STREAM.DELETE.{name}-keys")
        with pytest.raises(EngineError, match=r"0\.1\.0 \(456da991\), .*people export.*sessions export"):
            await open_nats(f"{nats_server}/{name}")
        assert f"{name}-keys" not in (await engine._call("STREAM.NAMES"))["streams"]


async def test_what_is_settled_is_noted_in_few_messages_and_goes_when_it_was_to_be_kept_no_longer(
    nats_server: str,
) -> None:
    url = f"{nats_server}/t{uuid.uuid4().hex[:12]}"
    async with await open_nats(url, window=0.1) as one, await open_nats(url, window=0.1) as two:
        for number in range(20):
            (seq,) = await one.append(NewRecord(f"in.{number}", b"words", msg_id=f"m{number}"))
            await one.append(NewRecord(f"in.{number}", b"newer"), settled=[SettledRecords(f"in.{number}", LAST, 4)])
        await two.append(settled=[SettledRecords("in.0", seq, 14 * DAY)])
        with pytest.raises(Duplicate):
            await one.append(NewRecord("in.7", b"again", msg_id="m7"))

        async def are_gone() -> bool:
            state = (await one._connection.call(f"STREAM.INFO.{one._names.keys}"))["state"]
            is_noted = state["messages"] > 2  # besides of who keeps one for long, and a lease that may not be over
            return not is_noted and {record.data for record in await one.read("in.*")} == {b"newer"}

        await until(are_gone)
        await one.append(NewRecord("in.7", b"again", msg_id="m7"))
        ((due, _),) = (await list_removals(two._connection, two._names))["in.0"]
        assert due - time.time() < 2.5 * DAY  # servers keep it for two days, where a home has fourteen


def has_noted(counts: Counter[str], times: int) -> bool:
    return counts["note"] == times


async def test_who_notes_what_goes_later_does_not_ask_each_time_what_all_have_noted(nats_server: str) -> None:
    name = f"t{uuid.uuid4().hex[:12]}"
    async with (
        await open_nats(f"{nats_server}/{name}") as engine,
        count_requests(nats_server, name) as counts,
    ):
        for number in (1, 2):  # by the second note it would have asked behind the first
            await filled(engine, "in.1")
            await engine.append(settled=[SettledRecords("in.1", LAST, DAY)])
            await until(partial(has_noted, counts, number))
        assert counts["state of a stream"] == 0


async def test_that_a_reply_was_sent_is_known_for_longer_than_the_reply_is_kept(nats_server: str) -> None:
    reply = Reply("r", Address("net", "1"), "words")
    async with await open_nats(f"{nats_server}/t{uuid.uuid4().hex[:12]}") as engine:
        (out,) = await engine.append(records.make_reply_put(reply, "key", "", time.time()))
        journal = SendJournal(engine, subjects.place_of(reply.address), time.time)
        journal.owed_on = subjects.reply_subject_of(reply.address, "key")
        journal.begin(out)
        await journal.write_sent(reply.id, 0, ("1",), is_last=True)
        await engine._removals.write()
        ends = {one.seq: one.until async for one in engine.get_journal().read()}
        assert (ends[out] or 0) + DAY < (ends[journal.position.seq] or 0)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ({"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}, NO_MAJORITY),
        ({"code": 503, "description": "busy"}, "the NATS server at nats://one:4222 does not answer: busy"),
    ],
)
def test_servers_without_a_majority_are_said_to_be_that(refusal: dict[str, Any], said: str) -> None:
    assert describe_failure("nats://one:4222", ServerRefusal(refusal)) == said


def test_a_pattern_that_another_says_too_is_dropped() -> None:
    assert merge_patterns(["a.*", "a.x", ">", "b.>"]) == [">"]
    assert merge_patterns(["a.x", "a.*", "b.*.c", "b.>"]) == ["a.*", "b.>"]
    assert merge_patterns(["a.*.c", "a.b.*"]) == ["a.*.c", "a.b.*"]
    assert not has_pattern("a.*", "a.>")
    assert has_pattern("a.>", "a.*.b")
    assert matches("a.>", "a.x.b")


@pytest.mark.parametrize(
    ("url", "servers", "name"),
    [
        ("nats://one:4222", "nats://one:4222", "hermes"),
        ("nats://one:4222,two:4222,three:4222", "nats://one:4222,nats://two:4222,nats://three:4222", "hermes"),
        ("tls://one:4222,two:4222/work", "tls://one:4222,tls://two:4222", "work"),
        ("tls://one:4222,tls://two:4222/work", "tls://one:4222,tls://two:4222", "work"),
    ],
)
def test_an_address_names_servers_and_the_journal(url: str, servers: str, name: str) -> None:
    assert split_address(url) == (servers, name)

"""The promises of every engine, shown on each: leases, live messages, health and the end."""

import asyncio

import anyio
import pytest

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.errors import Conflict, EngineError
from tests.engine.conftest import SetClock, filled
from tests.spine import until


class TestLease:
    async def test_is_held_by_one(self, engine: Engine) -> None:
        lease = await engine.lease("bot", "one")
        assert lease is not None
        assert await engine.lease("bot", "two") is None
        assert await engine.holder("bot") == "one"
        assert await engine.holder("other") is None
        assert await engine.lease("other", "two") is not None

    async def test_is_found_by_how_its_key_begins(self, engine: Engine, time_of_day: SetClock) -> None:
        for key, holder in (("node.a", "one"), ("nodes", "x"), ("node.b", "two"), ("node.c", "lost")):
            assert await engine.lease(key, holder, ttl=time_of_day.span(10 if holder == "lost" else 200))
        lease = await engine.lease("node.d", "gone")
        assert lease is not None
        await lease.release()
        await time_of_day.outlast(10)
        assert await engine.holders("node.") == {"node.a": "one", "node.b": "two"}
        assert await engine.holders("bot.") == {}

    async def test_ends_when_it_is_given_up(self, engine: Engine) -> None:
        lease = await engine.lease("bot", "one")
        assert lease is not None
        await lease.release()
        assert await engine.holder("bot") is None
        assert not await lease.renew()
        assert await engine.lease("bot", "two") is not None

    async def test_ends_by_itself_unless_renewed(self, engine: Engine, time_of_day: SetClock) -> None:
        lease = await engine.lease("bot", "one", ttl=time_of_day.span(10))
        assert lease is not None
        for _ in range(3):
            await time_of_day.pass_by(9)
            assert await lease.renew()
        await time_of_day.outlast(10)
        assert await engine.holder("bot") is None
        assert not await lease.renew()

    async def test_does_not_care_for_the_time_of_day(self, own_engine: Engine, time_of_day: SetClock) -> None:
        engine = own_engine
        lease = await engine.lease("bot", "one", ttl=time_of_day.span(10))
        assert lease is not None
        for jump in (1e6, -2e6):
            time_of_day.jump(jump)
            assert await engine.holder("bot") == "one"
            assert await lease.renew()

    async def test_gives_each_holder_a_greater_token(self, engine: Engine, time_of_day: SetClock) -> None:
        tokens = []
        for key, holder, is_lost in (
            ("a", "one", True),
            ("a", "two", False),
            ("a", "two", True),
            ("a", "three", False),
            ("b", "x", False),
        ):
            lease = await engine.lease(key, holder, ttl=time_of_day.span(10))
            assert lease is not None
            tokens.append(lease.token)
            if is_lost:
                await time_of_day.outlast(10)
        assert sorted(set(tokens)) == tokens

    async def test_given_anew_to_its_holder_ends_the_older_one(self, engine: Engine) -> None:
        older = await engine.lease("bot", "one")
        newer = await engine.lease("bot", "one")
        assert older is not None
        assert newer is not None
        assert not await older.renew()
        await older.release()
        assert await newer.renew()
        assert await engine.holder("bot") == "one"


class TestLive:
    async def test_tail_shows_what_is_published_and_what_is_appended(self, engine: Engine) -> None:
        tail = await engine.tail("a.*", "b.>")
        await engine.publish("a.x", b"live")
        (seq,) = await engine.append(NewRecord("b.x.y", b"kept"))
        await engine.publish("c.x", b"other")
        await engine.append(NewRecord("c.y", b"other"))
        await engine.publish("b.z", b"last")
        found = [await anext(tail) for _ in range(3)]
        assert [(record.seq, record.subject, record.data) for record in found] == [
            (0, "a.x", b"live"),
            (seq, "b.x.y", b"kept"),
            (0, "b.z", b"last"),
        ]

    async def test_tail_does_not_show_what_was_refused(self, engine: Engine) -> None:
        tail = await engine.tail(">")
        with pytest.raises(Conflict):
            await engine.append(NewRecord("a.x", b""), NewRecord("a.y", b"", expect=9))
        await engine.append(NewRecord("a.z", b""))
        assert (await anext(tail)).subject == "a.z"

    async def test_tail_waits_for_what_comes(self, engine: Engine) -> None:
        tail = await engine.tail("a.*")
        async with anyio.create_task_group() as group:
            group.start_soon(engine.publish, "a.x", b"")
            assert (await anext(tail)).subject == "a.x"

    async def test_a_slow_reader_loses_the_oldest_and_knows_how_many(self, engine: Engine) -> None:
        tail = await engine.tail("a.*")
        for n in range(1500):
            await engine.publish("a.x", str(n).encode())
        await until(lambda: tail.dropped == 500)
        first = await anext(tail)
        assert int(first.data) == tail.dropped == 500

    async def test_close_ends_the_tails(self, engine: Engine) -> None:
        tail = await engine.tail("a.*")
        await engine.append(NewRecord("a.x", b""))
        async with anyio.create_task_group() as group:
            group.start_soon(engine.close)
            assert [record.subject async for record in tail] == ["a.x"]

    async def test_publish_leaves_no_record(self, engine: Engine) -> None:
        await engine.publish("a.x", b"")
        assert await engine.last("a.x") is None

    async def test_request_gets_the_answer_of_who_serves(self, engine: Engine) -> None:
        async def shout(data: bytes) -> bytes:
            return data.upper()

        tail = await engine.tail("ctl.*")
        await engine.serve("ctl.a", shout)
        assert await engine.request("ctl.a", b"hello", 60) == b"HELLO"
        assert (await anext(tail)).data == b"hello"

    async def test_request_that_nobody_serves_times_out(self, engine: Engine) -> None:
        with pytest.raises(TimeoutError):
            await engine.request("ctl.a", b"", 0.01)

    async def test_unserved_is_unserved(self, engine: Engine) -> None:
        async def answer(data: bytes) -> bytes:
            return data

        unserve = await engine.serve("ctl.a", answer)
        with pytest.raises(ValueError, match="served already"):
            await engine.serve("ctl.a", answer)
        await unserve()
        await unserve()
        with pytest.raises(TimeoutError):
            await engine.request("ctl.a", b"", 0.01)

    async def test_asker_who_gives_up_does_not_stop_the_one_who_answers(self, engine: Engine) -> None:
        go, done = anyio.Event(), anyio.Event()

        async def slow(data: bytes) -> bytes:
            await go.wait()
            done.set()
            return data

        await engine.serve("ctl.a", slow)
        with pytest.raises(TimeoutError, match="no answer"):
            await engine.request("ctl.a", b"", 0.01)
        go.set()
        await done.wait()

    async def test_asker_hears_that_the_answer_failed(self, engine: Engine) -> None:
        async def broken(data: bytes) -> bytes:
            raise KeyError("lost")

        await engine.serve("ctl.a", broken)
        with pytest.raises(EngineError, match="lost"):
            await engine.request("ctl.a", b"", 60)

    async def test_asker_hears_that_the_journal_was_closed(self, engine: Engine) -> None:
        async def never(data: bytes) -> bytes:
            await anyio.sleep_forever()
            return data

        await engine.serve("ctl.a", never)
        asking = asyncio.ensure_future(engine.request("ctl.a", b"", 60))
        await anyio.wait_all_tasks_blocked()
        await engine.close()
        with pytest.raises(EngineError, match="closed"):
            await asking


class TestHealthAndEnd:
    async def test_health_tells_what_there_is(self, engine: Engine) -> None:
        await filled(engine, "a.1", "a.2")
        health = await engine.health()
        assert health.ok
        assert health.detail == "well"
        assert health.records == 2
        assert health.size > 0

    async def test_close_writes_what_was_handed_over(self, engine: Engine) -> None:
        appending = [asyncio.ensure_future(engine.append(NewRecord("a.x", b""))) for _ in range(50)]
        await anyio.lowlevel.checkpoint()
        await engine.close()
        assert len(await asyncio.gather(*appending)) == 50

    async def test_nothing_works_after_the_end(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        await engine.append(NewRecord("a.x", b""))
        (delivery,) = await consumer.fetch(1, 0)
        fetching = asyncio.ensure_future(consumer.fetch(1, 60))
        await anyio.wait_all_tasks_blocked()
        await engine.close()
        await engine.close()
        refused = [
            engine.append(NewRecord("a.x", b"")),
            engine.last("a.x"),
            engine.read("a.x"),
            engine.purge("a.x"),
            engine.consumer(ConsumerSpec("d", ("a.*",))),
            engine.depth("c"),
            engine.lease("bot", "one"),
            engine.holder("bot"),
            engine.publish("a.x", b""),
            engine.request("a.x", b"", 1),
            engine.health(),
            fetching,
        ]
        for call in refused:
            with pytest.raises(EngineError, match="closed"):
                await call
        with pytest.raises(EngineError, match="closed"):
            await engine.tail("a.x")
        await delivery.ack()
        await delivery.nak()
        await delivery.progress()

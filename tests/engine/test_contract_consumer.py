"""The promises of every engine, shown on each: durable consumers."""

import asyncio
import math

import anyio
import pytest

from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.errors import EngineError
from tests.engine.conftest import SetClock, filled, seqs_of


class TestConsumer:
    async def test_delivers_what_was_there_and_what_comes(self, engine: Engine) -> None:
        old = await filled(engine, "a.x", "b.x", "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert seqs_of(await consumer.fetch(10, 0)) == [old[0], old[2]]
        new = await filled(engine, "a.z")
        assert seqs_of(await consumer.fetch(10, 1)) == new

    async def test_of_the_new_only_begins_now(self, engine: Engine) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), new_only=True))
        assert await engine.depth("c") == 0
        new = await filled(engine, "a.y")
        assert seqs_of(await consumer.fetch(10, 1)) == new

    async def test_gets_a_record_once_however_many_patterns_match(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "b.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*", "a.x", ">")))
        assert seqs_of(await consumer.fetch(10, 0)) == seqs

    async def test_is_ended_by_a_cancellation_also_where_something_always_waits(self, engine: Engine) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        fetched = 0
        with anyio.CancelScope() as scope:
            scope.cancel()
            while fetched < 3:
                (delivery,) = await consumer.fetch(1, 5)
                fetched += 1
                await delivery.nak()
        assert fetched < 3

    async def test_does_not_get_what_it_acknowledged(self, engine: Engine) -> None:
        await filled(engine, "a.x", "a.y")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=0.5))
        first, second = await consumer.fetch(2, 0)
        await first.ack()
        await first.ack()
        (again,) = await consumer.fetch(2, 5)
        assert (again.record, again.attempt) == (second.record, 2)

    async def test_gets_again_what_it_did_not_acknowledge_in_time(self, engine: Engine, time_of_day: SetClock) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=time_of_day.span(30)))
        for attempt in (1, 2, 3):
            assert [delivery.attempt for delivery in await consumer.fetch(10, 0)] == [attempt]
            assert await consumer.fetch(10, 0) == []
            await time_of_day.outlast(30)

    async def test_waits_by_a_clock_that_nobody_sets(self, own_engine: Engine, time_of_day: SetClock) -> None:
        engine = own_engine
        await filled(engine, "a.x", "a.y")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=time_of_day.span(30)))
        held, refused = await consumer.fetch(10, 0)
        await refused.nak(20)
        for jump in (1e6, -2e6):
            time_of_day.jump(jump)
            assert await consumer.fetch(10, 0) == []
        await held.ack()
        time_of_day.steady_ahead += 21
        assert seqs_of(await consumer.fetch(10, 0)) == [refused.record.seq]

    async def test_wakes_up_by_itself_when_something_falls_due(self, engine: Engine) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=0.5))
        assert len(await consumer.fetch(1, 0)) == 1
        assert [delivery.attempt for delivery in await consumer.fetch(1, 60)] == [2]

    async def test_wakes_up_for_what_another_taker_lost(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=0.5))
        got = []
        async with anyio.create_task_group() as group:

            async def take() -> None:
                got.extend(await consumer.fetch(1, 60))

            group.start_soon(take)
            group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            await filled(engine, "a.x")
        assert sorted(delivery.attempt for delivery in got) == [1, 2]

    async def test_wakes_up_for_an_append_and_only_for_its_own(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        got = []
        async with anyio.create_task_group() as group:

            async def take() -> None:
                got.extend(await consumer.fetch(10, 60))

            group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            await filled(engine, "b.x")
            await anyio.wait_all_tasks_blocked()
            assert got == []
            await filled(engine, "a.x")
        assert len(got) == 1

    async def test_returns_nothing_after_its_wait(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert await consumer.fetch(10, 0.01) == []

    async def test_gets_again_at_once_or_later_what_it_refused(self, engine: Engine, time_of_day: SetClock) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        (delivery,) = await consumer.fetch(1, 0)
        await delivery.nak()
        await delivery.nak(time_of_day.span(60))  # these two are too late to matter
        await delivery.progress()
        (delivery,) = await consumer.fetch(1, 0)
        await delivery.nak(time_of_day.span(60))
        await delivery.nak()
        await delivery.progress()
        assert await consumer.fetch(1, 0) == []
        await time_of_day.outlast(60)
        (delivery,) = await consumer.fetch(1, 0)
        assert delivery.attempt == 3

    async def test_leaves_alone_what_makes_progress(self, engine: Engine, time_of_day: SetClock) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=time_of_day.span(30)))
        (delivery,) = await consumer.fetch(1, 0)
        for _ in range(3):
            await time_of_day.pass_by(20)
            await delivery.progress()
        assert await consumer.fetch(1, 0) == []

    async def test_does_not_let_a_late_taker_touch_a_newer_delivery(
        self, engine: Engine, time_of_day: SetClock
    ) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=time_of_day.span(30)))
        (late,) = await consumer.fetch(1, 0)
        await time_of_day.outlast(30)
        (newer,) = await consumer.fetch(1, 0)
        await late.nak()
        assert await consumer.fetch(1, 0) == []
        await late.ack()
        await time_of_day.outlast(30)
        assert await consumer.fetch(1, 0) == []
        await newer.ack()
        assert await engine.depth("c") == 0

    async def test_does_not_let_a_refusal_touch_what_was_delivered_since(self, engine: Engine) -> None:
        await filled(engine, "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        (older,) = await consumer.fetch(1, 0)
        await older.nak()
        (newer,) = await consumer.fetch(1, 5)
        await older.nak()
        await older.nak(0.01)
        assert await consumer.fetch(1, 0.3) == []
        await newer.nak()
        assert [delivery.attempt for delivery in await consumer.fetch(1, 5)] == [3]

    async def test_has_no_more_in_flight_than_it_may(self, engine: Engine) -> None:
        seqs = await filled(engine, *["a.x"] * 5)
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), max_inflight=2))
        first, second = await consumer.fetch(10, 0)
        assert await consumer.fetch(10, 0) == []
        await first.nak(60)
        assert await consumer.fetch(10, 0) == []
        async with anyio.create_task_group() as group:
            group.start_soon(second.ack)
            assert seqs_of(await consumer.fetch(10, 60)) == [seqs[2]]

    async def test_is_shared_by_name(self, engine: Engine) -> None:
        seqs = await filled(engine, *(f"a.{n}" for n in range(20)))
        one, two = [await engine.consumer(ConsumerSpec("c", ("a.*",))) for _ in range(2)]
        shares = [seqs_of(await consumer.fetch(5, 0)) for consumer in (one, two, one, two, one)]
        assert sorted(seq for share in shares for seq in share) == sorted(seqs)

    async def test_shares_among_takers_who_come_at_once(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        got: list[int] = []

        async def work() -> None:
            while len(got) < 200:
                found = await consumer.fetch(3, 0.05)
                got.extend(seqs_of(found))
                for delivery in found:
                    await delivery.ack()

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(work)
            seqs = await filled(engine, *(f"a.{n % 7}" for n in range(200)))
        assert sorted(got) == sorted(seqs)
        assert await engine.depth("c") == 0

    async def test_is_independent_of_other_consumers(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "a.x")
        one, two = [await engine.consumer(ConsumerSpec(name, ("a.*",))) for name in ("one", "two")]
        for delivery in await one.fetch(10, 0):
            await delivery.ack()
        assert seqs_of(await two.fetch(10, 0)) == seqs

    async def test_takes_up_new_patterns_where_it_still_waits(self, engine: Engine) -> None:
        await filled(engine, "b.1", "a.1")
        waits = await filled(engine, "a.1", "b.1")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert len(await consumer.fetch(1, 0)) == 1
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*", "b.*")))
        assert seqs_of(await consumer.fetch(10, 0)) == waits

    async def test_takes_up_new_patterns_behind_what_it_got_last(self, engine: Engine) -> None:
        """Where nothing waits: what lies between the two may be delivered, or not."""
        await filled(engine, "b.1", "a.1")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert len(await consumer.fetch(10, 0)) == 1
        between = await filled(engine, "b.1")
        consumer = await engine.consumer(ConsumerSpec("c", ("b.*",)))
        new = await filled(engine, "a.1", "b.1")
        assert seqs_of(await consumer.fetch(10, 0)) in ([new[1]], [*between, new[1]])

    async def test_keeps_what_it_handed_out_when_patterns_change(self, engine: Engine, time_of_day: SetClock) -> None:
        seqs = await filled(engine, "a.1")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=time_of_day.span(30)))
        assert len(await consumer.fetch(10, 0)) == 1
        consumer = await engine.consumer(ConsumerSpec("c", ("b.*",), ack_wait=time_of_day.span(30)))
        await time_of_day.outlast(30)
        assert seqs_of(await consumer.fetch(10, 0)) == seqs

    async def test_is_listed_until_it_is_forgotten(self, engine: Engine) -> None:
        for name in ("c", "d"):
            await engine.consumer(ConsumerSpec(name, ("a.*",)))
        assert sorted(await engine.consumers()) == ["c", "d"]
        await engine.forget_consumer("c")
        assert await engine.consumers() == ["d"]

    async def test_can_be_forgotten(self, engine: Engine) -> None:
        await filled(engine, "a.1", "a.2")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert len(await consumer.fetch(1, 0)) == 1
        await engine.forget_consumer("c")
        assert await engine.depth("c") == 0
        with pytest.raises(EngineError, match="forgotten"):
            await consumer.fetch(1, 0)
        again = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert [delivery.attempt for delivery in await again.fetch(10, 0)] == [1, 1]

    async def test_that_is_forgotten_ends_the_fetches_that_wait(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        fetching = asyncio.ensure_future(consumer.fetch(1, 60))
        await anyio.wait_all_tasks_blocked()
        await engine.forget_consumer("c")
        with pytest.raises(EngineError, match="forgotten"):
            await fetching

    async def test_took_nothing_by_a_fetch_that_was_cancelled(self, engine: Engine) -> None:
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=60))
        for n in range(20):
            fetching = asyncio.ensure_future(consumer.fetch(1, 60))
            for _ in range(n % 4):
                await anyio.lowlevel.checkpoint()
            appending = asyncio.ensure_future(engine.append(NewRecord("a.x", b"")))
            for _ in range(n % 5):
                await anyio.sleep(0.001 if n % 2 else 0)
            fetching.cancel()
            (seq,) = await appending
            if (await asyncio.gather(fetching, return_exceptions=True))[0].__class__ is list:
                found = fetching.result()
            else:
                found = await consumer.fetch(1, 5)
            assert [(delivery.record.seq, delivery.attempt) for delivery in found] == [(seq, 1)]
            await found[0].ack()

    async def test_knows_how_much_it_has_before_it(self, engine: Engine) -> None:
        assert await engine.depth("nobody") == 0
        await filled(engine, "a.1", "b.1", "a.2", "a.3")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        assert await engine.depth("c") == 3
        first, second = await consumer.fetch(2, 0)
        assert await engine.depth("c") == 3
        await first.ack()
        await second.nak(60)
        assert await engine.depth("c") == 2
        await filled(engine, "a.4", "b.2")
        assert await engine.depth("c") == 3

    @pytest.mark.parametrize(
        "spec",
        [
            ConsumerSpec("", ("a",)),
            ConsumerSpec("c", ()),
            ConsumerSpec("c", ("a",), ack_wait=0),
            ConsumerSpec("c", ("a",), max_inflight=0),
        ],
    )
    async def test_must_make_sense(self, engine: Engine, spec: ConsumerSpec) -> None:
        with pytest.raises(ValueError, match="consumer"):
            await engine.consumer(spec)


class TestListOwed:
    async def test_names_what_is_pending_and_what_waits_and_hands_nothing_out(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "b.x", "a.x", "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        first, _ = await consumer.fetch(2, 0)
        await first.ack()
        owed = await engine.list_owed("c", math.inf)
        assert [record.seq for record in owed] == [seqs[2], seqs[3]]
        assert [record.seq for record in await engine.list_owed("c", math.inf, limit=1)] == [seqs[2]]
        assert [record.seq for record in await engine.list_owed("c", math.inf, after=seqs[2])] == [seqs[3]]
        (last,) = await consumer.fetch(10, 0)
        assert (last.record.seq, last.attempt) == (seqs[3], 1)
        await last.ack()

    async def test_stops_where_it_is_younger(self, engine: Engine, time_of_day: SetClock) -> None:
        await engine.consumer(ConsumerSpec("c", ("a.*",)))
        (old,) = await filled(engine, "a.x")
        await time_of_day.pass_by(60)
        (young,) = await filled(engine, "a.x")
        _, last = await engine.read("a.x")
        assert [record.seq for record in await engine.list_owed("c", last.ts)] == [old]
        assert [record.seq for record in await engine.list_owed("c", last.ts + 1)] == [old, young]

    async def test_is_nothing_for_a_consumer_that_is_not_there(self, engine: Engine) -> None:
        assert await engine.list_owed("c", math.inf) == []

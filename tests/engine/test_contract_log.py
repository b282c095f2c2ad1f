"""The promises of every engine, shown on each: the log itself."""

import asyncio

import pytest

from gateway.engine.interface import PART_BYTES, ConsumerSpec, Engine, NewRecord, SettledRecords, append_in_parts
from gateway.errors import AppendSizeError, Conflict, Duplicate
from tests.engine.conftest import DAY, JUMPS, SetClock, filled, subjects_of


class TestAppend:
    async def test_returns_a_growing_sequence_for_each_put(self, engine: Engine) -> None:
        first = await engine.append(NewRecord("a.x", b"1"), NewRecord("a.y", b"2"))
        second = await engine.append(NewRecord("a.x", b"3"))
        assert sorted({*first, *second}) == [*first, *second]

    async def test_takes_a_thousand(self, engine: Engine) -> None:
        assert len(await engine.append(*(NewRecord("a.x", b"") for _ in range(1000)))) == 1000
        assert len(await engine.read("a.x", limit=2000)) == 1000

    async def test_refuses_more_than_is_taken_at_once(self, engine: Engine) -> None:
        large = NewRecord("b.x", b"1" * (PART_BYTES + 1))  # counts for three
        for puts in ([NewRecord("a.x", b"")] * 1001, [large, *[NewRecord("a.x", b"")] * 998]):
            with pytest.raises(AppendSizeError, match="1001 parts"):
                await engine.append(*puts)
        assert await engine.read(">") == []
        assert len(await engine.append(large, *[NewRecord("a.x", b"")] * 997)) == 998

    async def test_in_parts_is_in_order(self, engine: Engine) -> None:
        seqs = await append_in_parts(engine, (NewRecord("a.x", str(n).encode()) for n in range(2100)))
        found = await engine.read("a.x", limit=3000)
        assert [record.seq for record in found] == seqs
        assert [int(record.data) for record in found] == list(range(2100))

    async def test_of_nothing_is_nothing(self, engine: Engine) -> None:
        assert await engine.append() == []

    async def test_keeps_data_and_time(self, engine: Engine, time_of_day: SetClock) -> None:
        before = time_of_day.clock.wall()
        (seq,) = await engine.append(NewRecord("a.x", b"\x00\xff"))
        record = await engine.last("a.x")
        assert record is not None
        assert (record.seq, record.subject, record.data) == (seq, "a.x", b"\x00\xff")
        assert before <= record.ts <= time_of_day.clock.wall()

    async def test_keeps_what_is_large(self, engine: Engine) -> None:
        large, larger = b"1" * 3_000_000, b"2" * 3_000_001
        tail = await engine.tail("a.*")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",)))
        seqs = await engine.append(
            NewRecord("a.x", large, msg_id="m"), NewRecord("a.x", b"small"), NewRecord("a.x", larger, expect=0)
        )
        assert [record.data for record in await engine.read("a.x")] == [large, b"small", larger]
        found: list[bytes] = []
        while len(found) < 3 and (some := await consumer.fetch(3, 60)):
            found += [delivery.record.data for delivery in some]
        assert found == [large, b"small", larger]
        assert [(await anext(tail)).data for _ in range(3)] == [large, b"small", larger]
        last = await engine.last("a.x")
        assert last is not None
        assert (last.seq, last.data) == (seqs[2], larger)
        assert await engine.purge("a.x", seqs[1], after=seqs[0]) == 1
        assert await engine.purge("a.x", seqs[0]) == 1
        assert [record.data for record in await engine.read(">")] == [larger]
        assert await engine.purge("a.x", seqs[2], after=seqs[1]) == 1
        health = await engine.health()
        assert health.records == 0

    async def test_may_know_its_first_sequence_ahead(self, engine: Engine) -> None:
        append = engine.append_numbered
        assert (append is None) == (engine.files is not None), "None where other processes append to this journal too"
        if append is None:
            return
        await engine.append(NewRecord("a.x", b"1"))

        def make(first: int) -> list[NewRecord]:
            return [NewRecord("a.x", b"2"), NewRecord("a.y", str(first).encode(), expect=0)]

        found = await asyncio.gather(*(append(make) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in found] == [list, Conflict, Conflict]
        await engine.append(NewRecord("b.x", b"3"))
        await engine.purge("b.x")
        await append(lambda first: [NewRecord("a.z", str(first).encode())])
        for subject, before in (("a.y", 1), ("a.z", 0)):
            last = await engine.last(subject)
            assert last is not None
            assert int(last.data) == last.seq - before

    async def test_is_all_or_nothing_when_a_later_put_conflicts(self, engine: Engine) -> None:
        with pytest.raises(Conflict):
            await engine.append(NewRecord("a.x", b"1"), NewRecord("b.x", b"2", expect=7))
        assert await engine.read(">") == []

    async def test_is_all_or_nothing_when_a_later_put_is_a_duplicate(self, engine: Engine) -> None:
        await engine.append(NewRecord("a.x", b"1", msg_id="m1"))
        with pytest.raises(Duplicate):
            await engine.append(NewRecord("b.x", b"2", msg_id="m2"), NewRecord("b.x", b"3", msg_id="m1"))
        assert await engine.last("b.x") is None
        assert len(await engine.append(NewRecord("b.x", b"2", msg_id="m2"))) == 1

    async def test_refuses_one_id_twice_in_one_append(self, engine: Engine) -> None:
        with pytest.raises(Duplicate):
            await engine.append(NewRecord("a.x", b"1", msg_id="m1"), NewRecord("a.x", b"2", msg_id="m1"))
        assert await engine.last("a.x") is None

    async def test_compares_and_sets(self, engine: Engine) -> None:
        (first,) = await engine.append(NewRecord("a.x", b"1", expect=0))
        (second,) = await engine.append(NewRecord("a.x", b"2", expect=first))
        for stale in (0, first, second + 1):
            with pytest.raises(Conflict):
                await engine.append(NewRecord("a.x", b"3", expect=stale))
        record = await engine.last("a.x")
        assert record is not None
        assert record.data == b"2"

    async def test_tells_who_tries_again_that_it_was_done(self, engine: Engine) -> None:
        put = NewRecord("a.x", b"1", msg_id="m", expect=0)
        await engine.append(put)
        with pytest.raises(Duplicate):
            await engine.append(put)

    async def test_knows_an_id_as_long_as_its_record_is_there(self, engine: Engine, time_of_day: SetClock) -> None:
        (seq,) = await engine.append(NewRecord("a.x", b"1", msg_id="m"))
        await time_of_day.outlast(60)
        again = NewRecord("a.x", b"2", msg_id="m")
        for puts in (
            (again,),
            (again, NewRecord("b.x", b"")),
            (NewRecord("b.x", b""), again),
            (NewRecord("a.x", b"2", msg_id="m", expect=seq),),
            (NewRecord("a.x", b"2", msg_id="m", expect=0),),
        ):
            with pytest.raises(Duplicate):
                await engine.append(*puts)
        assert [record.data for record in await engine.read(">")] == [b"1"]

    async def test_knows_an_id_for_a_while_under_every_subject(self, engine: Engine) -> None:
        await engine.append(NewRecord("a.x", b"1", msg_id="m"))
        elsewhere = NewRecord("b.x", b"2", msg_id="m")
        for puts in ((elsewhere,), (NewRecord("c.x", b""), elsewhere), (NewRecord("c.x", b"", expect=7), elsewhere)):
            with pytest.raises(Duplicate):
                await engine.append(*puts)
        assert [record.data for record in await engine.read(">")] == [b"1"]

    async def test_expects_what_was_before_the_whole_append(self, engine: Engine) -> None:
        seqs = await engine.append(NewRecord("a.x", b"1", expect=0), NewRecord("a.x", b"2", expect=0))
        assert len(seqs) == 2

    async def test_lets_one_of_many_racers_win(self, engine: Engine) -> None:
        async def race(n: int) -> bool:
            try:
                await engine.append(NewRecord("a.x", str(n).encode(), expect=0))
            except Conflict:
                return False
            return True

        assert sum(await asyncio.gather(*(race(n) for n in range(50)))) == 1
        assert len(await engine.read("a.x")) == 1

    async def test_does_not_let_a_refused_neighbour_harm_the_others(self, engine: Engine) -> None:
        await engine.append(NewRecord("a.x", b"", msg_id="taken"))
        puts = [NewRecord("b.x", b"", msg_id="taken" if n % 3 == 0 else f"m{n}") for n in range(90)]
        outcomes = await asyncio.gather(*(engine.append(put) for put in puts), return_exceptions=True)
        assert [type(outcome) is list for outcome in outcomes] == [n % 3 != 0 for n in range(90)]
        assert len(await engine.read("b.x")) == 60

    @pytest.mark.parametrize("subject", ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a\n", "a.\tb", "a\x00b"])
    async def test_refuses_what_is_no_subject(self, engine: Engine, subject: str) -> None:
        with pytest.raises(ValueError, match="is not a subject"):
            await engine.append(NewRecord("a.x", b""), NewRecord(subject, b""))
        assert await engine.read(">") == []

    @pytest.mark.parametrize("pattern", ["", "a.", ">.a", "a.>.b", "a*", "a.b>", "a b"])
    async def test_refuses_what_is_no_pattern(self, engine: Engine, pattern: str) -> None:
        for asking in (engine.read(pattern), engine.purge(pattern), engine.consumer(ConsumerSpec("c", (pattern,)))):
            with pytest.raises(ValueError, match="is not a pattern"):
                await asking
        with pytest.raises(ValueError, match="is not a pattern"):
            await engine.tail(pattern)


class TestTimeToLive:
    async def test_ends_a_record_for_every_question(self, engine: Engine, time_of_day: SetClock) -> None:
        await engine.append(NewRecord("a.x", b"lasts"), NewRecord("a.x", b"ends", ttl=time_of_day.span(60)))
        await time_of_day.outlast(60)
        record = await engine.last("a.x")
        assert record is not None
        assert record.data == b"lasts"
        assert [record.data for record in await engine.read(">")] == [b"lasts"]
        consumer = await engine.consumer(ConsumerSpec("c", (">",)))
        assert [delivery.record.data for delivery in await consumer.fetch(10, 0)] == [b"lasts"]

    async def test_frees_the_message_id_with_the_record(self, engine: Engine, time_of_day: SetClock) -> None:
        await engine.append(NewRecord("a.x", b"1", msg_id="m", ttl=time_of_day.span(60)))
        with pytest.raises(Duplicate):
            await engine.append(NewRecord("a.x", b"2", msg_id="m"))
        await time_of_day.outlast(60)
        await engine.append(NewRecord("a.x", b"3", msg_id="m"))
        assert [record.data for record in await engine.read("a.x")] == [b"3"]

    async def test_counts_for_compare_and_set(self, engine: Engine, time_of_day: SetClock) -> None:
        await engine.append(NewRecord("a.x", b"1", ttl=time_of_day.span(60)))
        await time_of_day.outlast(60)
        assert len(await engine.append(NewRecord("a.x", b"2", expect=0))) == 1

    async def test_ends_what_was_handed_out(self, engine: Engine, time_of_day: SetClock) -> None:
        await engine.append(NewRecord("a.x", b"", ttl=time_of_day.span(60)))
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=5))
        assert len(await consumer.fetch(10, 0)) == 1
        await time_of_day.outlast(60)
        assert await consumer.fetch(10, 0) == []

    async def test_begins_when_what_was_awaited_is_settled(self, engine: Engine, time_of_day: SetClock) -> None:
        first = await engine.append(NewRecord("a.x", b"1", msg_id="m"), NewRecord("a.x", b"2"), NewRecord("b.x", b""))
        ttl = time_of_day.span(60)
        await engine.append(NewRecord("a.x", b"3"), settled=[SettledRecords("a.x", first[1], ttl)])
        await engine.append(settled=[SettledRecords("a.x", first[1], 100 * ttl)])  # the first word counts
        assert [record.data for record in await engine.read(">")] == [b"1", b"2", b"", b"3"]
        with pytest.raises(Duplicate):
            await engine.append(NewRecord("a.x", b"again", msg_id="m"))
        await time_of_day.outlast(60)
        assert [record.data for record in await engine.read(">")] == [b"", b"3"]
        await engine.append(NewRecord("a.x", b"4", msg_id="m"))
        assert [record.data for record in await engine.read("a.x")] == [b"3", b"4"]

    async def test_that_it_has_is_not_changed_by_settling(self, own_engine: Engine, time_of_day: SetClock) -> None:
        engine = own_engine
        await engine.append(NewRecord("a.x", b"limited", ttl=1000))
        first = await engine.append(NewRecord("a.x", b"1"), NewRecord("b.x", b""))
        await time_of_day.pass_by(900)
        await engine.append(NewRecord("a.x", b"3"), settled=[SettledRecords("a.x", first[0], 60)])
        await time_of_day.pass_by(61)
        assert [record.data for record in await engine.read(">")] == [b"limited", b"", b"3"]
        await time_of_day.pass_by(1e7)
        assert [record.data for record in await engine.read(">")] == [b"", b"3"]

    async def test_a_refused_append_settles_nothing(self, engine: Engine, time_of_day: SetClock) -> None:
        (seq,) = await engine.append(NewRecord("a.x", b"1"))
        with pytest.raises(Conflict):
            await engine.append(
                NewRecord("a.x", b"2", expect=7), settled=[SettledRecords("a.x", seq, time_of_day.span(60))]
            )
        await time_of_day.outlast(60)
        assert [record.data for record in await engine.read(">")] == [b"1"]

    @pytest.mark.parametrize("jump", JUMPS)
    async def test_does_not_go_by_the_wall_clock(self, own_engine: Engine, time_of_day: SetClock, jump: float) -> None:
        engine = own_engine
        await engine.append(NewRecord("a.x", b"1", ttl=14 * DAY))
        time_of_day.jump(jump)
        await engine.append(NewRecord("a.x", b"2", ttl=14 * DAY))
        assert [record.data for record in await engine.read(">")] == [b"1", b"2"]
        await time_of_day.pass_by(13 * DAY)
        time_of_day.jump(-2 * jump)
        assert [record.data for record in await engine.read(">")] == [b"1", b"2"]
        await time_of_day.pass_by(2 * DAY)
        assert await engine.read(">") == []

    async def test_must_be_above_zero(self, engine: Engine) -> None:
        with pytest.raises(ValueError, match="time to live"):
            await engine.append(NewRecord("a.x", b"", ttl=0))


class TestReading:
    async def test_last_knows_its_own_subject_only(self, engine: Engine) -> None:
        await filled(engine, "a.x", "a.x.y", "a.xx")
        record = await engine.last("a.x")
        assert record is not None
        assert record.subject == "a.x"
        assert await engine.last("a") is None

    async def test_read_follows_the_sequences_and_within_a_conversation_those_are_the_order(
        self, engine: Engine
    ) -> None:
        subjects = ["b.1", "a.1", "b.2", "c.1", "a.2"]
        seqs = await filled(engine, *subjects)
        by_seq = dict(sorted(zip(seqs, subjects, strict=True)))
        assert [(record.seq, record.subject) for record in await engine.read(">")] == [*by_seq.items()]
        for last in ("1", "2"):
            expected = [subject for subject in subjects if subject.endswith(last)]
            assert subjects_of(await engine.read(f"*.{last}")) == expected
        assert sorted(subjects_of(await engine.read("a.*"))) == ["a.1", "a.2"]

    async def test_read_goes_on_behind_a_sequence_in_portions(self, engine: Engine) -> None:
        seqs = await filled(engine, *(f"a.{n}" for n in range(25)))
        found, after = [], 0
        while portion := await engine.read("a.>", after=after, limit=10):
            assert len(portion) <= 10
            found += [record.seq for record in portion]
            after = portion[-1].seq
        assert found == sorted(seqs)

    async def test_read_finds_the_rare_among_the_many(self, engine: Engine) -> None:
        for _ in range(6):
            await engine.append(*(NewRecord(f"many.{n % 7}", b"") for n in range(1000)))
        await engine.append(NewRecord("rare.x", b""))
        await engine.append(*(NewRecord(f"many.{n % 7}", b"") for n in range(100)))
        assert subjects_of(await engine.read("rare.>")) == ["rare.x"]
        assert len(await engine.read("many.*", limit=10_000)) == 6100
        assert len(await engine.read("many.3", limit=10_000)) == 6 * 143 + 14

    async def test_sees_at_once_what_was_written(self, engine: Engine) -> None:
        for n in range(30):
            (seq,) = await engine.append(NewRecord("a.x", b""))
            record = await engine.last("a.x")
            assert record is not None
            assert record.seq == seq, n


class TestPurge:
    async def test_removes_what_matches_and_says_how_much(self, engine: Engine) -> None:
        await filled(engine, "a.x", "b.x", "a.y")
        assert await engine.purge("a.*") == 2
        assert subjects_of(await engine.read(">")) == ["b.x"]
        assert await engine.purge("a.*") == 0

    async def test_goes_up_to_a_sequence(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "a.x", "a.x")
        assert await engine.purge("a.x", upto=seqs[1]) == 2
        assert [record.seq for record in await engine.read("a.x")] == [seqs[2]]

    async def test_never_gives_a_sequence_twice(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "a.x")
        await engine.purge(">")
        (after,) = await engine.append(NewRecord("a.x", b"", expect=0))
        assert after > max(seqs)

    async def test_frees_message_ids(self, engine: Engine) -> None:
        await engine.append(NewRecord("a.x", b"", msg_id="m"))
        other = [NewRecord("b.x", b"", msg_id="n"), NewRecord("b.x", b"", msg_id="o"), NewRecord("c", b"")]
        for beside in ([], other[:1], other[1:]):
            await engine.purge("a.x")
            puts = [*beside, NewRecord("a.x", b"", msg_id="m")]
            assert len(await engine.append(*puts)) == len(puts)
        await engine.purge("*.x", after=1)
        assert len(await engine.append(NewRecord("b.x", b"", msg_id="m"), NewRecord("a.x", b"", msg_id="n"))) == 2
        with pytest.raises(Duplicate):
            await engine.append(NewRecord("b.x", b"", msg_id="m"), NewRecord("a.x", b""))

    async def test_goes_from_behind_one_sequence_up_to_another(self, engine: Engine) -> None:
        seqs = await filled(engine, "a.x", "b.x", "a.y.x", "a.x", "b.x", "a.y.x")
        assert await engine.purge("a.>", seqs[3], after=seqs[0]) == 2
        assert [record.seq for record in await engine.read(">")] == [seqs[0], seqs[1], seqs[4], seqs[5]]
        assert await engine.purge("a.>", seqs[0], after=seqs[0]) == 0
        assert await engine.purge("a.>", after=seqs[0]) == 1
        assert [record.seq for record in await engine.read(">")] == [seqs[0], seqs[1], seqs[4]]

    async def test_takes_from_the_consumers_what_they_are_owed(self, engine: Engine) -> None:
        await filled(engine, "a.x", "a.y", "a.y", "a.x")
        consumer = await engine.consumer(ConsumerSpec("c", ("a.*",), ack_wait=0.5))
        assert len(await consumer.fetch(2, 0)) == 2
        assert await engine.depth("c") == 4
        await engine.purge("a.x")
        assert await engine.depth("c") == 2
        assert subjects_of([(await consumer.fetch(1, 1))[0].record for _ in range(2)]) == ["a.y", "a.y"]

    async def test_removes_thousands(self, engine: Engine) -> None:
        for hundred in range(0, 2500, 100):
            await engine.append(*(NewRecord(f"a.{n}", b"") for n in range(hundred, hundred + 100)))
        await filled(engine, "b.x")
        assert await engine.purge("a.>") == 2500
        assert subjects_of(await engine.read(">")) == ["b.x"]
        assert (await engine.health()).records == 1

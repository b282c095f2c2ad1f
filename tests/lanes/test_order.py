"""The work of a lane: its content, its order, and its limits."""

import asyncio

import pytest
from msgspec import structs
from msgspec.structs import replace

from gateway.config.settings import SessionSettings
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict
from gateway.hooks.recorder import OwedEvent
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.sessions import transitions
from tests.lanes.desk import QUICK, Watched, echo, served
from tests.spine import SetClock, chain, key, message, replies, turn_chain, until

ALONE = replace(QUICK, folded=1)


async def test_a_message_is_answered_and_its_turn_is_in_the_journal(engine: Engine) -> None:
    async with served(engine) as desk:
        seq = await desk.say("hello")
        session = await desk.answered(seq)
    assert await replies(engine) == ["re hello"]
    assert [entry.content for entry in session.entries] == ["hello", "re hello"]
    opened, claim, done = await turn_chain(engine)
    assert (opened.reason, opened.session_key, opened.user_id) == ("first", key(), "ann")
    assert (claim.on, claim.attempt, done.upto, done.turn_id) == (seq, 1, seq, claim.turn_id)


async def test_messages_of_a_session_are_answered_in_the_order_of_the_journal(engine: Engine) -> None:
    async with served(engine, settings=ALONE) as desk:
        seqs = [await desk.say(str(number)) for number in range(20)]
        await desk.answered(seqs[-1])
    assert desk.work.texts == [str(number) for number in range(20)]
    assert await replies(engine) == [f"re {number}" for number in range(20)]


async def test_a_message_to_an_idle_session_is_claimed_by_the_append_that_writes_it(engine: Engine) -> None:
    if engine.append_numbered is None:
        pytest.skip("other processes append to this journal too")
    work = Watched()
    work.acts["held"] = work.hold
    async with served(engine, work) as desk:
        seq = await desk.say("held")
        turn = (await desk.session()).turn
        assert turn
        assert (turn.on, turn.attempt) == (seq, 1)
        assert await desk.say("held", id="of its own") == (turn.claimed or 0) + 1
        work.gate.set()
        await desk.answered((seq or 0) + 3)
    assert await replies(engine) == ["re held", "re held"]


async def test_messages_at_the_same_moment_are_answered_in_their_order(engine: Engine) -> None:
    async with served(engine, settings=ALONE) as desk:
        for chat in ("1", "2", "1"):
            seqs = await asyncio.gather(*(desk.say(f"{chat}.{number}", chat) for number in range(4)))
            assert sorted(seqs, key=lambda seq: seq or 0) == seqs
            await desk.answered(seqs[-1], chat)
    assert desk.work.texts == [f"{chat}.{number}" for chat in ("1", "2", "1") for number in range(4)]


async def test_a_message_waits_until_it_is_due_and_so_does_what_is_behind_it(engine: Engine) -> None:
    clock = SetClock(1000.0)
    async with served(engine, clock=clock) as desk:
        await desk.answered(await desk.say("at once"))
        await desk.say("later", due=1060.0)
        await desk.answered(await desk.say("elsewhere", "2"), "2")
        behind = await desk.say("behind it")
        clock.now = 1059.0
        await desk.answered(await desk.say("elsewhere again", "2"), "2")
        assert await replies(engine) == ["re at once"]
        clock.now = 1060.0
        await desk.say("much later", due=2000.0)
        await desk.answered(behind)
        assert await replies(engine) == ["re at once", "re later + behind it"]


async def test_what_waits_when_a_node_starts_is_answered(engine: Engine) -> None:
    async with served(engine) as desk:
        pass
    seqs = [await desk.say("while you were away", chat) for chat in ("1", "2")]
    async with served(engine) as desk:
        for chat, seq in zip(("1", "2"), seqs, strict=True):
            await desk.answered(seq, chat)


async def test_a_message_that_comes_twice_is_answered_once(engine: Engine) -> None:
    async with served(engine) as desk:
        seq = await desk.say("once", id="77")
        assert await desk.say("once", id="77") is None
        await desk.answered(seq)
        assert await desk.say("once", id="77") is None
        await desk.answered(await desk.say("next"))
    assert await replies(engine) == ["re once", "re next"]


async def test_the_cursor_moves_with_the_messages_and_also_for_duplicates(engine: Engine) -> None:
    async with served(engine) as desk:
        cursor = "gw.cur.net.bot"
        first = await desk.lanes.accept_all(
            [(message("a", id="1"), key()), (message("b", id="2"), key())], NewRecord(cursor, b"2", expect=0), bot="bot"
        )
        at = (await engine.last(cursor)).seq  # type: ignore[union-attr]
        again = await desk.lanes.accept_all(
            [(message("b", id="2"), key()), (message("c", id="3"), key())],
            NewRecord(cursor, b"3", expect=at),
            bot="bot",
        )
        assert None not in first
        assert [seq is None for seq in again] == [True, False]
        assert (await engine.last(cursor)).data == b"3"  # type: ignore[union-attr]
        with pytest.raises(Conflict):
            await desk.lanes.accept(message("d", id="4"), key(), NewRecord(cursor, b"4", expect=at), bot="bot")
        await desk.answered(again[1])
    assert " ".join(await replies(engine)).count("d") <= 1  # it may be there, and counts once


async def test_what_a_person_writes_in_pieces_is_one_turn(engine: Engine) -> None:
    work = Watched()
    work.acts["first"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("first")
        await desk.running(1)
        for text in ("a", "b", "/command", "c", "d"):
            last = await desk.say(text)
        other = await desk.say("e", user="bob")
        work.gate.set()
        await desk.answered(other)
    assert last
    assert [[one.text for one in turn.messages] for turn in work.runs] == [
        ["first"],
        ["a", "b"],
        ["/command"],
        ["c", "d"],
        ["e"],
    ]


async def test_no_more_messages_are_folded_than_allowed(engine: Engine) -> None:
    work = Watched()
    work.acts["first"] = work.hold
    async with served(engine, work, replace(QUICK, folded=3)) as desk:
        await desk.say("first")
        await desk.running(1)
        seqs = [await desk.say(str(number)) for number in range(7)]
        work.gate.set()
        await desk.answered(seqs[-1])
    assert [len(turn.messages) for turn in work.runs] == [1, 3, 3, 1]


async def test_sessions_run_beside_each_other_up_to_the_limit(engine: Engine) -> None:
    work = Watched()
    work.acts["wait"] = work.hold
    async with served(engine, work, replace(QUICK, sessions=SessionSettings(turns=3))) as desk:
        seqs = {chat: await desk.say("wait", chat, user=f"u{chat}") for chat in "123456"}
        await until(lambda: (desk.lanes.waiting, work.now) == (3, 3))
        assert desk.lanes.running == 3
        work.gate.set()
        for chat, seq in seqs.items():
            await desk.answered(seq, chat)
    assert work.most == 3


async def test_one_person_does_not_take_all_slots(engine: Engine) -> None:
    work = Watched()
    work.acts["wait"] = work.hold
    async with served(engine, work, replace(QUICK, sessions=SessionSettings(turns=4, turns_per_person=2))) as desk:
        for chat in "123":
            await desk.say("wait", chat, user="greedy")
        await until(lambda: desk.lanes.waiting == 1)
        await desk.answered(await desk.say("quick", "9", user="modest"), "9")
        assert work.now == 2
        work.gate.set()


async def test_a_flood_in_one_conversation_does_not_delay_the_others(engine: Engine) -> None:
    """5,000 messages wait in one conversation; the others are served as if there were none."""
    flood = [(message(f"f{number}", "flood", user="flooder"), key("flood")) for number in range(5000)]
    async with served(engine) as desk:
        pass
    for first in range(0, 5000, 500):
        await desk.lanes.accept_all(flood[first : first + 500])
    async with served(engine, settings=replace(QUICK, sessions=SessionSettings(turns=2), folded=1)) as desk:
        seqs = {chat: await desk.say("hello", chat, user=f"u{chat}") for chat in ("a", "b", "c")}
        for chat, seq in seqs.items():
            await desk.answered(seq, chat)
        # The doors took the flood in some fetches of 256; not one of its turns more than the rounds until then.
        assert sum(text.startswith("f") for text in desk.work.texts) < 500
        flooded = [text for text in desk.work.texts if text.startswith("f")]
        assert flooded == [f"f{number}" for number in range(len(flooded))]


async def test_of_all_doorbells_of_a_conversation_one_is_in_flight(engine: Engine) -> None:
    work = Watched()
    work.acts["hold"] = work.hold
    async with served(engine, work) as desk:
        await desk.say("hold")
        await desk.running(1)
        for number in range(300):
            last = await desk.say(str(number))

        async def is_one() -> bool:
            return await engine.depth("turns") == 1

        await until(is_one, "one doorbell")
        standing = await desk.lanes.queue_position(key())
        assert (standing.is_running, standing.messages) == (True, 100), "counted up to a page"
        work.gate.set()
        await desk.answered(last)

        async def is_none() -> bool:
            return await engine.depth("turns") == 0

        await until(is_none, "no doorbell")


async def test_one_knows_how_many_are_before_one(engine: Engine) -> None:
    work = Watched()
    work.acts["hold"] = work.hold
    async with served(engine, work) as desk:
        idle = await desk.lanes.queue_position(key())
        assert (idle.is_running, idle.is_waiting, idle.messages) == (False, False, 0)
        await desk.say("hold")
        await desk.running(1)
        await desk.say("second")
        busy = await desk.lanes.queue_position(key())
        assert (busy.is_running, busy.messages) == (True, 2), "so a new one would be the third"
        work.gate.set()


async def test_a_command_changes_the_session_in_the_same_append_as_its_end(engine: Engine) -> None:
    async def new(turn: LaneTurn) -> LaneResult:
        opened = transitions.begin_session(turn.session, 60.0, "new", message=turn.messages[0])
        return structs.replace(echo(turn, "new after "), entries=(), status="command", changes=(opened,))

    work = Watched({"/new": new})
    async with served(engine, work) as desk:
        before = await desk.answered(await desk.say("hello"))
        after = await desk.answered(await desk.say("/new"))
        assert after.session_id != before.session_id
        assert (after.entries, after.previous, after.turn) == ((), (before.session_id,), None)
        assert not work.runs[1].begins_session, "the one who changes it knows it"


async def test_events_owed_to_hooks_and_the_bag_go_with_the_end(engine: Engine) -> None:
    async def work(turn: LaneTurn) -> LaneResult:
        event = records.EmittedEvent(name="agent:end", fields={"x": 1})
        turn.owed.add(OwedEvent("e1", event.name, records.encode(event)))
        return structs.replace(echo(turn), bag={"seen": 1})

    async with served(engine, Watched({"x": work})) as desk:
        session = await desk.answered(await desk.say("x"))
    assert session.bag == {"seen": 1}
    assert [one.fields for one in await chain(engine, "gw.owed.*.agent.end")] == [{"x": 1}]


def owe(turn: LaneTurn, name: str) -> None:
    """Add a pending event to the turn; those of one name are equal."""
    event = records.EmittedEvent(name=name, fields={"id": f"{turn.turn_id}/{name}"})
    turn.owed.add(OwedEvent(f"{turn.turn_id}/{name}", name, records.encode(event)))


async def test_events_are_in_the_append_of_what_they_tell_and_a_second_run_repeats_none(engine: Engine) -> None:
    async def work(turn: LaneTurn) -> LaneResult:
        owe(turn, "agent:start")
        if not turn.resumed:
            owe(turn, "llm:after")
            await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=Entry("assistant", "x")))
            owe(turn, "tool:before")
            raise ValueError("cut off")
        owe(turn, "tool:before")
        owe(turn, "agent:end")
        return echo(turn)

    async with served(engine, Watched({"x": work})) as desk:
        await desk.answered(await desk.say("x"))
        owe(desk.work.runs[-1], "tool:after")
        assert not desk.work.runs[-1].owed.waiting, "nobody takes along what comes behind the end"
    found = [(one.seq, records.decode(one.data)) for one in await engine.read("gw.>", 0, 100)]
    named = [(seq, kept.name if isinstance(kept, records.EmittedEvent) else type(kept).__name__) for seq, kept in found]
    story = [name for _, name in named if ":" in name or name in ("Claim", "LlmStep", "ClaimReleased", "TurnEnded")]
    step = ["LlmStep", "agent:start", "llm:after"]
    assert story == ["Claim", *step, "ClaimReleased", "tool:before", "Claim", "TurnEnded", "agent:end"]
    (of_step,) = [seq for seq, name in named if name == "LlmStep"]
    assert [seq for seq, name in named if name in step] == [of_step, of_step + 1, of_step + 2], "one append"


async def test_a_session_that_was_idle_too_long_begins_anew_and_the_turn_is_told(engine: Engine) -> None:
    clock, settings = SetClock(), replace(QUICK, sessions=SessionSettings(reset="idle", idle=3600))
    async with served(engine, settings=settings, clock=clock) as desk:
        first = await desk.answered(await desk.say("a"))
        clock.now += 3599
        same = await desk.answered(await desk.say("b"))
        clock.now += 3600
        other = await desk.answered(await desk.say("c"))
    assert first.session_id == same.session_id != other.session_id
    assert [entry.content for entry in other.entries] == ["c", "re c"]
    begun = [turn.session for turn in desk.work.runs if turn.begins_session]
    assert [(one.reason, one.replaced_id, one.session_id) for one in begun] == [
        ("first", "", first.session_id),
        ("idle", first.session_id, other.session_id),
    ]

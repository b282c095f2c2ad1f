"""The judges themselves: each fault that a siege looks for is found when it is there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.engine.interface import Engine, NewRecord
from gateway.messages.message import Reply
from gateway.records import records, subjects
from gateway.testing.networks.wire import Shown
from tests.adapters.telegram_wire import TelegramWire
from tests.audit import audit
from tests.chaos.daemon import Plan, Siege, doubts_about
from tests.chaos.people import Typist
from tests.engine.memory_engine import MemoryEngine
from tests.spine import key, message


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with MemoryEngine() as engine:
        yield engine


async def arrive(engine: Engine) -> int:
    inbound = records.InboundMessage(session_key=key(), message=message("x"))
    return (await engine.append(NewRecord(subjects.session_subject_of("in", key()), records.encode(inbound))))[0]


async def write(engine: Engine, *kept: records.JournalRecord) -> None:
    for one in kept:
        await engine.append(NewRecord(subjects.session_subject_of("turn", key()), records.encode(one)))


async def owe(engine: Engine, turn_id: str) -> int:
    at = message("x").address
    out = records.OwedReply(reply=Reply(f"{turn_id}:reply", at, "re"), session_key=key(), turn_id=turn_id)
    return (await engine.append(NewRecord(subjects.reply_subject_of(at, key()), records.encode(out))))[0]


def turn(name: str, on: int) -> tuple[records.Claim, records.TurnEnded]:
    return records.Claim(turn_id=name, by="n", on=on), records.TurnEnded(turn_id=name, upto=on)


async def faults(engine: Engine, *, is_sent: bool = False) -> str:
    return " ".join((await audit(engine, is_sent=is_sent)).faults)


async def test_what_is_well_has_no_faults(engine: Engine) -> None:
    seq = await arrive(engine)
    await write(engine, *turn("t", seq))
    await owe(engine, "t")
    assert await faults(engine) == ""


async def test_a_message_that_nobody_answered_is_found(engine: Engine) -> None:
    seq = await arrive(engine)
    assert "nobody ever looked at it" in await faults(engine)
    await write(engine, *turn("t", seq))
    await owe(engine, "t")
    await arrive(engine)
    assert "1 messages are not answered" in await faults(engine)


async def test_what_is_committed_twice_or_by_two_is_found(engine: Engine) -> None:
    seq = await arrive(engine)
    await write(engine, *turn("t", seq), *turn("u", seq))
    await owe(engine, "t")
    await owe(engine, "u")
    assert "an end that does not go forward" in await faults(engine)
    await write(engine, records.Claim(turn_id="v", by="n", on=seq), records.Claim(turn_id="w", by="m", on=seq))
    assert "a second turn beside an open one" in await faults(engine)


async def test_a_reply_too_few_or_too_many_is_found(engine: Engine) -> None:
    seq = await arrive(engine)
    await write(engine, *turn("t", seq))
    assert "replies [] for turns ['t']" in await faults(engine)
    await owe(engine, "t")
    await owe(engine, "t")
    assert "replies ['t', 't'] for turns ['t']" in await faults(engine)


async def test_a_reply_that_was_not_sent_is_found(engine: Engine) -> None:
    seq = await arrive(engine)
    await write(engine, *turn("t", seq))
    out = await owe(engine, "t")
    assert "has 0 ends" in await faults(engine, is_sent=True)
    sent = records.encode(records.SendSucceeded(out=out))
    where = subjects.send_subject_of(subjects.place_of(message("x").address))
    await engine.append(NewRecord(where, sent), NewRecord(where, sent))
    assert "has 2 ends" in await faults(engine, is_sent=True)


def test_what_the_network_has_twice_without_a_doubt_not_or_too_early_is_found() -> None:
    siege = Siege(Plan(1, 0, 3, 0, 0), TelegramWire(), [])
    siege.owed["1"] = ["a", "b"]

    def shown(*texts: str) -> str:
        siege.wire.shown = [Shown(str(at), "1", text) for at, text in enumerate(texts)]
        return " ".join(siege.unexplained())

    assert shown("a", "b") == ""
    assert "2 times, 0 in doubt" in shown("a", "a", "b")
    assert "owed were" in shown("b", "a")
    assert "owed were" in shown("a")
    siege.doubts["1", "a"] = 1
    assert shown("a", "a", "b") == ""


def test_a_doubt_is_a_call_whose_end_nobody_saw() -> None:
    again = records.SendFailed(out=1, error="slow down", permanent=False)
    assert doubts_about(1, [records.SendIntent(out=1), records.SendSucceeded(out=1)]) == 0
    assert (
        doubts_about(1, [records.SendIntent(out=1), again, records.SendIntent(out=1), records.SendSucceeded(out=1)])
        == 0
    )
    assert doubts_about(1, [records.SendIntent(out=1), records.SendIntent(out=1), records.SendSucceeded(out=1)]) == 1


def test_a_wrong_answer_is_none() -> None:
    siege = Siege(Plan(0, 1, 1, 0, 0), TelegramWire(), [Typist(3, Path("x"))])
    siege.typists[0].answers = {"typist3-0": {"status": "ok", "reply": "The result is 3001."}}
    assert siege.unanswered() == []
    siege.typists[0].answers = {"typist3-0": {"status": "ok", "reply": "The result is 5."}}
    assert len(siege.unanswered()) == 1

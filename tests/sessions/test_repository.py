"""The sessions: always as new as the journal, bounded in memory, written to by compare-and-set."""

import anyio
import msgspec
import pytest

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Conflict
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions import transitions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import STATE_VERSION, Session
from tests.spine import SetClock, chain, change_session

KEY = "agent:main:net:dm:1"


def done(text: str) -> records.TurnEnded:
    return records.TurnEnded(upto=0, entries=(Entry("user", text), Entry("assistant", f"re {text}")))


async def test_a_session_that_was_never_written_is_empty(engine: Engine) -> None:
    assert await SessionRepository(engine).open(KEY) == Session(KEY)


async def test_two_caches_see_each_others_records(engine: Engine) -> None:
    one, two = SessionRepository(engine), SessionRepository(engine)
    session = await one.append(await one.open(KEY), done("a"))
    assert await two.open(KEY) == session
    session = await two.append(await two.open(KEY), done("b"))
    assert await one.open(KEY) == session
    assert [entry.content for entry in session.entries] == ["a", "re a", "b", "re b"]


async def test_whoever_writes_behind_an_old_state_writes_nothing(engine: Engine) -> None:
    one, two = SessionRepository(engine), SessionRepository(engine)
    old = await two.open(KEY)
    await one.append(await one.open(KEY), done("a"))
    with pytest.raises(Conflict):
        await two.append(old, done("b"), extra=[NewRecord("gw.in.x", b"{}")])
    assert await engine.read("gw.in.x") == []
    assert len((await two.open(KEY)).entries) == 2


async def test_several_records_and_other_puts_are_one_append(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    session = await sessions.append(
        await sessions.open(KEY), transitions.change_title("a title"), done("a"), extra=[NewRecord("gw.x", b"{}")]
    )
    assert (session.title, session.records, len(await engine.read("gw.x"))) == ("a title", 2, 1)
    assert await sessions.open(KEY) == session


async def test_a_change_that_is_overtaken_is_made_on_the_newer_state(engine: Engine) -> None:
    one, two = SessionRepository(engine), SessionRepository(engine)

    def count(session: Session) -> records.TurnRecord:
        return records.SettingChanged(name="count", value=session.settings.get("count", 0) + 1)

    async with anyio.create_task_group() as tasks:
        for sessions in (one, two) * 10:
            tasks.start_soon(change_session, sessions, KEY, count)
    assert (await one.open(KEY)).settings["count"] == 20


async def test_an_append_whose_fence_elsewhere_fails_writes_nothing(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    fenced = NewRecord(subjects.session_subject_of("bell", KEY), b"{}", expect=7)
    with pytest.raises(Conflict):
        await sessions.append(await sessions.open(KEY), transitions.change_title("x"), extra=[fenced])
    assert (await sessions.open(KEY)).title == ""


async def test_a_summary_bounds_what_must_be_read_again(engine: Engine) -> None:
    sessions = SessionRepository(engine, summary_every=10)
    for number in range(25):
        session = await sessions.append(await sessions.open(KEY), done(str(number)))
    summaries = await chain(engine, subjects.session_subject_of("sum", KEY))
    assert len(summaries) == 1, "older summaries are removed"
    await engine.purge(subjects.session_subject_of("turn", KEY), summaries[0].upto)
    again = await SessionRepository(engine).open(KEY)
    assert again == session


async def test_a_summary_of_another_version_is_passed_over(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    session = await sessions.append(await sessions.open(KEY), done("a"))
    for data in (
        records.encode(records.SessionSnapshot(upto=9, shape=STATE_VERSION, state=msgspec.Raw(b'{"no": "session"}'))),
        records.encode(records.SessionSnapshot(upto=9, shape=STATE_VERSION + 1, state=msgspec.Raw(b'{"key": "x"}'))),
        b'{"kind":"summary","v":99,"upto":1,"state":{}}',
        b"not json",
    ):
        await engine.append(NewRecord(subjects.session_subject_of("sum", KEY), data))
        assert await SessionRepository(engine).open(KEY) == session


async def test_memory_is_bounded_by_what_the_transcripts_weigh(engine: Engine) -> None:
    sessions = SessionRepository(engine, budget=100_000)
    for number in range(20):
        key = f"{KEY}{number}"
        await sessions.append(await sessions.open(key), done("x" * 10_000))
    held = [int(session.key.removeprefix(KEY)) for session in sessions.known()]
    assert 0 < len(held) < 6
    assert held[-1] == 19, "those used last stay"
    assert len((await sessions.open(f"{KEY}0")).entries) == 2, "what was evicted is read again"


async def test_who_is_silent_for_long_is_evicted(engine: Engine) -> None:
    clock = SetClock()
    sessions = SessionRepository(engine, clock, idle=60)
    await sessions.open("a")
    clock.now += 61
    await sessions.open("b")
    assert [session.key for session in sessions.known()] == ["b"]


async def test_the_past_holds_every_session_of_a_key_as_it_ended(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    ids = []
    for text in ("a", "b"):
        session = await sessions.open(KEY)
        session = await sessions.append(session, transitions.begin_session(session, 1000.0, "new"), done(text))
        ids.append(session.session_id)
    past = await sessions.read_all(KEY)
    assert list(past) == ids
    assert [one.entries[0].content for one in past.values()] == ["a", "b"]
    assert session.previous == (ids[0],)

"""Finished work is removed, by its age or for want of room; unfinished work stays, however old."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from gateway.config.node_settings import JournalSettings
from gateway.engine.interface import MOST_AT_ONCE, Engine, NewRecord
from gateway.errors import SessionError
from gateway.messages.message import Attachment, Reply
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions import transitions
from gateway.sessions.removal import compact_chain, forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.retention import LONG_CHAIN, FileRetention, Retention
from gateway.sessions.search import SessionSearch
from gateway.sessions.session import Session
from tests.spine import SetClock, chain, key, message

DAY = records.DAY
NO_LIMITS = JournalSettings(retention=0, max_size=0)


class Place:
    """A journal, its sessions and index, and a clock that is set."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.engine, self.clock, self.limits = engine, SetClock(), NO_LIMITS
        self.sessions = SessionRepository(engine, self.clock)
        self.search = SessionSearch(engine, path)
        self.files = path.parent / "files"
        self.retention = Retention(engine, self.sessions, self.search, lambda: self.limits, self.clock)
        self.file_retention = FileRetention(engine, (self.files,), self.clock)

    async def talk(self, chat: str, text: str, *, new: bool = False) -> Session:
        said = message(text, chat)
        inbound = records.encode(records.InboundMessage(session_key=key(chat), message=said))
        (seq,) = await self.engine.append(NewRecord(subjects.session_subject_of("in", key(chat)), inbound))
        session = await self.sessions.open(key(chat))
        begins = new or not session.session_id
        opened = [transitions.begin_session(session, self.clock(), "new", message=said)] if begins else []
        done = records.TurnEnded(upto=seq, entries=(Entry("user", text), Entry("assistant", f"re {text}")))
        claim = records.Claim(turn_id=f"t{seq}", by="n", on=seq)
        return await self.sessions.append(session, *opened, claim, done)

    async def listed(self) -> set[str]:
        return {row.session_key for row in await self.search.list_sessions(limit=1000)}

    async def words(self) -> bytes:
        return b" ".join([record.data for record in await self.engine.read(">", 0, 10_000)])


@pytest.fixture
async def place(engine: Engine, tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(engine, tmp_path / "search.db")
    yield place
    await place.search.close()


async def test_what_nobody_used_for_long_is_forgotten_and_the_rest_stays(place: Place) -> None:
    await place.talk("old", "swordfish")
    place.clock.now += 60 * DAY
    await place.talk("new", "kept")
    place.clock.now += 40 * DAY
    place.limits = replace(NO_LIMITS, retention=90 * DAY)
    assert await place.retention.run_once() == 1
    assert await place.listed() == {key("new")}
    assert b"swordfish" not in await place.words()
    assert b"kept" in await place.words()
    assert await place.retention.run_once() == 0


async def test_no_age_no_size_nothing_goes(place: Place) -> None:
    await place.talk("old", "kept")
    place.clock.now += 1000 * DAY
    assert await place.retention.run_once() == 0
    assert await place.listed() == {key("old")}


async def test_an_old_session_under_a_key_goes_and_the_present_one_goes_on(place: Place) -> None:
    old = await place.talk("1", "swordfish")
    place.clock.now += 50 * DAY
    now = await place.talk("1", "kept", new=True)
    place.clock.now += 50 * DAY
    place.limits = replace(NO_LIMITS, retention=90 * DAY)
    assert await place.retention.run_once() == 1
    assert b"swordfish" not in await place.words()
    session = await place.sessions.open(key())
    assert (session.session_id, session.entries, session.upto) == (now.session_id, now.entries, now.upto)
    assert list(await place.sessions.read_all(key())) == [now.session_id]
    assert old.session_id != now.session_id


async def test_what_waits_or_is_under_way_stays_however_old(place: Place) -> None:
    await place.talk("asked", "may I")
    asked = await place.sessions.open(key("asked"))
    claim = records.Claim(turn_id="q", by="n", on=99)
    question = records.QuestionsAsked(turn_id="q", questions={"ok": "ok?"}, until=0.0)
    await place.sessions.append(asked, claim, question)
    await place.talk("waits", "done")
    waiting = records.encode(records.InboundMessage(session_key=key("waits"), message=message("answer me", "waits")))
    await place.engine.append(NewRecord(subjects.session_subject_of("in", key("waits")), waiting))
    place.clock.now += 1000 * DAY
    place.limits = replace(NO_LIMITS, retention=90 * DAY)
    await place.retention.run_once()
    assert (await place.sessions.open(key("asked"))).is_waiting
    assert [one.message.text for one in await chain(place.engine, subjects.session_subject_of("in", key("waits")))] == [
        "answer me"
    ]


async def test_near_the_bound_the_longest_silent_go_first_and_only_as_many_as_must(place: Place) -> None:
    for number in range(120):
        await place.talk(str(number), f"{number:03} " + "x" * 900)
        place.clock.now += DAY
    full = (await place.engine.health()).size
    place.limits = replace(NO_LIMITS, max_size=int(full * 1.05))
    gone = await place.retention.run_once()
    assert 0 < gone < 120
    left = await place.listed()
    assert left == {key(str(number)) for number in range(gone, 120)}
    assert place.retention.trouble == ""


async def test_where_nothing_is_old_enough_it_says_what_to_do(place: Place) -> None:
    for number in range(30):
        await place.talk(str(number), "x" * 900)
    place.limits = replace(NO_LIMITS, max_size=(await place.engine.health()).size)
    assert await place.retention.run_once() == 0
    assert "raise journal.max_size" in place.retention.trouble
    place.limits = NO_LIMITS
    await place.retention.run_once()
    assert place.retention.trouble == ""


async def test_a_shortened_chain_says_the_same(place: Place) -> None:
    """The session, the earlier ones, the index and what was answered are as before; the claims are gone."""
    first = await place.talk("1", "first")
    for number in range(20):
        await place.talk("1", f"more {number}", new=number == 0)
    before, found = await place.sessions.open(key()), await place.search.find("more")
    rows, counted = await place.search.list_sessions(), await place.search.statistics()
    assert await compact_chain(place.engine, place.sessions, key())
    assert len(await chain(place.engine, subjects.session_subject_of("turn", key()))) == 3
    for sessions in (place.sessions, SessionRepository(place.engine)):
        after = await sessions.open(key())
        same = ("session_id", "entries", "turns", "upto", "bag", "settings", "usage", "began", "last_active", "user_id")
        assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
        past = await sessions.read_all(key())
        assert past[first.session_id].entries == first.entries
    assert (await place.search.find("more"), await place.search.list_sessions()) == (found, rows)
    assert await place.search.statistics() == counted
    await place.search.rebuild()
    assert {hit.session_id for hit in await place.search.find("first")} == {first.session_id}
    assert await place.search.list_sessions() == rows


async def test_a_long_chain_is_shortened_by_itself(place: Place) -> None:
    session = await place.talk("1", "hello")
    for start in range(0, LONG_CHAIN, MOST_AT_ONCE):
        numbers = range(start, start + MOST_AT_ONCE)
        changed = [records.SettingChanged(name="title", value=f"t{number}") for number in numbers]
        session = await place.sessions.append(session, *changed)
    await place.retention.run_once()
    assert len(await chain(place.engine, subjects.session_subject_of("turn", key()))) == 2
    now = await place.sessions.open(key())
    assert (now.title, now.entries) == (session.title, session.entries)
    await place.talk("1", "and on")
    assert (await SessionRepository(place.engine).open(key())).entries[-1].content == "re and on"


async def test_more_sessions_than_are_written_at_once_go_all_or_none(place: Place) -> None:
    session = await place.talk("1", "swordfish")
    first = session.session_id
    for _ in range(MOST_AT_ONCE):
        opened = transitions.begin_session(session, place.clock(), "new")
        session = await place.sessions.append(session, opened)
    assert not await compact_chain(place.engine, place.sessions, key())
    with pytest.raises(SessionError, match="too many to be written anew at once"):
        await forget_sessions(place.engine, place.sessions, key(), first)
    assert await place.sessions.open(key()) == session
    assert await forget_sessions(place.engine, place.sessions, key())
    assert b"swordfish" not in await place.words()


async def test_a_chain_is_not_shortened_under_a_turn(place: Place) -> None:
    session = await place.talk("1", "hello")
    await place.sessions.append(session, records.Claim(turn_id="t", by="n", on=99))
    assert not await compact_chain(place.engine, place.sessions, key())


async def test_what_hooks_are_owed_of_a_forgotten_conversation_goes_with_it(place: Place, tmp_path: Path) -> None:
    """Events, dead letters of hooks, and the files that came with its messages."""
    file = anyio.Path(tmp_path / "photo.jpg")
    await file.write_bytes(b"x")
    said = message("swordfish", attachments=(Attachment("image", str(file)),))
    inbound = records.encode(records.InboundMessage(session_key=key(), message=said))
    await place.engine.append(NewRecord(subjects.session_subject_of("in", key()), inbound))

    def event(of: str, text: str) -> bytes:
        return records.encode(records.EmittedEvent(name="message:sent", fields={"session_key": of, "text": text}))

    dead = records.DeadLetterRecord(
        what="x", reason="y", attempts=4, subject="s", seq=1, data=event(key(), "swordfish")
    )
    puts: list[Any] = [
        NewRecord("gw.ev.message.sent", event(key(), "swordfish")),
        NewRecord("gw.ev.message.sent", event("other", "kept")),
        NewRecord("gw.dead.hook.1", records.encode(dead)),
        NewRecord("gw.out.net.place." + subjects.token_of(key()), records.encode(owed(said.address))),
    ]
    await place.engine.append(*puts)
    assert await forget_sessions(place.engine, place.sessions, key())
    assert b"swordfish" not in await place.words()
    assert b"kept" in await place.words()
    assert not await file.exists()


async def test_files_that_came_with_messages_go_when_these_do(place: Place) -> None:
    file = anyio.Path(place.files / "net" / "photo.jpg")
    await file.parent.mkdir(parents=True)
    await file.write_bytes(b"x")
    await place.file_retention.run_once()
    assert await file.exists()
    place.clock.now += records.TRAFFIC_TTL + 60
    await place.file_retention.run_once()
    assert not await file.exists()


async def test_in_the_folder_of_a_conversation_what_came_in_goes_and_what_was_written_stays(place: Place) -> None:
    own = anyio.Path(place.files / "net" / "1")
    await own.mkdir(parents=True)
    came, written, link = own / f"{subjects.token_of('x')}.jpg", own / "notes.txt", own.parent / "old.jpg"
    for file in (came, written):
        await file.write_bytes(b"x")
    await link.symlink_to(came)
    await place.file_retention.run_once()
    assert await came.exists()
    place.clock.now += records.TRAFFIC_TTL + 60
    for _ in range(2):
        await place.file_retention.run_once()
    assert [await file.exists() for file in (came, written)] == [False, True]
    assert not await link.is_symlink()


async def test_a_file_that_was_moved_goes_with_the_conversation_it_went_to(place: Place) -> None:
    old = anyio.Path(place.files / "net" / f"{subjects.token_of('x')}.jpg")
    said = message("look", attachments=(Attachment("image", str(old)),))
    own = anyio.Path(said.address.find_folder(place.files, said.user_id))
    other = old.parent / "chat.2"
    for folder in (own, other):
        await folder.mkdir(parents=True)
        await (folder / old.name).write_bytes(b"x")
    await old.symlink_to(own / old.name)
    inbound = records.encode(records.InboundMessage(session_key=key(), message=said))
    await place.engine.append(NewRecord(subjects.session_subject_of("in", key()), inbound))
    assert await forget_sessions(place.engine, place.sessions, key())
    assert not await (own / old.name).exists()
    assert not await old.is_symlink()
    assert await (other / old.name).exists()


def owed(address: Any) -> records.OwedReply:
    return records.OwedReply(reply=Reply("r", address, "swordfish"), session_key=key())

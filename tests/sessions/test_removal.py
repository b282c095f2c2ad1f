"""Forgetting: the words are gone, and what was answered is not answered again."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import SessionError
from gateway.messages.message import Reply
from gateway.messages.steps import ToolFinished
from gateway.messages.transcript import Entry, Picture
from gateway.records import records, subjects
from gateway.sessions import transitions
from gateway.sessions.removal import forget_sessions, rewrite_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from tests.spine import chain, key, message

SECRET = "the password is swordfish"


async def spoken(engine: Engine, sessions: SessionRepository, text: str) -> Session:
    """A new session with one turn: message, what was heard in it, answer in the chain, reply, a dead letter."""
    said = message(text)
    inbound = records.encode(records.InboundMessage(session_key=key(), message=said))
    (seq,) = await engine.append(NewRecord(subjects.session_subject_of("in", key()), inbound))
    out = records.OwedReply(reply=Reply("r", said.address, text), session_key=key())
    dead = records.DeadLetterRecord(what="x", reason="y", attempts=3, subject="s", seq=1, data=text.encode())
    session = await sessions.open(key())
    opened = transitions.begin_session(session, 0.0, "new", message=said)
    done = records.TurnEnded(upto=seq, entries=(Entry("user", text),))
    heard = records.AudioTranscription(session_key=key(), on=seq, state="done", text=text)
    extra = [
        NewRecord(subjects.session_subject_of("audio", key()), records.encode(heard)),
        NewRecord(subjects.reply_subject_of(said.address, key()), records.encode(out)),
        NewRecord(subjects.session_subject_of("dead.turns", key()), records.encode(dead)),
    ]
    return await sessions.append(session, opened, done, extra=extra)


async def test_all_words_under_a_key_go_and_no_message_waits_again(engine: Engine) -> None:
    sessions = SessionRepository(engine, summary_every=1)
    before = await spoken(engine, sessions, SECRET)
    waiting = records.encode(records.InboundMessage(session_key=key(), message=message(SECRET)))
    (newest,) = await engine.append(NewRecord(subjects.session_subject_of("in", key()), waiting))
    assert await forget_sessions(engine, sessions, key())
    assert not [record for record in await engine.read(">", 0, 1000) if b"swordfish" in record.data]
    for session in (await sessions.open(key()), await SessionRepository(engine).open(key())):
        assert (session.session_id, session.entries, session.upto) == ("", (), newest)
        assert session.seq > before.seq


async def test_the_other_conversations_stay(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    other = await sessions.append(Session("other"), records.TurnEnded(upto=1, entries=(Entry("user", "keep me"),)))
    await spoken(engine, sessions, SECRET)
    await forget_sessions(engine, sessions, key())
    assert await SessionRepository(engine).open("other") == other


async def test_one_earlier_session_goes_and_the_others_stay_resumable(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    first = await spoken(engine, sessions, "first")
    secret = await spoken(engine, sessions, SECRET)
    third = await spoken(engine, sessions, "third")
    assert await forget_sessions(engine, sessions, key(), secret.session_id)
    assert not [record for record in await engine.read(">", 0, 1000) if b"swordfish" in record.data]
    again = SessionRepository(engine)
    now = await again.open(key())
    assert (now.session_id, now.entries, now.upto) == (third.session_id, third.entries, third.upto)
    past = await again.read_all(key())
    assert list(past) == [first.session_id, third.session_id]
    assert past[first.session_id].entries == first.entries


async def test_hooks_are_still_owed_the_events_of_the_sessions_that_stay(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    first = await spoken(engine, sessions, SECRET)
    second = await spoken(engine, sessions, "second")
    for session in (first, second):
        fields = {"session_key": key(), "session_id": session.session_id, "response": session.entries[-1].content}
        event = records.EmittedEvent(name="agent:end", fields=fields)
        data = records.encode(event)
        lost = records.DeadLetterRecord(what="x", reason="y", attempts=3, subject="s", seq=1, data=data)
        await engine.append(NewRecord(subjects.owed_event_subject_of(event.name, key()), data))
        await engine.append(records.make_event_put(event))  # as 0.1 wrote it
        await engine.append(NewRecord("gw.dead.hooks.x", records.encode(lost)))
    assert await forget_sessions(engine, sessions, key(), first.session_id)
    owed = [await chain(engine, pattern) for pattern in (subjects.EVENT_SUBJECTS, subjects.OWED_EVENT_SUBJECTS)]
    dead: list[Any] = [records.decode(lost.data) for lost in await chain(engine, "gw.dead.hooks.*")]
    assert [[event.fields["response"] for event in events] for events in (*owed, dead)] == [["second"]] * 3


async def test_when_the_current_session_goes_a_new_one_begins(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    first = await spoken(engine, sessions, "first")
    secret = await spoken(engine, sessions, SECRET)
    assert await forget_sessions(engine, sessions, key(), secret.session_id)
    now = await sessions.open(key())
    assert now.session_id not in ("", first.session_id, secret.session_id)
    assert now.entries == ()


async def test_what_is_not_there_cannot_be_forgotten(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    assert not await forget_sessions(engine, sessions, key())
    await spoken(engine, sessions, "x")
    assert not await forget_sessions(engine, sessions, key(), "20200101_000000_none")
    assert await chain(engine, subjects.session_subject_of("turn", key()))


async def test_one_session_is_not_cut_out_while_a_turn_runs(engine: Engine) -> None:
    sessions = SessionRepository(engine)
    first = await spoken(engine, sessions, "first")
    await sessions.append(await sessions.open(key()), records.Claim(turn_id="t", by="n", on=9))
    with pytest.raises(SessionError, match="stop it first"):
        await forget_sessions(engine, sessions, key(), first.session_id)
    assert await forget_sessions(engine, sessions, key())
    assert (await sessions.open(key())).turn is None


async def test_the_pictures_that_tools_gave_go_with_their_sessions(engine: Engine, tmp_path: Path) -> None:
    """Not those of the sessions that stay, even where the one that goes had the same."""
    sessions = SessionRepository(engine)
    folder = tmp_path / "files"
    folder.mkdir()
    gone, shared, kept = (folder / f"{sign * 24}.png" for sign in "abc")
    for path in (gone, gone.with_name(f"{gone.stem}-1.jpg"), shared, kept):
        await anyio.Path(path).write_bytes(b"a picture")
    opened: list[Session] = []
    for paths in ((gone, shared), (shared, kept)):
        parts = [Picture("image", str(path), "d", 1, "image/png") for path in paths]
        drawn = tuple(Entry("tool", "drawn", call_id="c", name="draw", parts=(part,)) for part in parts)
        before = await sessions.open(key())
        begun = transitions.begin_session(before, 0.0, "new", message=message("draw"))
        step = ToolFinished(turn_id="t", call_id="c", entry=drawn[0])
        opened.append(await sessions.append(before, begun, step, records.TurnEnded(upto=1, entries=drawn)))
    assert await forget_sessions(engine, sessions, key(), opened[0].session_id)
    assert sorted(list_names(folder)) == [shared.name, kept.name]
    assert await rewrite_sessions(engine, sessions, key(), lambda old: replace(old, entries=(), turns=(), speakers=()))
    assert list_names(folder) == []


def list_names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]

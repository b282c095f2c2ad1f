"""A message deleted by its author disappears everywhere, and nothing else does, whenever the process ends."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.engine.interface import Engine, NewRecord
from gateway.messages.message import Address, Attachment, Message
from gateway.messages.pieces import DELETED, MessageName, find_pieces, name_of
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions import transitions
from gateway.sessions.deleted_messages import DeletedMessages
from gateway.sessions.removal import compact_chain
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionSearch
from tests.spine import key

WORD = "swordfish"
AT = Address("net", "room")


def said(number: str, text: str, by: str = "1", *files: Attachment) -> Message:
    return Message(number, AT, by, text, attachments=files)


@pytest.fixture
def sessions(engine: Engine) -> SessionRepository:
    return SessionRepository(engine)


@pytest.fixture
async def search(engine: Engine, tmp_path: Path) -> AsyncIterator[SessionSearch]:
    search = SessionSearch(engine, tmp_path / "search.db")
    yield search
    await search.close()


@pytest.fixture
def deletions(engine: Engine, sessions: SessionRepository, search: SessionSearch) -> DeletedMessages:
    async def list_open() -> list[str]:
        return [key()]

    return DeletedMessages(engine, sessions, search.find_message, list_open)


async def take(engine: Engine, *messages: Message) -> int:
    """Append the messages, with their pending events; returns the last sequence."""
    seq = 0
    for one in messages:
        inbound = records.encode(records.InboundMessage(session_key=key(), message=one))
        where = {"platform": AT.platform, "chat_id": AT.chat_id, "message_id": one.id, "turn_id": "t"}
        event = records.EmittedEvent(name="message:received", fields={**where, "text": one.text})
        owed = records.make_owed_event_put("message:received", records.encode(event), key())
        (seq, _) = await engine.append(NewRecord(subjects.session_subject_of("in", key()), inbound), owed)
    return seq


async def answer(engine: Engine, sessions: SessionRepository, *messages: Message) -> None:
    """One turn that answers them, from its claim to its end."""
    upto, text = await take(engine, *messages), "\n\n".join(one.text for one in messages)
    session = await sessions.open(key())
    if not session.session_id:
        session = await sessions.append(session, transitions.begin_session(session, 0.0, message=messages[0]))
    session = await sessions.append(session, records.Claim(turn_id="t", by="node", on=upto))
    entries = (Entry("user", text), Entry("assistant", "well"))
    pieces = find_pieces(messages, text)
    await sessions.append(session, records.TurnEnded(upto=upto, turn_id="t", entries=entries, pieces=pieces))


async def holding(engine: Engine, word: str = WORD) -> list[str]:
    """The subjects of records with this word in them."""
    return [one.subject.split(".")[1] for one in await engine.read(">", 0, 1000) if word.encode() in one.data]


async def test_of_several_that_one_turn_answered_one_goes(
    engine: Engine, sessions: SessionRepository, search: SessionSearch, deletions: DeletedMessages
) -> None:
    secret, other = said("5", f"it is {WORD}"), said("6", "what was it?")
    await answer(engine, sessions, secret, other)
    assert await search.find(WORD)
    assert await deletions.delete(name_of(secret))
    for one in ((await sessions.open(key())), (await SessionRepository(engine).open(key()))):
        assert one.entries == (Entry("user", f"{DELETED}\n\nwhat was it?"), Entry("assistant", "well"))
    assert not await search.find(WORD)
    assert [hit.snippet for hit in await search.find("what")] == [f"{DELETED} what was it?"]
    assert await holding(engine) == ["turn"]  # until the chain is written anew
    assert len(await holding(engine, "what was it?")) == 3  # as it came in, what is owed of it, the chain
    assert await compact_chain(engine, sessions, key())
    assert not await holding(engine)
    assert (await SessionRepository(engine).open(key())).entries[0].content == f"{DELETED}\n\nwhat was it?"


@pytest.mark.parametrize(
    ("name", "by"),
    [
        (MessageName("net", "other room", "5"), ""),
        (MessageName("web", "room", "5"), ""),
        (MessageName("net", "room", "55"), ""),
        (MessageName("net", "room", "5"), "net:2"),
    ],
    ids=["another chat", "another network", "another message", "somebody else's"],
)
async def test_it_is_believed_of_that_authors_message_in_that_chat_alone(
    engine: Engine, sessions: SessionRepository, deletions: DeletedMessages, name: MessageName, by: str
) -> None:
    await answer(engine, sessions, said("5", f"it is {WORD}"))
    before = await holding(engine)
    assert not await deletions.delete(name, by)
    assert await holding(engine) == before
    assert await deletions.delete(MessageName("net", "room", "5"), "net:1")


async def test_it_goes_with_its_edits_its_audio_and_its_files(
    engine: Engine, sessions: SessionRepository, deletions: DeletedMessages, tmp_path: Path
) -> None:
    note = tmp_path / "net" / "1" / "note.ogg"
    note.parent.mkdir(parents=True)
    note.write_bytes(b"ogg")
    voiced = said("5", WORD, "1", Attachment("voice", str(note), "note.ogg", "audio/ogg", 3))
    on = await take(engine, voiced)
    heard = records.AudioTranscription(session_key=key(), on=on, state="done", text=WORD)
    await engine.append(NewRecord(subjects.session_subject_of("audio", key()), records.encode(heard)))
    await answer(engine, sessions, said("5:edit9", f"no, {WORD}!"))
    assert await deletions.delete(name_of(voiced))
    assert await holding(engine) == ["turn"]
    assert not note.exists()
    assert (await sessions.open(key())).entries[0].content == DELETED


async def test_what_is_taken_back_while_its_turn_runs_is_not_in_what_that_leaves(
    engine: Engine, sessions: SessionRepository, search: SessionSearch, deletions: DeletedMessages
) -> None:
    secret = said("5", WORD)
    upto = await take(engine, secret)
    begun = transitions.begin_session(await sessions.open(key()), 0.0, message=secret)
    session = await sessions.append(await sessions.open(key()), begun, records.Claim(turn_id="t", by="n", on=upto))
    assert await deletions.delete(name_of(secret))
    session = await sessions.open(key())
    assert session.turn  # it goes on
    assert not await search.find(WORD)  # which has read until here
    done = records.TurnEnded(upto=upto, turn_id="t", entries=(Entry("user", WORD),), pieces=find_pieces([secret], WORD))
    assert (await sessions.append(session, done)).entries == (Entry("user", DELETED),)
    assert not await search.find(WORD)
    assert await search.find("deleted")


async def test_what_was_carried_into_another_conversation_goes_there_too(
    engine: Engine, sessions: SessionRepository, deletions: DeletedMessages
) -> None:
    secret = said("5", WORD)
    await answer(engine, sessions, secret)
    here, elsewhere = await sessions.open(key()), await sessions.open("agent:main:net:dm:9")
    await sessions.append(elsewhere, transitions.branch_session(elsewhere, here, 1.0))
    await sessions.append(here, transitions.begin_session(here, 2.0, "new"))
    assert await deletions.delete(name_of(secret))
    told = [*(await sessions.read_all(key())).values(), await sessions.open("agent:main:net:dm:9")]
    assert [one.entries[0].content for one in told if one.entries] == [DELETED, DELETED]


async def test_a_crash_behind_the_record_is_made_good_by_whoever_reads_it(
    engine: Engine, sessions: SessionRepository, search: SessionSearch
) -> None:
    secret = said("5", WORD)
    await answer(engine, sessions, secret)
    await search.find(WORD)
    gone = records.MessageDeleted(session_key=key(), name=name_of(secret))
    await sessions.append(await sessions.open(key()), gone)
    assert not await search.find(WORD)
    assert await holding(engine) == ["turn"]


async def test_a_summary_that_may_quote_it_is_made_anew(
    engine: Engine, sessions: SessionRepository, deletions: DeletedMessages
) -> None:
    secret, later = said("5", WORD), said("6", "and then?")
    await answer(engine, sessions, secret)
    session = await sessions.open(key())
    bag = {"summary": {"upto": 2, "text": f"they said {WORD}"}, "mine": 1}
    await sessions.append(session, records.TurnEnded(upto=session.upto, bag=bag))
    await answer(engine, sessions, later)
    await deletions.delete(name_of(later))
    assert "summary" in (await sessions.open(key())).bag
    await deletions.delete(name_of(secret))
    assert (await sessions.open(key())).bag == {"mine": 1}

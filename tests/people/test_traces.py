"""The owner of a conversation or a record, by their names."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gateway.agent.toolbox.memory import FileMemory
from gateway.engine.interface import Engine
from gateway.errors import AccessError
from gateway.files.agent_folders import HomeFolders
from gateway.messages.files import HomeFiles
from gateway.messages.message import Address, HeardWords, Message
from gateway.messages.pieces import OF_OTHERS, find_pieces, quote_heard
from gateway.messages.transcript import Entry
from gateway.people.person import Person, parse_person
from gateway.people.traces import PersonTraces, is_direct, is_of, pick_turns
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionSearch
from gateway.sessions.session import Session
from gateway.sessions.transitions import begin_session
from tests.spine import engine

__all__ = ["engine"]

CALL = records.ProgramCall(id="c", key="telegram", agent="main", session_key="s", digest="d", user="1")


ANN = Person("telegram", "1002")
CALLER = Person("api", "notes:ann")


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        ("agent:main:telegram:dm:1002", True),
        ("agent:main:api:call:notes:0af1", True),
        ("agent:main:telegram:group:-5", False),
        ("agent:main:telegram:group:-5:1002", False),
        ("agent:main:slack:thread:C1:17.5", False),
    ],
)
def test_a_conversation_is_with_one_person_or_with_several(key: str, is_one: bool) -> None:
    assert is_direct(key) is is_one


@pytest.mark.parametrize(
    ("person", "key", "begun_by", "spoke", "found"),
    [
        (ANN, "agent:main:telegram:dm:1002", "1002", "telegram:1002", "own"),
        (ANN, "agent:main:telegram:dm:1002", "", "", "own"),
        (ANN, "agent:main:telegram:dm:D7", "1002", "telegram:1002", "own"),
        (ANN, "agent:main:telegram:dm:D7", "1001", "telegram:1001", ""),
        (ANN, "agent:main:telegram:dm:7:1002", "1001", "telegram:1001", ""),
        (ANN, "agent:main:telegram:group:-5:1002", "1002", "telegram:1002", "own"),
        (ANN, "agent:main:telegram:group:-5:1002", "1002", "", "own"),
        (ANN, "agent:main:telegram:forum:-5:1002", "1002", "telegram:1001", ""),
        (ANN, "agent:main:telegram:forum:-5:1002", "1001", "telegram:1002", "shared"),
        (ANN, "agent:main:telegram:group:-5", "1002", "telegram:1002", "shared"),
        (CALLER, "agent:main:api:dm:notes:ann", "notes:ann", "api:notes:ann", "own"),
        (CALLER, "agent:main:api:dm:other:notes:ann", "other:notes:ann", "api:other:notes:ann", ""),
    ],
)
async def test_a_conversation_is_that_of_whom_it_was_with(
    engine: Engine, tmp_path: Path, person: Person, key: str, begun_by: str, spoke: str, found: str
) -> None:
    """Ids of people, chats, threads and of programs' users come from elsewhere, and may be alike."""
    sessions, search = SessionRepository(engine), SessionSearch(engine, tmp_path / "search.db")
    said = Message("1", Address(person.platform, "1"), begun_by, "")
    session = await sessions.open(key)
    session = await sessions.append(session, begin_session(session, 1.0, message=said))
    people = (spoke,) if spoke else ()
    await sessions.append(session, records.TurnEnded(upto=0, entries=(Entry("user", "hi"),), people=people, at=1.0))
    traces = PersonTraces(engine, sessions, search, FileMemory(tmp_path), tmp_path, HomeFiles(tmp_path), HomeFolders())
    conversations = await traces.find_conversations(person)
    assert (conversations.own, conversations.shared) == ((key,) * (found == "own"), (key,) * (found == "shared"))
    await search.close()


@pytest.mark.parametrize("written", ["nobody", ":5", "telegram:", "../../tele*:5", "a/b:5", "telegram:" + "5" * 300])
def test_what_is_nobodys_id_is_said(written: str) -> None:
    with pytest.raises(AccessError, match="is not an id"):
        parse_person(written)


def test_a_call_is_that_of_the_programs_user_and_of_nobody_who_is_called_so_elsewhere() -> None:
    assert is_of(CALL, Person("api", "telegram:1"))
    assert not is_of(CALL, Person("web", "telegram:1"))
    assert is_of(msgspec.structs.replace(CALL, user=""), Person("api", "telegram"))


def test_what_was_heard_is_that_of_whoever_said_it() -> None:
    heard = records.AudioTranscription(session_key="s", on=1, state="done", text="hi", person="telegram:5")
    assert is_of(heard, Person("telegram", "5"))
    assert not is_of(heard, Person("telegram", "6"))


def test_a_webhook_is_found_by_the_name_that_usage_shows() -> None:
    webhook = parse_person("webhook:issues")
    assert (str(webhook), webhook.payers) == ("internal:webhook:issues", ("internal:webhook:issues", "webhook:issues"))
    assert parse_person("telegram:5").payers == ("telegram:5",)


def test_who_called_gets_their_own_words_and_the_answer_not_what_others_said_before() -> None:
    said = Message("2", Address("telegram", "-5", "group"), "1002", "what is it?")
    heard = HeardWords("1", "1003", "Ben", "mellon")
    told = replace(said, heard=(heard,))
    asked = f"{quote_heard(said.address, [heard])[0]}what is it?"
    entries, pieces = (Entry("user", asked), Entry("assistant", "It is 42.")), find_pieces([told], asked)
    session = Session("s", entries=entries, turns=(2,), speakers=(("telegram:1002",),), pieces=(pieces,))
    question, answer = pick_turns(session, ANN).entries
    assert question.content == asked.replace("mellon", OF_OTHERS)
    assert answer.content == "It is 42."
    assert pick_turns(session, Person("telegram", "1003")).entries == (Entry("user", "mellon"),)

"""A person's traces in the gateway, and their places: display, export and forgetting use this list.

A conversation is a person's own if no one else spoke in it. In a group conversation their turns are theirs, as far as
the journal names the authors: records of an older version do not.
"""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gateway.access.access_control import API, INTERNAL
from gateway.agent.toolbox.memory import Memory
from gateway.config.settings import MAIN
from gateway.engine.interface import Engine, Record
from gateway.errors import EngineTooNew
from gateway.files.agent_folders import HomeFolders, make_chat_folder
from gateway.files.folders import FOLDER, escape_id
from gateway.messages.files import HomeFiles
from gateway.messages.message import CHAT_TYPES, SHARED_CHATS
from gateway.messages.pieces import OF_OTHERS, MessagePiece, delete_pieces
from gateway.messages.transcript import Entry
from gateway.people.person import WEBHOOK, Person
from gateway.records import records, subjects
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionSearch, Speaker
from gateway.sessions.session import Session
from gateway.threads import run_in_thread

# Subjects with records of one person each. The chains of conversations are rewritten instead.
SUBJECTS = (
    subjects.IN_SUBJECTS,
    subjects.AUDIO_SUBJECTS,
    subjects.HEARD_SUBJECTS,
    subjects.QUIET_SUBJECTS,
    subjects.VOICE_SUBJECTS,
    subjects.UPDATE_SUBJECTS,
    subjects.OUT_SUBJECTS,
    subjects.APPROVAL_SUBJECTS,
    subjects.CALL_SUBJECTS,
    subjects.CHAT_SUBJECTS,
    subjects.NAME_SUBJECTS,
    subjects.EVENT_SUBJECTS,
    subjects.OWED_EVENT_SUBJECTS,
    subjects.RETRY_SUBJECTS,
    subjects.DEAD_SUBJECTS,
    subjects.hook_store_subject_of(subjects.REMINDERS),
    subjects.hook_store_subject_of(subjects.JOBS),
    subjects.MOMENT_SUBJECTS,
)

SessionTurn: TypeAlias = tuple[tuple[Entry, ...], tuple[str, ...], tuple[MessagePiece, ...]]


class PersonSessions(msgspec.Struct, frozen=True):
    """The session keys in which a person spoke.

    `unclear`: turns in group conversations without recorded authors, by key.
    """

    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    unclear: Mapping[str, int] = {}


class PersonTraces(msgspec.Struct, eq=False):
    """Finds the traces. Nothing is cached: the journal and the files are read each time."""

    engine: Engine
    sessions: SessionRepository
    search: SessionSearch
    memory: Memory
    files: Path
    shared: HomeFiles
    folders: HomeFolders

    async def list_speakers(self) -> Mapping[Person, Speaker]:
        """Return the people who started conversations, latest first."""
        return {Person(one.platform, one.user_id): one for one in await self.search.list_speakers()}

    async def find_conversations(self, person: Person) -> PersonSessions:
        rows = await self.search.list_sessions(platform=person.platform, limit=-1)
        own, shared, unclear = list[str](), list[str](), dict[str, int]()
        for key in dict.fromkeys(one.session_key for one in rows):
            begun_by = {one.user_id for one in rows if one.session_key == key}
            if is_direct(key):
                if person.user_id in begun_by or is_direct_with(key, person):
                    own.append(key)
                continue  # otherwise it belongs to another person
            past = await self.read_sessions(key)
            turns = [people for old in past for people in old.speakers]
            heard = {one for people in turns for one in people}
            # If each person has a conversation of their own, its key ends so; a thread may have the same name by
            # chance.
            if key.endswith(f":{person.user_id}") and begun_by <= {person.user_id, ""} and heard <= {str(person)}:
                own.append(key)
                continue
            is_shown = any(is_in_turn(person, turn) for old in past for turn in split_turns(old))
            if is_shown or await self._is_in_chain(key, person):
                shared.append(key)
            if lost := turns.count(()):
                unclear[key] = lost
        return PersonSessions(tuple(own), tuple(shared), unclear)

    async def _is_in_chain(self, key: str, person: Person) -> bool:
        """Return True if the chain has turns of theirs that no session shows: undone, cancelled, denied, or running."""
        conv = subjects.token_of(key)
        if await self._has_record(conv, "turn", 0, lambda kept: is_in_record(person, kept)):
            return True
        session = await self.sessions.open(key)
        if session.turn is None:
            return False
        if await self._has_record(conv, "in", session.upto, lambda kept: is_of(kept, person)):
            return True
        return await self._has_record(conv, "heard", 0, lambda kept: is_of(kept, person))

    async def _has_record(
        self, conv: str, kind: subjects.SessionSubject, after: int, is_meant: Callable[[records.JournalRecord], bool]
    ) -> bool:
        subject = subjects.session_subject_of_token(kind, conv)
        async for _, kept in records.read_all(self.engine, subject, records.JournalRecord, after):
            if is_meant(kept):
                return True
        return False

    async def read_sessions(self, key: str) -> list[Session]:
        return [*(await self.sessions.read_all(key)).values()]

    async def read_records(self, person: Person) -> AsyncIterator[tuple[Record, records.JournalRecord]]:
        """Yield each record that belongs to them alone."""
        for pattern in SUBJECTS:
            after = 0
            while page := await records.read_readable(self.engine, pattern, after, records.PAGE):
                after = page[-1].seq
                for record in page:
                    if (kept := _decode(record.data)) and is_of(kept, person):
                        yield record, kept

    async def fetch_files(self, person: Person) -> list[Path]:
        """Return the files of their own folders, with those that other gateways received or wrote.

        Raises:
            EngineError: the store does not answer.
        """
        store = self.engine.files
        for one in await store.list() if store else ():
            if self.is_folder_of(person, *one.key.split("/")[:2]):
                await self.shared.find(str(self.files / one.key))
        await self.folders.take(*[make_chat_folder(self.files / key) for key in await self.list_shared(person)])
        return await run_in_thread(self.list_files, person)

    async def list_shared(self, person: Person) -> list[str]:
        """List their own folders with shared files, by their paths below the folder of all files."""
        names = [name.partition("/") for name in await self.folders.list_names()]
        return [key for begin, _, key in names if begin == FOLDER and self.is_folder_of(person, *key.split("/")[:2])]

    async def forget_shared(self, person: Person) -> None:
        """Forget the shared contents of their own folders."""
        for key in await self.list_shared(person):
            await self.folders.forget(f"{FOLDER}/{key}")

    def list_files(self, person: Person) -> list[Path]:
        """List the files of their own folders."""
        found = (path for folder in self.find_folders(person) for path in sorted(folder.rglob("*")))
        return [path for path in found if path.is_file() and not path.is_symlink()]

    def is_folder_of(self, person: Person, network: str, name: str) -> bool:
        """Return True if a folder of this name, for a network or a bot of it, is theirs."""
        bots = escape_id(f"{person.platform}:")
        return name == escape_id(person.user_id) and (network == escape_id(person.platform) or network.startswith(bots))

    def find_folders(self, person: Person) -> list[Path]:
        """List their folders, one for each bot of the network, under the real path, since opening follows no link."""
        files = self.files.resolve()
        bots = [path.name for path in files.glob(f"{escape_id(f'{person.platform}:')}*")] if files.is_dir() else []
        return [files / name / escape_id(person.user_id) for name in (escape_id(person.platform), *sorted(bots))]


def is_direct_with(key: str, person: Person) -> bool:
    """Return True if this is the key of their direct chat with a bot, if the network names it by the person."""
    begins, ends = f"agent:{MAIN}:{person.platform}:", f"dm:{person.user_id}"
    return key.startswith(begins) and key.endswith(ends) and key[len(begins) : -len(ends)].count(":") in (0, 1)


def is_direct(key: str) -> bool:
    """Return True if only one person speaks in it: in a direct chat, or by their program."""
    parts = key.split(":")[3:]
    if len(parts) > 2 and parts[0] not in CHAT_TYPES:
        del parts[0]  # an account
    return bool(parts) and parts[0] not in SHARED_CHATS


def is_of(kept: records.JournalRecord, person: Person) -> bool:
    """Return True if this record belongs to that person alone."""
    match kept:
        case records.InboundMessage(message=message) | records.HeardMessage(message=message):
            return str(person) in (message.sender, message.person)
        case (
            records.OwedReply(person=whose)
            | records.AudioTranscription(person=whose)
            | records.VoiceAnswer(person=whose)
            | records.PendingUpdate(person=whose)
            | records.ChatRuleRecord(person=whose)
        ):
            return whose == str(person)
        case records.KnownName(of=whose, is_chat=False):
            return whose == str(person)
        case records.ProgramCall(key=key, user=user):
            return person == (API, f"{key}:{user}" if user else key)
        case records.ApprovalRequest(address=address, user_id=user_id):
            return person == (address.platform, user_id)
        case records.EmittedEvent(name=name, fields=fields):
            who = (
                (INTERNAL, name) if name.startswith(f"{WEBHOOK}:") else (fields.get("platform"), fields.get("user_id"))
            )
            return person == who
        case records.DeadLetterRecord(data=data):
            inner = _decode(data)
            return inner is not None and is_of(inner, person)
        case records.StoredValue(hook=subjects.JOBS, value={"maker": maker}):
            return bool(maker == str(person))
        case records.StoredValue(value={"address": {"platform": platform}, "user_id": user_id}):
            return person == (platform, user_id)
    return False


def remove_turns(session: Session, person: Person) -> Session:
    """Return the session without turns that answered them or contain their overheard messages.

    Its summary goes too, because it may quote them.
    """
    kept = [turn for turn in split_turns(session) if not is_in_turn(person, turn)]
    is_theirs = person == (session.platform, session.user_id)
    return replace(
        session,
        entries=tuple(entry for entries, _, _ in kept for entry in entries),
        turns=tuple(len(entries) for entries, _, _ in kept),
        speakers=tuple(people for _, people, _ in kept),
        pieces=tuple(pieces for _, _, pieces in kept),
        bag={},
        settings={name: value for name, value in session.settings.items() if name != "title" or not is_theirs},
        user_id="" if is_theirs else session.user_id,
    )


def pick_turns(session: Session, person: Person) -> Session:
    """Return the session with only their turns, without overheard messages of others.

    Turns that answered others are reduced to this person's words.
    """
    kept = [_pick_words(turn, person) for turn in split_turns(session) if is_in_turn(person, turn)]
    entries = tuple(entry for turn in kept for entry in turn)
    return replace(session, entries=entries, turns=tuple(map(len, kept)), bag={}, settings={})


def _pick_words(turn: SessionTurn, person: Person) -> tuple[Entry, ...]:
    entries, people, pieces = turn
    if str(person) in people:
        told = {one.name for one in pieces if one.by not in people}
        return delete_pieces(entries, pieces, told, OF_OTHERS)[0]
    theirs = [one for one in pieces if one.by == str(person) and 0 <= one.entry < len(entries)]
    said = [entries[one.entry].content[begin:end] for one in theirs for begin, end in one.spans]
    return (Entry("user", "\n\n".join(said)),)


def is_in_turn(person: Person, turn: SessionTurn) -> bool:
    """Return True if the turn answered them, or contains their overheard messages."""
    _, people, pieces = turn
    return str(person) in people or any(one.by == str(person) for one in pieces)


def is_in_record(person: Person, kept: records.JournalRecord) -> bool:
    """Return True if the record belongs to such a turn (`is_in_turn`)."""
    match kept:
        case records.TurnEnded(people=people, pieces=pieces):
            return is_in_turn(person, ((), people, pieces))
        case records.SessionOpened(carried=records.InitialState(speakers=speakers, pieces=pieces)):
            carried = itertools.zip_longest(speakers, pieces, fillvalue=())
            return any(is_in_turn(person, ((), who, what)) for who, what in carried)
    return False


def split_turns(session: Session) -> Iterator[SessionTurn]:
    """Yield each turn's entries, the authors of its messages, and its pieces by message."""
    first = 0
    for size, people, pieces in zip(session.turns, session.speakers, session.pieces, strict=True):
        yield session.entries[first : first + size], people, pieces
        first += size


def _decode(data: bytes) -> records.JournalRecord | None:
    """Decode a record; None if it is unreadable here."""
    try:
        return records.decode(data)
    except (msgspec.MsgspecError, EngineTooNew):
        return None

"""Forget and shorten conversations: their texts leave the journal, and answered messages stay marked as answered.

First, one append ends the chain and repeats all sessions that stay. Only then the records before this end are purged.
So a crash in between loses no session that stays, and the next `purge_forgotten` removes the rest: any reader of the
chain may call it again.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import AppendSizeError, Conflict, EngineTooNew, RecordDamage, SessionError
from gateway.files.folders import is_sent, key_of, list_shown_files
from gateway.messages.message import Message
from gateway.messages.steps import ToolFinished
from gateway.records import records, subjects
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.sessions.transitions import begin_session, open_from
from gateway.threads import run_in_thread

PAGE = 200
NAME_LENGTH = 24  # the length of the part of a name that identifies the file: see RECEIVED_NAME
# Subjects outside of a conversation that may contain its texts.
COPY_SUBJECTS = (subjects.EVENT_SUBJECTS, subjects.DEAD_SUBJECTS)

# Records beside the chain and the messages: forgetting purges them for all sessions of a key.
FORGOTTEN_SUBJECTS: tuple[subjects.SessionSubject, ...] = (
    *("audio", "heard", "voice", "bell", "page", "dead.turns", "shown"),
)

log = logging.getLogger(__name__)


async def forget_sessions(engine: Engine, sessions: SessionRepository, key: str, *gone: str) -> bool:
    """Forget the sessions `gone` of a key, or all if no session is named; return False if a session was not found.

    If all sessions of a key go, waiting messages are not answered, and a running turn is stopped.

    Raises:
        SessionError: a turn is running, and only named sessions should go.
    """
    while True:
        before, past = await _read_sessions(engine, sessions, key, is_whole=not gone)
        newest = await _read_last_seq(engine, subjects.session_subject_of("in", key))
        if not past.keys() >= set(gone) or (before.seq == 0 and not newest):
            return False
        if gone and before.turn is not None:
            raise SessionError(f"a turn is under way in {key}: stop it first, then forget {', '.join(gone)}")
        upto = before.upto if gone else max(before.upto, newest)
        stay = [old for name, old in past.items() if gone and name not in gone]
        remains = [_rewrite_session(old) for old in stay]
        if remains and before.session_id in gone:
            # A new session takes the place of the removed current session, and does not refer to it.
            remains.append(replace(begin_session(before, sessions.now(), "forgotten"), previous=""))
        end = records.TurnEnded(upto=upto, status="forgotten")
        if seq := await _rewrite_chain(engine, sessions, before, end, remains):
            await purge_forgotten(engine, subjects.token_of(key), seq, upto)
            return True


async def rewrite_sessions(
    engine: Engine, sessions: SessionRepository, key: str, change: Callable[[Session], Session]
) -> bool:
    """Rewrite every session of a key by `change`, and purge the old records; return False if the key has no session.

    Waiting messages, and replies and events of the conversation, stay.

    Raises:
        SessionError: a turn is running under the key.
    """
    while True:
        before, past = await _read_sessions(engine, sessions, key, is_whole=False)
        if before.turn is not None:
            raise SessionError(f"a turn is under way in {key}: try again when it has ended")
        if not past:
            return False
        end = records.TurnEnded(upto=before.upto, status="forgotten", is_partial=True, edits=before.edits)
        remains = [_rewrite_session(change(old)) for old in past.values()]
        if seq := await _rewrite_chain(engine, sessions, before, end, remains):
            await purge_turns(engine, subjects.token_of(key), seq)
            return True


async def _read_sessions(
    engine: Engine, sessions: SessionRepository, key: str, *, is_whole: bool
) -> tuple[Session, dict[str, Session]]:
    """Return the current session of a key, and all its sessions; if `is_whole`, only the end of a damaged chain."""
    try:
        return await sessions.open(key), await sessions.read_all(key)
    except RecordDamage:
        if not is_whole:
            raise
        return Session(key, seq=await _read_last_seq(engine, subjects.session_subject_of("turn", key))), {}


async def _read_last_seq(engine: Engine, subject: str) -> int:
    try:
        newest = await engine.last(subject)
    except RecordDamage as damage:
        return damage.seq
    return newest.seq if newest else 0


async def compact_chain(engine: Engine, sessions: SessionRepository, key: str) -> bool:
    """Replace all records of a key's chain by one record for each session, as the session is now.

    No entry is lost, but the claims and steps of ended turns are removed. Return False if a turn is running, or the
    chain has just changed.
    """
    before = await sessions.open(key)
    if before.turn is not None or not before.session_id:
        return False
    past = await sessions.read_all(key)
    end = records.TurnEnded(upto=before.upto, status="shortened", edits=before.edits)
    try:
        seq = await _rewrite_chain(engine, sessions, before, end, [_rewrite_session(old) for old in past.values()])
    except SessionError as error:
        log.info("%s stays as long as it is: %s", key, error)
        return False
    if seq:
        await purge_chain(engine, subjects.token_of(key), seq)
    return bool(seq)


async def _rewrite_chain(
    engine: Engine,
    sessions: SessionRepository,
    before: Session,
    end: records.TurnEnded,
    remains: Iterable[records.TurnRecord],
) -> int:
    """End the chain, and append the records that stay; return the sequence of the end, or 0 if the chain had changed.

    Raises:
        SessionError: the records that stay are too large for one append.
    """
    try:
        await sessions.append(before, end, *remains)
    except Conflict:
        return 0
    except AppendSizeError as error:  # in two appends, a crash between them would lose the sessions that stay
        raise SessionError(
            f"the sessions of {before.key} are too many to be written anew at once ({error}): "
            f"remove all of them: hermes-gateway sessions delete {before.key}"
        ) from error
    (written,) = await engine.read(subjects.session_subject_of("turn", before.key), before.seq, 1)
    return written.seq


async def purge_chain(engine: Engine, conv: str, seq: int) -> None:
    """Purge the records of a chain before its end at `seq`."""
    await engine.purge(subjects.session_subject_of_token("turn", conv), seq - 1)
    await engine.purge(subjects.session_subject_of_token("sum", conv), seq - 1)


async def purge_turns(engine: Engine, conv: str, seq: int) -> None:
    """Purge the records of a chain before its end at `seq`, and pictures of tools that no remaining entry has."""
    subject = subjects.session_subject_of_token("turn", conv)
    gone = {path async for record in _read_until(engine, subject, seq) for path in _list_tool_pictures(record)}
    if gone:
        kept = [record async for record in _read_after(engine, subject, seq)]
        gone -= {path for record in kept for path in _list_tool_pictures(record)}
    await remove_files(engine, gone)
    for path in gone:
        await _remove_with_made(path)
    await purge_chain(engine, conv, seq)


def _list_tool_pictures(record: Record) -> list[Path]:
    """List the picture files of tools in a record of a chain."""
    match records.decode(record.data):
        case records.TurnEnded(entries=entries):
            found = entries
        case records.SessionOpened(carried=records.InitialState(entries=entries)):
            found = entries
        case ToolFinished(entry=entry):
            found = (entry,)
        case _:
            found = ()
    return [Path(part.path) for entry in found if entry.role == "tool" for part in entry.parts]


async def purge_forgotten(engine: Engine, conv: str, seq: int, upto: int) -> None:
    """Purge a chain before its end at `seq`, and the conversation's messages up to `upto` and replies up to `seq`.

    Also remove the files of these messages and replies, and the pending events of all sessions that do not stay.
    """
    async for record in _read_until(engine, subjects.session_subject_of_token("in", conv), upto):
        kept = records.decode(record.data)
        if isinstance(kept, records.InboundMessage):
            await remove_received_files(engine, kept.message)
    for pattern in (subjects.session_subject_of_token("voice", conv), subjects.reply_pattern_of_token(conv)):
        async for record in _read_until(engine, pattern, seq):
            await remove_sent_files(engine, records.decode(record.data))
    await purge_turns(engine, conv, seq)
    await engine.purge(subjects.session_subject_of_token("in", conv), upto)
    for kind in FORGOTTEN_SUBJECTS:
        await engine.purge(subjects.session_subject_of_token(kind, conv), seq)
    await engine.purge(subjects.reply_pattern_of_token(conv), seq)
    await engine.purge(subjects.approval_pattern_of_token(conv), seq)
    staying = await _read_staying_sessions(engine, conv, seq)
    for pattern in (subjects.owed_event_pattern_of_token(conv), *COPY_SUBJECTS):
        async for record in _read_until(engine, pattern, seq):
            if _is_about(record.data, conv, staying):
                await records.purge_record(engine, record)


async def remove_files(engine: Engine, paths: Iterable[Path]) -> None:
    """Remove files of conversations, and all files made from them, on every gateway; a path may lack its suffix."""
    names = {path.with_name(path.name[:NAME_LENGTH]) for path in paths if key_of(path)}
    store = engine.files
    if not (store and names):
        return
    for folder in {path.parent for path in names}:
        for one in await store.list("/".join(folder.parts[-2:])):
            if folder / one.key.rpartition("/")[2][:NAME_LENGTH] in names:
                await store.delete(one.key)
    kept = records.FileRemoval(files=tuple({digest_of(path) for path in names}))
    await engine.append(NewRecord(subjects.REMOVED_FILES_SUBJECT, records.encode(kept), ttl=records.TRAFFIC_TTL))


def digest_of(path: Path) -> str:
    """Return the digest that a file and all files made from it share; the digest does not reveal the person."""
    return subjects.token_of("/".join((*path.parts[-3:-1], path.name[:NAME_LENGTH])))


async def remove_sent_files(engine: Engine, kept: records.JournalRecord) -> None:
    """Remove the audio of a reply, and the copies of its files for other gateways, but not the original files."""
    match kept:
        case records.VoiceAnswer(path=path) if path:
            place = anyio.Path(path)
            paths = [one async for one in place.parent.glob(f"{place.name}.*")]
            await remove_files(engine, [Path(path)])
        case records.OwedReply(reply=reply):
            shared = [Path(one.path) for one in reply.attachments]
            await remove_files(engine, [one for one in shared if is_sent(one)])
            paths = [anyio.Path(one) for one in shared if reply.id.endswith(records.VOICE_MARK)]
        case _:
            return
    for one in paths:
        await one.unlink(missing_ok=True)


async def remove_received_files(engine: Engine, message: Message) -> None:
    """Remove the files that came with this message, and all files made from them."""
    paths = [Path(one.path) for one in message.attachments]
    await remove_files(engine, paths)
    for path in paths:
        await _remove_received_file(message, path)


async def _remove_received_file(message: Message, path: Path) -> None:
    """Remove a received file; a link leads to the file's folder of its conversation (`daemon/received_files.py`)."""
    place = anyio.Path(path)
    if await place.is_symlink():
        moved = message.address.find_folder(path.parents[1], message.user_id)
        await anyio.Path(moved / path.name).unlink(missing_ok=True)
        if await place.exists():  # another conversation has the file too
            return
    await _remove_with_made(path)


async def _remove_with_made(path: Path) -> None:
    """Remove a file that we named, and all files made from it."""
    for one in [*await run_in_thread(list_shown_files, path), path]:
        await anyio.Path(one).unlink(missing_ok=True)


async def _read_staying_sessions(engine: Engine, conv: str, seq: int) -> set[str]:
    """Return the ids of the sessions that continue after the chain's end at `seq`."""
    subject = subjects.session_subject_of_token("turn", conv)
    found = [records.decode(record.data) async for record in _read_after(engine, subject, seq)]
    return {opened.session_id for opened in found if isinstance(opened, records.SessionOpened)}


async def _read_after(engine: Engine, subject: str, seq: int) -> AsyncIterator[Record]:
    while page := await engine.read(subject, seq, PAGE):
        for record in page:
            yield record
        seq = page[-1].seq


async def _read_until(engine: Engine, pattern: str, upto: int) -> AsyncIterator[Record]:
    after = 0
    while page := await records.read_readable(engine, pattern, after, PAGE):
        for record in page:
            if record.seq > upto:
                return
            yield record
        after = page[-1].seq


def _is_about(data: bytes, conv: str, staying: set[str]) -> bool:
    """Return True for an event of the forgotten sessions, and for a dead letter with such an event."""
    try:
        kept = records.decode(data)
    except (msgspec.MsgspecError, EngineTooNew):
        return False
    if isinstance(kept, records.DeadLetterRecord):
        return _is_about(kept.data, conv, staying)
    if not isinstance(kept, records.EmittedEvent) or kept.fields.get("session_id") in staying:
        return False
    return subjects.token_of(str(kept.fields.get("session_key", ""))) == conv


def _rewrite_session(old: Session) -> records.SessionOpened:
    """Make the record of a session that stays."""
    opened = open_from(old, old, old.session_id, "kept")
    return replace(opened, previous="", began=old.began, at=old.last_active, ahead=old.ahead)

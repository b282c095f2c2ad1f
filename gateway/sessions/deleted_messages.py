"""Messages that their authors delete: after the deletion, no part of the gateway shows the text.

One record in the chain of the conversation marks the message (`MessageDeleted`), and a fold of the chain leaves out its
text: for the model, the page, exports. The text leaves the chain itself when the chain is next rewritten. All other
copies are purged at once: the inbound message, with its audio and its files, and its pending events for hooks. Later
readers of the record purge them again, since a crash may have come between.

A message is identified by its network, its chat and its id there, and, if the network names the author, by the author.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from typing import Any

import msgspec

from gateway.engine.interface import Engine, Record
from gateway.errors import Conflict
from gateway.messages.message import Message
from gateway.messages.pieces import SAID_KINDS, MessageName, name_of
from gateway.records import records, subjects
from gateway.sessions.removal import COPY_SUBJECTS, remove_received_files
from gateway.sessions.repository import SessionRepository

OF_ONE_MESSAGE = ("message:received", "audio:before", "audio:after")  # events about one person's message

log = logging.getLogger(__name__)


class DeletedMessages(msgspec.Struct, eq=False):
    """Removes messages that their authors delete.

    `find` returns the keys of the conversations that contain a message, `list_open` the keys of the active
    conversations.
    """

    engine: Engine
    sessions: SessionRepository
    find: Callable[[MessageName], Awaitable[Iterable[str]]]
    list_open: Callable[[], Awaitable[Iterable[str]]]

    async def delete(self, name: MessageName, by: str = "") -> bool:
        """Delete a message; return True if a conversation contained it. `by` is its author (`slack:U1`), if known.

        Raises:
            EngineError: the journal takes no appends.
        """
        found = False
        for key in dict.fromkeys([*await self.find(name), *await self.list_open()]):
            found |= await self._delete_from(key, name, by)
        return found

    async def _delete_from(self, key: str, name: MessageName, by: str) -> bool:
        while True:
            session, past = await self.sessions.open(key), await self.sessions.read_all(key)
            conv = subjects.token_of(key)
            authors = {kept.message.sender async for _, kept in find_inbound(self.engine, conv, name)}
            authors |= {kept.message.sender async for _, kept in find_heard(self.engine, conv, name)}
            authors |= {
                piece.by for one in past.values() for turn in one.pieces for piece in turn if piece.name == name
            }
            if not authors or (by and by not in authors):
                return False
            gone = records.MessageDeleted(session_key=key, name=name, person=min(authors))
            try:
                await self.sessions.append(session, gone)
            except Conflict:
                continue  # another record was appended to the chain
            await purge_deleted(self.engine, gone)
            log.info("a message of %s was taken back by its author", key)
            return True


async def find_inbound(
    engine: Engine, conv: str, name: MessageName
) -> AsyncIterator[tuple[Record, records.InboundMessage]]:
    """Yield the inbound message of this name in a conversation, and the edits of the message."""
    subject = subjects.session_subject_of_token("in", conv)
    async for record, kept in records.read_all(engine, subject, records.InboundMessage):
        if is_message(kept.message, name):
            yield record, kept


async def find_heard(
    engine: Engine, conv: str, name: MessageName
) -> AsyncIterator[tuple[Record, records.HeardMessage]]:
    """Yield the records of a conversation that hold the overheard message of this name."""
    subject = subjects.session_subject_of_token("heard", conv)
    async for record, kept in records.read_all(engine, subject, records.HeardMessage):
        if name_of(kept.message) == name:
            yield record, kept


def is_message(message: Message, name: MessageName) -> bool:
    """Return True if the message has this name, or is an edit of the message with this name."""
    return message.kind in SAID_KINDS and name_of(message) == name


async def purge_deleted(engine: Engine, gone: records.MessageDeleted) -> None:
    """Purge a message's copies outside of the chain, and the message itself last: its text identifies the copies."""
    conv = subjects.token_of(gone.session_key)
    came = [one async for one in find_inbound(engine, conv, gone.name)]
    told = [one async for one in find_heard(engine, conv, gone.name)]
    seqs = {record.seq for record, _ in came}
    subject = subjects.session_subject_of_token("audio", conv)
    audio = [one async for _, one in records.read_all(engine, subject, records.AudioTranscription) if one.on in seqs]
    texts = {kept.message.text for _, kept in came} | {kept.message.text for _, kept in told}
    texts |= {one.text for one in audio}
    await _purge_copies(engine, gone.name, conv, texts - {""})
    for _, kept in came:
        await remove_received_files(engine, kept.message)
    for record, _ in (*came, *told):
        await records.purge_record(engine, record)
    await _purge_lost_audio(engine, conv)


async def _purge_lost_audio(engine: Engine, conv: str) -> None:
    """Purge the transcriptions of audio whose messages are gone."""
    subject = subjects.session_subject_of_token("in", conv)
    left = {record.seq async for record, _ in records.read_all(engine, subject, records.InboundMessage)}
    subject = subjects.session_subject_of_token("audio", conv)
    async for record, words in records.read_all(engine, subject, records.AudioTranscription):
        if words.on not in left and words.state != "stopped":
            await records.purge_record(engine, record)


async def _purge_copies(engine: Engine, name: MessageName, conv: str, texts: Collection[str]) -> None:
    """Purge pending events about the message, events of its turns that contain a text of it, and their dead letters."""
    turns = await _find_turns(engine, name, conv)
    dead_turns = subjects.session_subject_of_token("dead.turns", conv)
    for pattern in (subjects.owed_event_pattern_of_token(conv), *COPY_SUBJECTS, dead_turns):
        async for record, kept in records.read_all(engine, pattern, records.JournalRecord):
            if _is_copy(kept, name, turns, texts):
                await records.purge_record(engine, record)


async def _find_turns(engine: Engine, name: MessageName, conv: str) -> set[str]:
    """Find the turns that answered the message, and all turns that have not ended."""
    found, on = set[str](), dict[str, int]()
    subject = subjects.session_subject_of_token("turn", conv)
    async for _, kept in records.read_all(engine, subject, records.TurnRecord):
        if isinstance(kept, records.Claim):
            on[kept.turn_id] = kept.on
        if isinstance(kept, records.TurnEnded):
            on.pop(kept.turn_id, None)
            if any(piece.name == name for piece in kept.pieces):
                found.add(kept.turn_id)
    return found | on.keys()


def _is_copy(kept: records.JournalRecord, name: MessageName, turns: Collection[str], texts: Collection[str]) -> bool:
    if isinstance(kept, records.DeadLetterRecord) and kept.data:
        return _is_copy(records.decode(kept.data), name, turns, texts)
    if isinstance(kept, records.InboundMessage):
        return is_message(kept.message, name)
    if not isinstance(kept, records.EmittedEvent):
        return False
    fields = kept.fields
    where = (fields.get("platform"), fields.get("chat_id"), str(fields.get("message_id") or "").partition(":")[0])
    if kept.name in OF_ONE_MESSAGE and where == (name.platform, name.chat, name.id):
        return True
    return fields.get("turn_id") in turns and has_text(fields, texts)


def has_text(value: Any, texts: Collection[str]) -> bool:
    """Return True if a text of `texts` occurs anywhere in the value."""
    if isinstance(value, str):
        return any(text in value for text in texts)
    if isinstance(value, dict):
        return any(has_text(one, texts) for one in value.values())
    return isinstance(value, list) and any(has_text(one, texts) for one in value)

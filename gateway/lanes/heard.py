"""The overheard messages of a quiet chat, which accompany the next message to the agent.

The same append writes the next message and, after it, one record for each overheard message, so that each can be
exported or deleted with its author. A turn that runs again has the same overheard messages. A turn leaves out messages
that their author has deleted since, and messages that the previous turn also contained.

`has_heard` marks a message that has such records; for other messages nothing is read.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from gateway.engine.interface import Engine, NewRecord
from gateway.lanes.audio import FoundMessages
from gateway.messages.message import HeardWords, Message
from gateway.messages.pieces import list_shown_messages, name_of
from gateway.records import records, subjects
from gateway.sessions.session import Session


def make_heard_put(heard: Message, session_key: str, message: Message) -> NewRecord:
    """Make the record of an overheard message, which expires as an answered message does."""
    kept = records.HeardMessage(message=heard, session_key=session_key, before=message.id)
    subject = subjects.session_subject_of("heard", session_key)
    return NewRecord(subject, records.encode(kept), ttl=records.TRAFFIC_TTL)


async def put_heard(engine: Engine, session: Session, found: FoundMessages) -> FoundMessages:
    """Return the messages, each with the overheard messages that accompany it."""
    told = await _read_heard(engine, session, {message.id for _, message in found}, found[0][0])
    return [(seq, replace(message, heard=tuple(told.get(message.id, {}).values()))) for seq, message in found]


async def _read_heard(
    engine: Engine, session: Session, messages: Collection[str], after: int
) -> dict[str, dict[str, HeardWords]]:
    """Group overheard messages by the message after them and by their own id: a network's duplicate counts once."""
    told: dict[str, dict[str, HeardWords]] = {}
    known = list_shown_messages(chain(*session.pieces)) | {*session.deleted}
    subject = subjects.session_subject_of("heard", session.key)
    async for _, kept in records.read_all(engine, subject, records.HeardMessage, after):
        said = kept.message
        if kept.before in messages and name_of(said) not in known:
            words = HeardWords(said.id, said.user_id, said.user_name, said.text)
            told.setdefault(kept.before, {})[said.id] = words
    return told

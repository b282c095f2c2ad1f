"""What was said to others in a quiet chat, beside the messages that are told it.

It comes into the journal in the append of the message, and behind it: one record for each thing that was said, so that
each can be exported, and can go, with whoever said it. A turn that begins anew has the same words. What its author has
taken back since is not among them, nor what the turn before, which had not ended then, was told as well.

A message says that it is told something (`has_heard`); for all others nothing is looked up.
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
    """The record by which a message is told this; it goes when messages do."""
    kept = records.HeardMessage(message=heard, session_key=session_key, before=message.id)
    subject = subjects.session_subject_of("heard", session_key)
    return NewRecord(subject, records.encode(kept), ttl=records.TRAFFIC_TTL)


async def put_heard(engine: Engine, session: Session, found: FoundMessages) -> FoundMessages:
    """The messages, each with what it was told."""
    told = await _read_heard(engine, session, {message.id for _, message in found}, found[0][0])
    return [(seq, replace(message, heard=tuple(told.get(message.id, {}).values()))) for seq, message in found]


async def _read_heard(
    engine: Engine, session: Session, messages: Collection[str], after: int
) -> dict[str, dict[str, HeardWords]]:
    """By the message, and by its own id: what a network delivers twice is told it twice, and has it once."""
    told: dict[str, dict[str, HeardWords]] = {}
    known = list_shown_messages(chain(*session.pieces)) | {*session.deleted}
    subject = subjects.session_subject_of("heard", session.key)
    async for _, kept in records.read_all(engine, subject, records.HeardMessage, after):
        said = kept.message
        if kept.before in messages and name_of(said) not in known:
            words = HeardWords(said.id, said.user_id, said.user_name, said.text)
            told.setdefault(kept.before, {})[said.id] = words
    return told

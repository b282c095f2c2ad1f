"""Edits of unanswered messages: an edit changes a waiting message, and may correct a running turn.

An edit is a message of its own in the journal, with an id that starts with the edited message's id. A turn's claim
lists the edits that the turn contains: so the turn has the same text when it runs again, and no edit is answered twice.
An edit by another person, or of an unknown message, changes no message and waits like any other message.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gateway.engine.interface import Engine
from gateway.lanes.audio import FoundMessages, put_words, read_transcriptions
from gateway.lanes.context import PAGE, LaneContext
from gateway.lanes.heard import put_heard
from gateway.lanes.turn import build_partial_entries, build_partial_pieces
from gateway.messages.message import Message, people_of
from gateway.messages.pieces import SAID_KINDS, add_missing_pieces, name_of
from gateway.records import records, subjects
from gateway.sessions.session import OpenTurn, Session, find_words


class PendingMessage(NamedTuple):
    """A message that arrived at `seq`, with the words of its last edit; `edits` lists the sequences of all edits."""

    seq: int
    message: Message
    edits: tuple[int, ...] = ()


def is_edit_of(edit: Message, said: Message) -> bool:
    """Return True if `edit` changes the message `said` and comes from the same author."""
    is_said = edit.kind == "edit" and said.kind in SAID_KINDS
    return is_said and edit.sender == said.sender and name_of(edit) == name_of(said)


def fold_edits(found: Sequence[tuple[int, Message]]) -> list[PendingMessage]:
    """Return the messages, with each edit applied to the message that it changes."""
    folded: list[PendingMessage] = []
    for seq, message in found:
        for at, one in enumerate(folded):
            if is_edit_of(message, one.message):
                folded[at] = PendingMessage(one.seq, _put_edit(one.message, message), (*one.edits, seq))
                break
        else:
            folded.append(PendingMessage(seq, message))
    return folded


def _put_edit(said: Message, edit: Message) -> Message:
    """Return the message `said` with the changes of an edit.

    An edit of an album contains only the changed file, and an edit of a message with audio has no transcription, so
    both keep the files of `said`.
    """
    is_whole = len(edit.attachments) >= len(said.attachments) and not said.has_audio
    files = edit.attachments if is_whole else said.attachments
    return replace(
        said,
        text=edit.text,
        attachments=files,
        parts=edit.parts or said.parts,
        text_before=said.text_before or said.text,
    )


def put_words_before(session: Session, message: Message) -> Message:
    """Add the text before the edit, as the conversation has it, to an edit of an answered message."""
    if message.kind != "edit":
        return message
    return replace(message, text_before=find_words(session, name_of(message), message.sender))


async def read_inbound(engine: Engine, key: str, after: int, limit: int = PAGE) -> list[tuple[int, Message]]:
    """Read the messages of a session after the sequence `after`."""
    found = await engine.read(subjects.session_subject_of("in", key), after, limit, fresh=False)
    decoded = ((one.seq, records.decode(one.data)) for one in found)
    return [(seq, kept.message) for seq, kept in decoded if isinstance(kept, records.InboundMessage)]


async def read_pending(engine: Engine, session: Session) -> list[tuple[int, Message]]:
    """Read the waiting messages, without deleted messages and without edits that a turn contains."""
    after = session.upto
    while page := await read_inbound(engine, session.key, after):
        if found := [one for one in page if one[0] not in session.edits and name_of(one[1]) not in session.deleted]:
            return found
        after = page[-1][0]
    return []


async def read_open(engine: Engine, session: Session, turn: OpenTurn) -> list[tuple[int, Message]]:
    """Read the messages of an open turn, as they were when it started."""
    found, after, last = list[tuple[int, Message]](), session.upto, max(turn.on, *turn.edits, 0)
    while after < last and (page := await read_inbound(engine, session.key, after)):
        found += page
        after = page[-1][0]
    own = [one for one in found if one[0] in turn.edits or (one[0] <= turn.on and one[0] not in session.edits)]
    return [(one.seq, put_words_before(session, one.message)) for one in fold_edits(own)]


async def read_open_words(engine: Engine, session: Session, turn: OpenTurn) -> FoundMessages:
    """Read the messages of an open turn with the text of their audio and with the overheard messages of quiet chats."""
    found = await put_heard_words(engine, session, await read_open(engine, session, turn))
    if not any(message.has_audio for _, message in found):
        return found
    known = await read_transcriptions(engine, session.key, found)
    return [(seq, put_words(seq, message, known)) for seq, message in found]


async def put_heard_words(engine: Engine, session: Session, found: FoundMessages) -> FoundMessages:
    """Put what was overheard in a quiet chat in front of the message that calls the bot."""
    is_told = any(message.has_heard for _, message in found)
    return await put_heard(engine, session, found) if is_told else found


async def is_edit_of_open(engine: Engine, message: Message, session: Session) -> bool:
    """Return True if the message edits a message that the session's open turn answers."""
    said = await read_open(engine, session, session.turn) if session.turn and message.kind == "edit" else []
    return any(is_edit_of(message, one) for _, one in said)


async def has_new_edit(context: LaneContext, session: Session, turn: OpenTurn) -> bool:
    """Return True if an author has edited a message of this turn and wants an answer to the new words."""
    said = [message for _, message in await read_open(context.engine, session, turn)]
    found = await read_inbound(context.engine, session.key, session.upto)  # as far as lanes look for waiting messages
    return any(
        seq > turn.on and seq not in turn.edits and context.settings.ports.interrupts(edit) and is_edit_of(edit, one)
        for seq, edit in found
        for one in said
    )


async def make_partial_end(
    context: LaneContext, session: Session, turn: OpenTurn, *, is_corrected: bool = False
) -> records.TurnEnded:
    """Make the end of a turn that no node runs, because its person stopped it or edited its message."""
    messages = [message for _, message in await read_open_words(context.engine, session, turn)]
    is_kept = not is_corrected or has_used_tools(turn)
    return records.TurnEnded(
        upto=session.upto if is_corrected else turn.on,
        turn_id=turn.turn_id,
        status="interrupted",
        entries=build_partial_entries(messages, turn.steps) if is_kept else (),
        people=people_of(messages),
        pieces=add_missing_pieces(build_partial_pieces(messages) if is_kept else (), messages),
    )


def has_used_tools(turn: OpenTurn) -> bool:
    """Return True if the turn has used tools, so that the turn that replaces it must know about them."""
    return any(isinstance(step, records.ToolStarted | records.ToolFinished) for step in turn.steps)

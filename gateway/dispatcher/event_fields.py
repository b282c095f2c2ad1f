"""What hooks are told about a message and its turn: the fields of events, from the records that we keep."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from gateway.access import AccessLevel
from gateway.events import Deny, End, Event
from gateway.lanes import LaneTurn
from gateway.messages import Message
from gateway.sessions import Session, SessionSwitch

REFUSED = "This was refused."


def build_turn_fields(turn: LaneTurn, message: Message, scope: AccessLevel, agent: str) -> dict[str, Any]:
    """What every event of a turn carries."""
    fields = build_place_fields(message, scope, turn.session)
    fields |= {"turn_id": turn.turn_id, "agent": agent}
    return fields | ({"resumed": True} if turn.resumed else {})


def build_place_fields(message: Message, scope: AccessLevel, session: Session) -> dict[str, Any]:
    """Who speaks, where, in which session."""
    at = message.address
    return {
        "platform": at.platform,
        "user_id": message.user_id,
        "user_name": message.user_name,
        "scope": scope,
        "chat_id": at.chat_id,
        "thread_id": at.thread_id,
        "chat_type": at.chat_type,
        "session_id": session.session_id,
        "session_key": session.key,
    }


def build_received_fields(message: Message) -> dict[str, Any]:
    """`message:received`, beside what every event of the turn carries."""
    return {
        "user_name": message.user_name,
        "message_id": message.id,
        "text": message.text,
        "attachments": [dataclasses.asdict(one) for one in message.attachments],
    }


def build_turnover_fields(change: SessionSwitch) -> dict[str, Any]:
    """`session:start`; the session that ended is told with `build_ended_fields`."""
    return {
        "platform": change.platform,
        "user_id": change.user_id,
        "session_id": change.started,
        "session_key": change.session_key,
    }


def build_ended_fields(change: SessionSwitch) -> dict[str, Any]:
    """`session:end` and `session:reset`."""
    return build_turnover_fields(change) | {
        "session_id": change.ended,
        "new_session_id": change.started,
        "reason": change.reason,
    }


def join_messages(messages: Sequence[Message]) -> Message:
    """Several messages that one turn answers, as one: the texts in order, every attachment, the last one's place."""
    if len(messages) == 1:
        return messages[0]
    return dataclasses.replace(
        messages[-1],
        text="\n\n".join(message.text for message in messages if message.text),
        attachments=tuple(one for message in messages for one in message.attachments),
    )


def prompt_of(message: Message) -> str:
    """What the agent is asked: the text, and behind it the files that came along, by the names that they have here."""
    files = [
        f"[attached {one.kind}: {one.name or 'without a name'} ({one.media_type}, {one.size} bytes), in {one.path}]"
        for one in message.attachments
    ]
    return "\n".join([*([message.text] if message.text else []), *files])


def outcome_text_of(event: Event) -> str:
    match event.outcome:
        case End(reply=reply):
            return reply
        case Deny(text=text):
            return text or REFUSED
    return ""

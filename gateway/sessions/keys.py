"""Which session a message belongs to, as Hermes names it: `agent:main:<platform>:dm:<chat>[:thread]` and the like.

A platform's account stands behind the platform, `agent:main:telegram:work:dm:<chat>`. No account is called as a type of
chat is, so it is seen which of the two follows.
"""

import secrets
from datetime import UTC, datetime

from gateway.config.settings import MAIN, SessionSettings
from gateway.messages.message import Message

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def session_key_of(message: Message, rules: SessionSettings) -> str:
    """The key of the session that a message goes to. In a chat of many all share one, or each has one of their own.

    A session that the sender names is a key of its own on the sender's platform; a whole key (`agent:...`) is taken
    as it stands. Only adapters of trusted ends (terminal, page) fill that field, so a stranger cannot choose a
    session by it.
    """
    at = message.address
    if message.session.startswith("agent:"):
        return message.session
    if message.session:
        return f"agent:{MAIN}:{at.platform}:dm:{message.session}"
    place = [part for part in (at.chat_id, at.thread_id) if part]
    is_private = rules.per_user_in_groups and (rules.per_user_in_threads or not at.thread_id)
    if at.chat_type != "dm" and message.user_id and is_private:
        place.append(message.user_id)
    return ":".join(["agent", MAIN, at.served_as, at.chat_type, *place])


def platform_of(key: str) -> str:
    """The platform in a session key; empty where the key has another shape."""
    parts = key.split(":")
    return parts[2] if len(parts) > 3 and parts[0] == "agent" else ""


def make_session_id(now: float) -> str:
    """An id that sorts by its time and is read by people: `20260101_120000_abc123` (UTC)."""
    suffix = "".join(secrets.choice(ALPHABET) for _ in range(6))
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{suffix}"

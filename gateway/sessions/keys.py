"""The session key of a message, in Hermes's form: `agent:main:<platform>:dm:<chat>[:thread]` and similar.

A platform's account follows the platform, `agent:main:telegram:work:dm:<chat>`. No account has the name of a chat type,
so an account and a chat type cannot be confused.
"""

import secrets
from datetime import UTC, datetime

from gateway.config.settings import MAIN, SessionSettings
from gateway.messages.message import Message

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def session_key_of(message: Message, rules: SessionSettings) -> str:
    """Return the key of a message's session. In a group all people share one session, or each person has their own.

    If the message names its session (`message.session`), the key is made from this name and the platform; a whole key
    (`agent:...`) is used as it is. Only adapters of trusted places (terminal, page) set this field, so a stranger
    cannot choose a session.
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
    """Return the platform in a session key; "" if the key has another form."""
    parts = key.split(":")
    return parts[2] if len(parts) > 3 and parts[0] == "agent" else ""


def make_session_id(now: float) -> str:
    """Return an id that sorts by time and is readable: `20260101_120000_abc123` (UTC)."""
    suffix = "".join(secrets.choice(ALPHABET) for _ in range(6))
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d_%H%M%S}_{suffix}"

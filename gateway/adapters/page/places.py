"""The places of the page's chat: each person has a direct chat, and any number of threads in it.

The port authenticates and names a person: `owner` after a link from the terminal, `NETWORK:ID` after a link from a
chat, or else the name in the configuration.
"""

import re

from gateway.access.access_control import WEB
from gateway.config.settings import SessionSettings
from gateway.messages.message import Address, Message
from gateway.records import subjects
from gateway.sessions.keys import session_key_of

PLATFORM = WEB
OWNER = "owner"
THREAD = re.compile(r"c[0-9a-f]{15}")  # no network has person ids of this shape, so no two places share a session
MESSAGE_ID = r"[A-Za-z0-9_-]{8,64}"


def address_of(person: str, thread: str = "") -> Address:
    return Address(PLATFORM, person, "dm", thread)


def key_of(address: Address) -> str:
    """Return the session key of a place; settings of groups do not matter here."""
    return session_key_of(Message("", address, address.chat_id, ""), SessionSettings())


def subject_of(address: Address) -> str:
    """Return the journal's subject for the messages that a place shows."""
    return subjects.session_subject_of("page", key_of(address))


def thread_of_key(key: str, person: str) -> str | None:
    """Return the thread of this session; None: it is not a session of this person's here."""
    main = key_of(address_of(person))
    if key == main:
        return ""
    thread = key.removeprefix(f"{main}:")
    return thread if thread != key and THREAD.fullmatch(thread) else None

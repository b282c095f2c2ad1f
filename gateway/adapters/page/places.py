"""Where the page's chat takes place: each person has a direct chat, and any number of threads in it.

A person is named by the port, which has made sure of them: `owner` for whoever opened the page by a link from the
terminal, `NETWORK:ID` for somebody who was given one in a chat, else the name by which the configuration knows them.
"""

import re

from gateway.access.access_control import WEB
from gateway.config.settings import SessionSettings
from gateway.messages.message import Address, Message
from gateway.records import subjects
from gateway.sessions.keys import session_key_of

PLATFORM = WEB
OWNER = "owner"
THREAD = re.compile(
    r"c[0-9a-f]{15}"
)  # no id of a person on a network has this shape, so no two places have one session
MESSAGE_ID = r"[A-Za-z0-9_-]{8,64}"


def address_of(person: str, thread: str = "") -> Address:
    return Address(PLATFORM, person, "dm", thread)


def key_of(address: Address) -> str:
    """The session key of a place; settings of groups do not matter here."""
    return session_key_of(Message("", address, address.chat_id, ""), SessionSettings())


def subject_of(address: Address) -> str:
    """Where what is shown there stands in the journal."""
    return subjects.session_subject_of("page", key_of(address))


def thread_of_key(key: str, person: str) -> str | None:
    """The thread of this session; None: it is no conversation of this person's here."""
    main = key_of(address_of(person))
    if key == main:
        return ""
    thread = key.removeprefix(f"{main}:")
    return thread if thread != key and THREAD.fullmatch(thread) else None

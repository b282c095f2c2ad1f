"""Session keys are those of Hermes, so that what a person knows there holds here."""

import re

import pytest

from gateway.config.settings import SessionSettings
from gateway.messages.message import Address, ChatType, Message
from gateway.sessions.keys import make_session_id, platform_of, session_key_of


def at(chat_type: ChatType, thread: str = "", user: str = "u7", session: str = "", chat: str = "42") -> Message:
    return Message("1", Address("net", chat, chat_type, thread), user, "", session=session)


@pytest.mark.parametrize(
    ("message", "key"),
    [
        (at("dm"), "agent:main:net:dm:42"),
        (at("dm", "9"), "agent:main:net:dm:42:9"),
        (at("dm", "9", chat=""), "agent:main:net:dm:9"),
        (at("group"), "agent:main:net:group:42:u7"),
        (at("group", user=""), "agent:main:net:group:42"),
        (at("channel"), "agent:main:net:channel:42:u7"),
        (at("thread", "9"), "agent:main:net:thread:42:9"),
        (at("forum", "9"), "agent:main:net:forum:42:9"),
        (at("dm", session="work"), "agent:main:net:dm:work"),
        (at("dm", session="agent:main:other:dm:5"), "agent:main:other:dm:5"),
    ],
)
def test_a_message_goes_to_the_session_that_hermes_would_choose(message: Message, key: str) -> None:
    assert session_key_of(message, SessionSettings()) == key
    assert platform_of(key) in ("net", "other")


def test_a_group_may_share_one_session_and_a_thread_may_have_one_a_person() -> None:
    shared = SessionSettings(per_user_in_groups=False)
    assert session_key_of(at("group"), shared) == "agent:main:net:group:42"
    private = SessionSettings(per_user_in_threads=True)
    assert session_key_of(at("thread", "9"), private) == "agent:main:net:thread:42:9:u7"


def test_session_ids_sort_by_their_time_and_are_hardly_ever_the_same() -> None:
    assert make_session_id(1767225600).startswith("20260101_000000_")
    ids = {make_session_id(0.0) for _ in range(100)}
    assert len(ids) > 95
    assert all(re.fullmatch(r"19700101_000000_[a-z0-9]{6}", one) for one in ids)

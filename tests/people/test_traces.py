"""Whose a conversation and a record are, by their names."""

import msgspec
import pytest

from gateway import records
from gateway.people import Person, parse_person
from gateway.people.traces import is_direct, is_of, is_private_key

CALL = records.ProgramCall(id="c", key="telegram", agent="main", session_key="s", digest="d", user="1")


@pytest.mark.parametrize(
    ("key", "is_private"),
    [
        ("agent:main:telegram:dm:1002", True),
        ("agent:main:api:call:notes:0af1", True),
        ("agent:main:telegram:group:-5", False),
        ("agent:main:telegram:group:-5:1002", True),
        ("agent:main:slack:thread:C1:17.5", False),
    ],
)
def test_a_conversation_is_with_one_person_or_with_several(key: str, is_private: bool) -> None:
    assert is_private_key(key, Person("telegram", "1002")) is is_private
    assert not (is_direct(key) and not is_private)


def test_a_call_is_that_of_the_programs_user_and_of_nobody_who_is_called_so_elsewhere() -> None:
    assert is_of(CALL, Person("api", "telegram:1"))
    assert not is_of(CALL, Person("web", "telegram:1"))
    assert is_of(msgspec.structs.replace(CALL, user=""), Person("api", "telegram"))


def test_what_was_heard_is_that_of_whoever_said_it() -> None:
    heard = records.AudioTranscription(session_key="s", on=1, state="done", text="hi", person="telegram:5")
    assert is_of(heard, Person("telegram", "5"))
    assert not is_of(heard, Person("telegram", "6"))


def test_a_webhook_is_found_by_the_name_that_usage_shows() -> None:
    webhook = parse_person("webhook:issues")
    assert (str(webhook), webhook.payers) == ("internal:webhook:issues", ("internal:webhook:issues", "webhook:issues"))
    assert parse_person("telegram:5").payers == ("telegram:5",)

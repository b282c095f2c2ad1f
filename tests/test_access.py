"""The gate: deny by default, ids only, groups give no rights beyond speaking."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.access import AccessControl, AccessRules, Pairings
from gateway.access.message_rate import MOST_PEOPLE
from gateway.messages import Address, ChatType, Message
from gateway.testing.memory_engine import MemoryEngine

RULES = AccessRules(
    "ignore",
    30,
    owners={"terminal": frozenset({"owner"})},
    admins={"net": frozenset({"1"})},
    users={"net": frozenset({"2"})},
    group_users={"net": frozenset({"4"})},
    chats={"net": frozenset({"room"})},
    everybody=frozenset({"open"}),
)


def control(rules: AccessRules, clock: Callable[[], float] = time.monotonic) -> AccessControl:
    return AccessControl(rules, Pairings(MemoryEngine()), clock)


def message(platform: str, user: str, chat: str = "c", chat_type: ChatType = "dm", name: str = "") -> Message:
    return Message("1", Address(platform, chat, chat_type), user, "hi", user_name=name)


@pytest.mark.parametrize(
    ("given", "role"),
    [
        (message("terminal", "owner"), "owner"),
        (message("net", "owner"), None),
        (message("net", "1"), "admin"),
        (message("net", "2"), "user"),
        (message("net", "3"), None),
        (message("net", "3", name="2"), None),
        (message("net", ""), None),
        (message("net", "3", "room", "group"), "guest"),
        (message("net", "3", "room", "dm"), None),
        (message("net", "3", "other", "group"), None),
        (message("net", "4", "other", "group"), "user"),
        (message("net", "4"), None),
        (message("open", "9"), "guest"),
        (message("open", ""), None),
    ],
)
def test_only_whom_a_rule_names_may_speak(given: Message, role: str | None) -> None:
    assert control(RULES).find_role(given) == role


def test_with_no_rules_nobody_may_speak() -> None:
    assert control(AccessRules("ignore", 30)).find_role(message("net", "1")) is None


def test_a_person_may_send_so_many_messages_a_minute_and_owners_as_many_as_they_like() -> None:
    now = [0.0]
    access = control(AccessRules("ignore", 2, owners=RULES.owners, users=RULES.users), lambda: now[0])
    person, owner = message("net", "2"), message("terminal", "owner")
    assert [access.is_too_fast(person, "user") for _ in range(3)] == [False, False, True]
    assert not any(access.is_too_fast(owner, "owner") for _ in range(100))
    now[0] = 61.0
    assert not access.is_too_fast(person, "user")


def test_who_is_too_fast_is_told_so_once_a_minute() -> None:
    now = [0.0]
    access = control(RULES, lambda: now[0])
    person, other = message("net", "2"), message("net", "4")
    assert [access.message_rate.is_warning_due(one) for one in (person, person, other)] == [True, False, True]
    now[0] = 61.0
    assert access.message_rate.is_warning_due(person)


def test_people_who_have_been_silent_for_a_minute_are_forgotten() -> None:
    now = [0.0]
    access = control(AccessRules("ignore", 0), lambda: now[0])
    for number in range(MOST_PEOPLE + 1):
        crowd = message("net", str(number))
        assert access.is_too_fast(crowd, "user")
        assert access.message_rate.is_warning_due(crowd)
    now[0] = 61.0
    access.is_too_fast(message("net", "late"), "user")
    assert len(access.message_rate._paces) == 1


def test_a_role_lets_speak_in_groups_alone() -> None:
    access = control(AccessRules("ignore", 30, roles={"net": frozenset({"7"})}))
    in_group = Message("1", Address("net", "9", "group"), "ann", "hi", extra={"roles": ["5", "7"]})
    assert access.find_role(in_group) == "user"
    assert access.find_role(replace(in_group, address=Address("net", "9", "dm"))) is None
    assert access.find_role(replace(in_group, address=Address("other", "9", "group"))) is None
    assert access.find_role(replace(in_group, extra={"roles": ["5"]})) is None

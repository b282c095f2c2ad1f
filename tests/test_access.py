"""The gate: deny by default, ids only, groups give no rights beyond speaking."""

import time
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from gateway.access.access_control import AccessControl
from gateway.access.message_rate import MOST_PEOPLE, MessageRate
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules, PeopleGroup
from gateway.messages.message import Address, ChatType, Message
from tests.engine.memory_engine import MemoryEngine

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
    return AccessControl(rules, Pairings(MemoryEngine()), MessageRate(clock))


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


GROUPS = {
    "staff": PeopleGroup(frozenset({"net:1", "net:5"}), "operator", 2),
    "chiefs": PeopleGroup(frozenset({"net:6"}), "admin"),
    "all": PeopleGroup(frozenset({"net:7"}), "guest"),
}


@pytest.mark.parametrize(
    ("given", "role"),
    [
        (message("net", "1"), "admin"),  # who has several roles has the highest
        (message("net", "5"), "operator"),
        (message("net", "5", "other", "group"), "operator"),
        (message("net", "6"), "admin"),
        (message("net", "7"), "guest"),
        (message("net", "8", name="5"), None),
        (message("open", "5"), "guest"),
        (message("other", "5"), None),
    ],
)
def test_a_group_gives_its_people_its_role_there_where_they_are_named(given: Message, role: str | None) -> None:
    assert control(msgspec.structs.replace(RULES, groups=GROUPS)).find_role(given) == role


def test_each_of_a_group_has_its_pace_and_a_role_may_have_one() -> None:
    access = control(msgspec.structs.replace(RULES, rate=3, rates={"guest": 1}, groups=GROUPS), lambda: 0.0)
    people = [(message("net", "5"), 2), (message("net", "6"), 3), (message("net", "7"), 1), (message("open", "9"), 1)]
    for given, most in people:
        role = access.find_role(given)
        assert role
        assert [access.is_too_fast(given, role) for _ in range(most + 1)] == [False] * most + [True]


async def test_in_a_home_with_groups_nobody_is_guessed_to_be_the_owner() -> None:
    alone = {"net": frozenset({"2"})}
    for groups, owner in (({}, "owner"), (GROUPS, "user")):
        access = control(AccessRules("ignore", 30, users=alone, groups=groups))
        await access.apply_rules(access.rules)
        assert access.find_role(message("net", "2")) == owner
    access = control(AccessRules("ignore", 30, groups={"all": PeopleGroup(frozenset({"net:7"}), "user")}))
    await access.apply_rules(access.rules)
    assert access.find_role(message("net", "7")) == "user"
    assert "access: {owners: {net" in access.suggest_owner()
    assert access.has_others()


def test_an_admin_of_a_group_is_asked_for_their_yes() -> None:
    rules = msgspec.structs.replace(RULES, groups=GROUPS, approvers=frozenset({"admin"}))
    assert ("net", "6") in control(rules).list_approvers()
    assert ("net", "5") not in control(rules).list_approvers()


@pytest.mark.row("T17")
@pytest.mark.parametrize("user", ["app", "app:1", "1"])
def test_a_program_is_what_its_key_is_whatever_the_rules_say(user: str) -> None:
    named = {"api": frozenset({"app", "app:1", "1"})}
    group = PeopleGroup(frozenset({"api:app", "api:app:1"}), "admin")
    rules = msgspec.structs.replace(
        RULES, owners=named, admins=named, users=named, everybody=frozenset({"api"}), groups={"all": group}
    )
    asked = message("api", user)
    assert control(rules).find_role(asked) is None, "nobody has such a key"
    keyed = AccessControl(rules, Pairings(MemoryEngine()), find_program_role=lambda _user: "operator")
    assert keyed.find_role(asked) == "operator"
    approving = msgspec.structs.replace(rules, approvers=frozenset({"asker", "operator", "admin"}))
    keyed = AccessControl(approving, Pairings(MemoryEngine()), find_program_role=lambda _user: "operator")
    assert not keyed.can_approve_own(asked)


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


def test_a_message_counts_when_it_was_sent_and_what_is_more_than_a_minutes_is_due_later() -> None:
    access = control(AccessRules("ignore", 2, users=RULES.users), lambda: 1000.0)
    person = message("net", "2")
    hours = [access.find_pause(person, "user", age=60.0 * minutes) for minutes in range(600, 0, -1)]
    assert hours == [0.0] * 600
    again = [access.find_pause(person, "user", age=60.0 * minutes) for minutes in (600, 599, 1)]
    assert again == [0.0] * 3, "another chat of theirs, read afterwards"
    access = control(AccessRules("ignore", 2, users=RULES.users), lambda: 1000.0)
    at_once = [access.find_pause(person, "user", age=age) for age in (30.5, 30.4, 30.5, 30.6)]
    assert at_once[:2] == [0.0, 0.0]
    assert all(pause and 29 < pause < 60 for pause in at_once[2:]), "of what was sent at one time none comes before"
    access = control(AccessRules("ignore", 2, users=RULES.users), lambda: 1000.0)
    now = [access.find_pause(person, "user", waiting=3) for _ in range(7)]
    assert now == [0.0, 0.0, 60.0, 60.0, 120.0, None, None]
    assert access.find_pause(person, "user", age=-50.0, waiting=4) == 120.0, "none is sent after it was read"


def test_what_waits_is_within_the_pace_of_the_minute_in_which_it_is_due() -> None:
    now = [0.0]
    access = control(AccessRules("ignore", 2, users=RULES.users), lambda: now[0])
    person = message("net", "2")
    assert [access.find_pause(person, "user") for _ in range(3)] == [0.0, 0.0, 60.0]
    now[0] = 61.0
    assert [access.find_pause(person, "user") for _ in range(2)] == [0.0, 59.0]
    assert access.is_too_fast(person, "user")


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

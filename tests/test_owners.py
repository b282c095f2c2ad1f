"""The owner of a home without a configured owner: the only person in a list, for as long as it names them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from gateway.access.access_control import AccessControl
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules
from gateway.messages.message import Address, ChatType, Message
from tests.engine.memory_engine import MemoryEngine

pytestmark = pytest.mark.row("T9")

ANN, BEN = frozenset({"1001"}), frozenset({"2002"})
HOST = "whoever sits at the terminal"


def rules(**more: Any) -> AccessRules:
    return AccessRules("pair", 30, **{"users": {"net": ANN}, **more})


def by(user: str, chat_type: ChatType = "dm", platform: str = "net") -> Message:
    return Message("1", Address(platform, f"chat{user}", chat_type), user, "hello")


@pytest.fixture
async def engine() -> AsyncIterator[MemoryEngine]:
    async with MemoryEngine() as engine:
        yield engine


async def started(engine: MemoryEngine, given: AccessRules) -> AccessControl:
    """A gateway's access after a start on this journal."""
    access = AccessControl(given, Pairings(engine))
    await access.pairings.last.load()
    await access.apply_rules(given)
    return access


async def paired(access: AccessControl, user: str, role: Any = "user") -> None:
    await access.pairings.approve(await access.invite(by(user)), HOST, role)


@pytest.mark.parametrize(
    ("given", "owners"),
    [
        ({}, {"net": "1001"}),
        ({"group_users": {"net": ANN}}, {"net": "1001"}),
        ({"chats": {"net": frozenset({"room"})}}, {"net": "1001"}),
        ({"users": {"net": ANN, "other": BEN}}, {"net": "1001", "other": "2002"}),
        ({"users": {"net": ANN | BEN}}, {}),
        ({"group_users": {"net": BEN}}, {}),
        ({"users": {}, "group_users": {"net": ANN}}, {}),
        ({"everybody": frozenset({"net"})}, {}),
        ({"everybody": frozenset({"other"})}, {"net": "1001"}),
        ({"roles": {"net": frozenset({"7"})}}, {}),
        ({"admins": {"other": BEN}}, {}),
        ({"owners": {"net": BEN}, "names_owners": True}, {}),
        ({"users": {}}, {}),
    ],
)
async def test_the_only_one_whom_a_list_names_is_the_owner(
    engine: MemoryEngine, given: Mapping[str, Any], owners: Mapping[str, str]
) -> None:
    access = await started(engine, rules(**given))
    assert access.owners == owners
    for network, user in owners.items():
        assert access.find_role(by(user, "dm", network)) == access.find_role(by(user, "group", network)) == "owner"


async def test_nothing_that_is_done_for_others_takes_it_from_them(engine: MemoryEngine) -> None:
    await paired(await started(engine, rules()), "3003", "admin")
    for more in (
        {},
        {"users": {"net": ANN | BEN}},
        {"admins": {"net": BEN}},
        {"everybody": frozenset({"net"})},
        {"roles": {"net": frozenset({"7"})}},
    ):
        access = await started(engine, rules(**more))
        assert access.find_role(by("1001")) == "owner", more
        assert access.find_role(by("2002")) != "owner", more


async def test_who_is_in_no_list_any_more_owns_nothing(engine: MemoryEngine) -> None:
    access = await started(engine, rules())
    await access.apply_rules(rules(users={"net": BEN}))
    assert (access.find_role(by("1001")), access.find_role(by("2002"))) == (None, "owner")
    await access.apply_rules(rules(users={}))
    assert access.owners == {}


async def test_a_line_that_names_owners_always_wins(engine: MemoryEngine) -> None:
    access = await started(engine, rules())
    await access.apply_rules(rules(owners={"net": BEN}, names_owners=True))
    assert (access.find_role(by("1001")), access.find_role(by("2002"))) == ("user", "owner")
    assert (await started(engine, rules(users={"net": ANN | BEN}))).owners == {}


async def test_where_somebody_was_let_in_as_admin_nobody_is_guessed_to_be_the_owner(engine: MemoryEngine) -> None:
    await paired(await started(engine, rules(users={})), "3003", "admin")
    assert (await started(engine, rules())).owners == {}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, ""),
        ({"users": {}}, ""),
        ({"users": {"net": ANN | BEN}, "admins": {"net": BEN}}, ""),
        (
            {"users": {"net": ANN | BEN}},
            'access: {owners: {net: ["1001"]}} (whichever of 1001, 2002 is you)',
        ),
        ({"roles": {"net": frozenset({"7"})}}, 'access: {owners: {net: ["1001"]}}'),
        (
            {"users": {}, "everybody": frozenset({"net"})},
            'access: {owners: {net: ["ID"]}} (with your own id there)',
        ),
    ],
)
async def test_where_nobody_may_approve_the_line_that_names_somebody_is_told(
    engine: MemoryEngine, given: Mapping[str, Any], line: str
) -> None:
    assert (await started(engine, rules(**given))).suggest_owner().strip() == line


async def test_who_was_let_in_by_a_code_stands_in_that_line_too(engine: MemoryEngine) -> None:
    access = await started(engine, rules(users={}))
    await paired(access, "3003")
    assert access.suggest_owner().strip() == 'access: {owners: {net: ["3003"]}}'
    await paired(access, "4004", "owner")
    assert access.suggest_owner() == ""

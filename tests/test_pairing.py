"""Pairing: a code that a stranger shows, valid once and for an hour, for direct messages alone; guessing is limited."""

from collections.abc import AsyncIterator

import pytest

from gateway.access.access_control import AccessControl
from gateway.access.pairing import CODE_PAUSE, MOST_ASKING, Pairings
from gateway.access.pairing_journal import CODE_LIFETIME, MOST_WRONG
from gateway.access.rules import AccessRules
from gateway.errors import AccessError
from gateway.messages.message import Address, ChatType, Message, MessageKind
from gateway.messages.roles import Role
from gateway.records import subjects
from tests.engine.memory_engine import MemoryEngine
from tests.spine import SetClock

pytestmark = pytest.mark.row("T18")
BY = "whoever tries codes"


def asked(
    user: str = "3", chat_type: ChatType = "dm", kind: MessageKind = "text", platform: str = "net", name: str = "Cy"
) -> Message:
    return Message("1", Address(platform, f"chat{user}", chat_type), user, "hello", user_name=name, kind=kind)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(1_000_000.0)


@pytest.fixture
async def engine() -> AsyncIterator[MemoryEngine]:
    async with MemoryEngine() as engine:
        yield engine


@pytest.fixture
async def pairings(engine: MemoryEngine, clock: SetClock) -> Pairings:
    return Pairings(engine, clock)


async def test_a_code_lets_one_person_speak_in_direct_messages(pairings: Pairings) -> None:
    access = AccessControl(AccessRules("pair", 30), pairings)
    code = await access.invite(asked())
    assert access.find_role(asked()) is None
    guest = await pairings.approve(f" {code.lower()} ", BY)
    assert (guest.platform, guest.user_id, guest.chat_id) == ("net", "3", "chat3")
    assert access.find_role(asked()) == "user"


async def test_it_gives_no_group_no_other_network_and_no_other_person_anything(pairings: Pairings) -> None:
    access = AccessControl(AccessRules("pair", 30), pairings)
    await pairings.approve(await access.invite(asked()), BY)
    for elsewhere in (asked(chat_type="group"), asked(chat_type="thread"), asked(platform="other"), asked("4")):
        assert access.find_role(elsewhere) is None
    assert access.find_role(asked("4", name="Cy")) is None


async def test_a_code_counts_once(pairings: Pairings) -> None:
    code = await pairings.invite(asked())
    await pairings.approve(code, BY)
    with pytest.raises(AccessError, match="the code was not found"):
        await pairings.approve(code, BY)


async def test_a_code_is_good_for_an_hour(pairings: Pairings, clock: SetClock) -> None:
    code = await pairings.invite(asked())
    clock.now += CODE_LIFETIME + 1
    assert not pairings.asking
    with pytest.raises(AccessError, match="more than an hour"):
        await pairings.approve(code, BY)


async def test_a_new_code_takes_the_place_of_the_old_one_and_comes_once_in_a_while(
    pairings: Pairings, clock: SetClock
) -> None:
    old = await pairings.invite(asked())
    assert await pairings.invite(asked()) == ""
    clock.now += CODE_PAUSE
    new = await pairings.invite(asked())
    assert len(pairings.asking) == 1
    with pytest.raises(AccessError):
        await pairings.approve(old, BY)
    await pairings.approve(new, BY)


async def test_only_so_many_can_ask(pairings: Pairings, clock: SetClock) -> None:
    for number in range(MOST_ASKING):
        assert await pairings.invite(asked(str(number)))
    assert await pairings.invite(asked("one more")) == ""
    assert await pairings.invite(asked("elsewhere", platform="other"))
    clock.now += CODE_LIFETIME
    assert await pairings.invite(asked("one more"))


async def test_wrong_codes_cannot_be_tried_for_long(pairings: Pairings, clock: SetClock) -> None:
    code = await pairings.invite(asked())
    for _ in range(MOST_WRONG):
        with pytest.raises(AccessError, match="not found"):
            await pairings.approve("WRONG", BY)
    with pytest.raises(AccessError, match="too many wrong codes"):
        await pairings.approve(code, BY)
    clock.now += CODE_LIFETIME
    await pairings.approve(await pairings.invite(asked()), BY)


async def test_who_tries_wrong_codes_waits_alone_and_also_after_a_restart(
    pairings: Pairings, engine: MemoryEngine, clock: SetClock
) -> None:
    code = await pairings.invite(asked())
    for _ in range(MOST_WRONG + 3):
        with pytest.raises(AccessError):
            await pairings.approve("WRONG", "net:mallory")
    again = Pairings(engine, clock)
    with pytest.raises(AccessError, match="too many wrong codes"):
        await again.approve(code, "net:mallory")
    assert (await again.approve(code, "whoever sits at the terminal")).user_id == "3"


async def test_a_right_code_takes_the_wrong_ones_before_it_back(pairings: Pairings) -> None:
    for user in ("3", "4"):
        code = await pairings.invite(asked(user))
        for _ in range(MOST_WRONG - 1):
            with pytest.raises(AccessError):
                await pairings.approve("WRONG", BY)
        await pairings.approve(code, BY)


@pytest.mark.parametrize("role", ["operator", "admin", "owner"])
async def test_a_higher_role_counts_wherever_that_id_speaks_and_nowhere_else(pairings: Pairings, role: Role) -> None:
    access = AccessControl(AccessRules("pair", 30), pairings)
    await pairings.approve(await access.invite(asked()), BY, role)
    assert [access.find_role(asked(chat_type=where)) for where in ("dm", "group", "thread")] == [role] * 3
    assert access.find_role(asked(platform="other")) is None
    assert access.find_role(asked("4", name="Cy")) is None


@pytest.mark.parametrize("message", [asked(chat_type="group"), asked(kind="edit"), asked(kind="button"), asked("")])
async def test_nobody_gets_a_code_in_a_group_or_for_what_is_no_message(pairings: Pairings, message: Message) -> None:
    assert await pairings.invite(message) == ""


async def test_nobody_gets_a_code_where_strangers_are_ignored(pairings: Pairings) -> None:
    assert await AccessControl(AccessRules("ignore", 30), pairings).invite(asked()) == ""


async def test_who_was_let_in_and_who_asks_is_known_after_a_restart(
    pairings: Pairings, engine: MemoryEngine, clock: SetClock
) -> None:
    await pairings.approve(await pairings.invite(asked("3")), BY)
    code = await pairings.invite(asked("4"))
    again = Pairings(engine, clock)
    await again.last.load()
    assert again.find_role("net", "3") == "user"
    assert (await again.approve(code, BY)).user_id == "4"


async def test_who_is_shut_out_may_speak_no_more(pairings: Pairings) -> None:
    await pairings.approve(await pairings.invite(asked()), BY)
    await pairings.revoke("net", "3")
    assert pairings.find_role("net", "3") is None
    with pytest.raises(AccessError, match="configuration"):
        await pairings.revoke("net", "3")


async def test_no_code_stands_in_the_journal_and_only_one_record_does(
    pairings: Pairings, engine: MemoryEngine, clock: SetClock
) -> None:
    codes = [await pairings.invite(asked(str(number))) for number in range(3)]
    kept = await engine.read(subjects.ACCESS_SUBJECT)
    assert len(kept) == 1
    assert not [code for code in codes if code.encode() in kept[0].data]


async def test_two_gateways_on_one_journal_do_not_undo_each_others_decisions(
    pairings: Pairings, engine: MemoryEngine, clock: SetClock
) -> None:
    other = Pairings(engine, clock)
    code = await pairings.invite(asked("3"))
    assert await other.invite(asked("4"))
    assert [one.user_id for one in other.asking] == ["3", "4"]
    assert (await pairings.approve(code, BY)).user_id == "3"
    assert [one.user_id for one in pairings.asking] == ["4"]


async def test_who_asks_has_a_number_that_nobody_gets_after_them(pairings: Pairings, clock: SetClock) -> None:
    for user in ("3", "4"):
        await pairings.invite(asked(user))
    clock.now += CODE_LIFETIME + 1
    await pairings.invite(asked("5"))
    assert [(one.user_id, one.number) for one in pairings.asking] == [("5", 3)]
    for number in (0, 1, 2, 4):
        with pytest.raises(AccessError, match="no pairing request has the number"):
            await pairings.approve_number(number)
    guest = await pairings.approve_number(3, "operator")
    assert (guest.user_id, guest.role) == ("5", "operator")
    assert pairings.find_role("net", "5") == "operator"
    assert not pairings.asking


async def test_a_code_that_could_not_be_sent_is_told_again(pairings: Pairings) -> None:
    await pairings.invite(asked())
    assert await pairings.invite(asked()) == ""
    await pairings.note_untold("net", "chat3")
    (asking,) = pairings.asking
    assert (asking.number, asking.told) == (1, False)
    code = await pairings.invite(asked())
    (asking,) = pairings.asking
    assert (asking.number, asking.told) == (1, True)
    assert await pairings.invite(asked()) == ""
    await pairings.approve(code, BY)

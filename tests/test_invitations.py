"""Invitations: a code that is valid once and for a while, as long as its author may give its role."""

from collections.abc import AsyncIterator, Callable

import pytest

from gateway.access.invitations import LONGEST, MOST_OPEN
from gateway.access.pairing import Pairings
from gateway.access.pairing_journal import MOST_TRYING, MOST_WRONG
from gateway.engine.journal_clock import Clock
from gateway.errors import AccessError
from gateway.messages.message import Address, Message
from gateway.messages.roles import Role
from gateway.records import subjects
from tests.engine.memory_engine import MemoryEngine
from tests.spine import SetClock

pytestmark = pytest.mark.row("T18")
ANN = "net:1"


def said(user: str = "3", platform: str = "net") -> Message:
    return Message("1", Address(platform, f"chat{user}"), user, "/start CODE", user_name="Cy")


def always(_given: object) -> bool:
    return True


def never(_given: object) -> bool:
    return False


@pytest.fixture
def machine() -> SetClock:
    return SetClock(1000.0)


@pytest.fixture
def wall() -> SetClock:
    return SetClock(1_000_000.0)


@pytest.fixture
async def engine(wall: SetClock, machine: SetClock) -> AsyncIterator[MemoryEngine]:
    async with MemoryEngine(Clock(wall=wall, machine=machine, boot=1)) as engine:
        yield engine


@pytest.fixture
def pairings(engine: MemoryEngine, wall: SetClock) -> Pairings:
    return Pairings(engine, wall)


async def use(pairings: Pairings, code: str, user: str = "3", may_give: Callable[..., bool] = always) -> Role:
    return (await pairings.invitations.use(code, said(user), may_give, never)).role


async def test_whoever_comes_first_is_let_in_and_nobody_after_them(pairings: Pairings) -> None:
    code, _ = await pairings.invitations.make("operator", 3600, ANN)
    assert await use(pairings, f" {code.lower()} ") == "operator"
    assert pairings.find_role("net", "3") == "operator"
    with pytest.raises(AccessError, match="no longer valid"):
        await use(pairings, code, "4")
    assert pairings.find_role("net", "4") is None


async def test_its_code_stands_nowhere(pairings: Pairings, engine: MemoryEngine) -> None:
    code, made = await pairings.invitations.make("user", 3600, ANN)
    assert code not in str(made)
    kept = await engine.last(subjects.ACCESS_SUBJECT)
    assert kept
    assert code.encode() not in kept.data


@pytest.mark.parametrize("lifetime", [0.0, 59.0, LONGEST + 1, float("nan"), float("inf")])
async def test_it_lasts_neither_for_ever_nor_not_at_all(pairings: Pairings, lifetime: float) -> None:
    with pytest.raises(AccessError, match="from a minute to seven days"):
        await pairings.invitations.make("user", lifetime, ANN)


async def test_its_time_goes_on_whatever_the_wall_clock_is_set_to(
    pairings: Pairings, engine: MemoryEngine, wall: SetClock, machine: SetClock
) -> None:
    code, _ = await pairings.invitations.make("user", 3600, ANN)
    wall.now -= 86400.0
    machine.now += 3601.0
    assert not pairings.invitations.open
    with pytest.raises(AccessError, match="no longer valid"):
        await use(Pairings(engine, wall), code)


async def test_it_ends_with_the_right_of_whoever_made_it(pairings: Pairings) -> None:
    code, _ = await pairings.invitations.make("admin", 3600, ANN)
    with pytest.raises(AccessError, match="no longer valid"):
        await use(pairings, code, may_give=lambda made: made.by != ANN)
    assert await pairings.forget("net", "1")
    assert not pairings.invitations.open


async def test_it_is_taken_back_by_its_number_which_nobody_who_asks_has(pairings: Pairings) -> None:
    code, made = await pairings.invitations.make("user", 3600, ANN)
    await pairings.invite(said("5"))
    assert [one.number for one in pairings.asking] == [made.number + 1]
    await pairings.invitations.take_back(made.number)
    for number in (made.number, made.number + 1, 0):
        with pytest.raises(AccessError, match="no invitation has the number"):
            await pairings.invitations.take_back(number)
    with pytest.raises(AccessError, match="no longer valid"):
        await use(pairings, code)


async def test_who_has_as_much_already_leaves_it_for_others(pairings: Pairings) -> None:
    code, _ = await pairings.invitations.make("user", 3600, ANN)
    with pytest.raises(AccessError, match="still valid"):
        await pairings.invitations.use(code, said(), always, always)
    assert await use(pairings, code, "4") == "user"


async def test_who_was_let_in_by_one_asks_no_more(pairings: Pairings) -> None:
    asked = await pairings.invite(said())
    code, _ = await pairings.invitations.make("user", 3600, ANN)
    await use(pairings, code)
    assert not pairings.asking
    with pytest.raises(AccessError):
        await pairings.approve(asked, ANN, "admin")


async def test_wrong_codes_cannot_be_tried_for_long_also_after_a_restart(
    pairings: Pairings, engine: MemoryEngine, wall: SetClock
) -> None:
    code, _ = await pairings.invitations.make("user", 86400, ANN)
    for _ in range(MOST_WRONG):
        with pytest.raises(AccessError, match="no longer valid"):
            await use(pairings, "WRONG")
    again = Pairings(engine, wall)
    with pytest.raises(AccessError, match="too many wrong codes"):
        await use(again, code)
    assert await use(again, code, "4") == "user"


async def test_only_so_many_who_try_are_remembered(pairings: Pairings, engine: MemoryEngine) -> None:
    """Strangers choose neither how much is kept nor who is forgotten first."""
    await pairings.invitations.make("user", 86400, ANN)
    for user in range(MOST_TRYING + 20):
        with pytest.raises(AccessError):
            await use(pairings, "WRONG", str(user))
    kept = await engine.last(subjects.ACCESS_SUBJECT)
    assert kept
    assert len(kept.data) < 100 * MOST_TRYING


async def test_only_so_many_are_open(pairings: Pairings) -> None:
    for _ in range(MOST_OPEN):
        await pairings.invitations.make("user", 3600, ANN)
    with pytest.raises(AccessError, match="are open"):
        await pairings.invitations.make("user", 3600, ANN)

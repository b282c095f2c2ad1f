"""Two bots of one network at once, on every network and in each of its modes: neither has anything of the other's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.daemon.platforms import steer_platform
from gateway.daemon.status import StatusReport
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, Wire
from tests.adapters.bot_pairs import PAIRS, serving_pair
from tests.spine import until


@pytest.fixture(params=PAIRS)
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[House, Wire]]:
    """Yield the unnamed bot's wire, with all its events; and the wire of `work`."""
    async with serving_pair(request.param) as (first, second):
        settings = "agents: {sales: {}}\nroutes: [{account: work, agent: sales}]\n"
        async with housed(second, tmp_path / "home", settings=settings, beside=[first], account="work") as house:
            await until(lambda: all(one.presence.facts.up for one in house.gateway.platforms), "both bots")
            yield House(first, house.gateway, house.events), second


async def shows(wire: Wire, text: str, count: int = 1) -> None:
    await until(lambda: sum(text in one.text for one in wire.shown) >= count, f"{count} x {text!r}")


async def test_two_bots_have_conversations_agents_and_commands_of_their_own(both: tuple[House, Wire]) -> None:
    house, work = both
    network = house.wire.network
    await house.wire.write("what is it?")
    await shows(house.wire, "It is 42.")
    await work.write("what is it?")
    await shows(work, "It is 42.")
    own, theirs = house.told("message:received")
    assert [(one["account"], one["agent"]) for one in (own, theirs)] == [("", "main"), ("work", "sales")]
    assert own["session_key"] == f"agent:main:{network}:dm:{own['chat_id']}"
    assert theirs["session_key"] == f"agent:main:{network}:work:dm:{theirs['chat_id']}"
    await work.write("/whoami")
    await shows(work, f"{network}:work user {work.known_as(ANN)}")
    await house.wire.write("/whoami")
    await shows(house.wire, f"{network} user {house.wire.known_as(ANN)}")
    assert (len(house.wire.shown), len(work.shown)) == (2, 2)


async def test_one_is_paused_and_the_other_goes_on_and_each_reads_what_was_said_to_it_alone(
    both: tuple[House, Wire],
) -> None:
    house, work = both
    network, platforms = house.wire.network, house.gateway.platforms
    for wire in (house.wire, work):
        await wire.write("hello")
        await shows(wire, "I heard you.")
    steer_platform(platforms, "pause", f"{network}:work")
    paused = next(one for one in platforms if one.name == f"{network}:work")
    await until(lambda: paused.part.facts.state == "paused", "the pause")
    await work.write("what is it?")
    await house.wire.write("and you?", by=BEN)
    await shows(house.wire, "I heard you.", 2)
    status = await StatusReport(house.gateway.groups.bind).build()
    assert [status["platforms"][name]["up"] for name in (network, f"{network}:work")] == [True, False]
    assert len(work.shown) == 1
    steer_platform(platforms, "resume", f"{network}:work")
    await shows(work, "It is 42.")
    steer_platform(platforms, "restart", network)
    await until(lambda: house.presence.up, "the other bot")
    await house.wire.write("what is it?")
    await shows(house.wire, "It is 42.")
    received = [(one["account"], one["text"]) for one in house.told("message:received")]
    assert sorted(received) == [
        ("", "and you?"),
        ("", "hello"),
        ("", "what is it?"),
        ("work", "hello"),
        ("work", "what is it?"),
    ]
    assert (len(house.wire.shown), len(work.shown)) == (3, 2)

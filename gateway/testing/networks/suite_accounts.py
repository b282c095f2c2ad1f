"""A bot of a network that has a name of its own: an account, of which the network may have several.

Like `suite`, of which its tests are a part. That two of them have nothing of each other's takes a wire for each.
"""

from pathlib import Path

import pytest

from gateway.daemon.platforms import steer_platform
from gateway.daemon.status import build_status
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import ANN, Wire

ROUTED = "agents: {sales: {}}\nroutes: [{account: work, agent: sales}]\n"
pytestmark = pytest.mark.anyio


async def test_a_bot_with_a_name_has_sessions_and_an_agent_of_its_own(wire: Wire, tmp_path: Path) -> None:
    name = f"{wire.network}:work"
    async with housed(wire, tmp_path / "home", settings=ROUTED, account="work") as house:
        await wire.write("what is it?")
        await house.shows("It is 42.")
        (received,) = await house.hears("message:received")
        assert (received["account"], received["agent"]) == ("work", "sales")
        assert received["session_key"] == f"agent:main:{name}:dm:{received['chat_id']}"
        await wire.write("/whoami")
        await house.shows(f"{name} user {wire.known_as(ANN)}")
        served = (await build_status(house.gateway))["platforms"]
        assert {one: about["up"] for one, about in served.items() if one.startswith(wire.network)}[name] is True
        to = f"{name}:{received['chat_id']}"
        await house.gateway.hook_requests("lunch", "send", {"to": to, "text": "Lunch?"}, "")
        (shown,) = await house.shows("Lunch?")
        assert shown.chat == ANN


async def test_a_bot_with_a_name_goes_on_where_it_was(wire: Wire, tmp_path: Path) -> None:
    """After a pause, and when the gateway is started anew."""
    async with housed(wire, tmp_path / "home", account="work") as house:
        await wire.write("and you?")
        await house.shows("I heard you.")
        steer_platform(house.gateway.platforms, "pause", house.name)
        await until(lambda: house.part.state == "paused", "the pause")
        await wire.write("what is it?")
        steer_platform(house.gateway.platforms, "resume", house.name)
        await house.shows("It is 42.")
    await wire.write("what is it?")
    async with housed(wire, tmp_path / "home", account="work") as house:
        await house.shows("It is 42.", 2)
        assert len(wire.shown) == 3

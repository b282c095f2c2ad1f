"""A bot that another gateway may serve by now: no reply goes out from here on any network, and none is lost."""

from pathlib import Path
from typing import Any

import pytest

from gateway.messages.message import Reply, address_of
from gateway.records import records, subjects
from gateway.testing.networks.house import House, housed
from tests.adapters.wires import ROOMS, WIRES
from tests.spine import until


@pytest.mark.parametrize("network", ROOMS)
async def test_a_reply_is_sent_only_as_long_as_the_bot_is_ours_for_certain(network: str, tmp_path: Path) -> None:
    wire: Any = WIRES[network](tmp_path)
    async with wire.serving(), housed(wire, tmp_path / "home") as house:
        (platform,) = house.gateway.platforms
        certain, seconds = platform.presence.certain_for, 0.0
        assert certain() > 0
        platform.presence.certain_for = lambda: seconds
        await house.gateway.outbox.post(Reply("r", address_of(network, ROOMS[network]), "hello there"))
        await until(lambda: is_refused(house), "that it is not sent")
        assert not house.with_text("hello there")
        seconds = 1.0
        await house.shows("hello there")


async def is_refused(house: House) -> bool:
    """The call for the reply, or one before it that ended all the network does."""
    found = records.read_all(house.gateway.engine, subjects.SEND_SUBJECTS, records.SendFailed)
    told = [house.part.detail, *[kept.error async for _, kept in found]]
    return any(f"another gateway may serve {house.name}" in one for one in told)

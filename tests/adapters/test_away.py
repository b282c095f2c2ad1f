"""Messages written over hours that a network delivers at once are no flood if the network says when they came."""

from pathlib import Path
from typing import Any

import pytest

from gateway.testing.live_gateway import until
from gateway.testing.networks.house import housed
from tests.adapters.wires import WIRES

HOUR = 3600.0
PACE = "access: {rate: 2}\n"


@pytest.mark.parametrize("network", ["telegram", "discord", "slack"])
async def test_what_came_over_hours_is_answered_at_once_and_what_comes_now_keeps_the_pace(
    network: str, tmp_path: Path
) -> None:
    wire: Any = WIRES[network](tmp_path / "home")
    wire.ago = 11 * HOUR  # Slack's stamps only rise
    async with wire.serving(), housed(wire, tmp_path / "home", settings=PACE) as house:
        for hours in range(10, 0, -1):
            wire.ago = hours * HOUR
            await wire.write(f"{hours} hours ago: what is it?")
        wire.ago = 0.0
        await until(lambda: len(house.told("message:received")) == 10, "all of them")
        assert not house.with_text("reached the rate limit")
        for _ in range(3):
            await wire.write("and you?")
        await house.shows("your last message waits")
        await until(lambda: len(house.told("message:received")) == 12, "two of three")

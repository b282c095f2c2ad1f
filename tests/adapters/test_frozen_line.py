"""A line that is open, and on which nothing comes any more, is noticed in time on every network; and it mends."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.daemon.alerts import ALERT_AFTER
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import GROUP
from tests.adapters.line import line_to
from tests.adapters.payloads import PAYLOADS
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.wires import WIRES
from tests.spine import until
from tests.waits import Stopwatch

NOTICED = 30.0
ALERTED = 15.0
BUSY_SECONDS = 20.0  # that a machine with other work may take besides


async def freeze(network: str, root: Path, noticed: dict[str, float]) -> None:
    """A gateway on a line that freezes for a while: notes after how long it says so, and that it goes on."""
    wire: Any = WIRES[network](root)
    async with wire.serving(), line_to(wire.url) as (url, line):
        wire.url = url
        async with housed(wire, root) as house:
            await wire.write("hello")
            await house.shows("I heard you.")
            with Stopwatch() as watch:
                line.flows.clear()
                await until(lambda: not house.presence.up, f"the news of {network}", 2 * NOTICED)
            noticed[network] = watch.seconds
            line.flows.set()
            await wire.write("what is it?")
            await until(lambda: house.with_text("It is 42."), f"the return of {network}", 60)


@pytest.mark.timeout(200)
async def test_a_frozen_line_is_noticed_within_half_a_minute_and_mends(tmp_path: Path) -> None:
    noticed: dict[str, float] = {}
    async with anyio.create_task_group() as tasks:
        for network in PAYLOADS:
            tasks.start_soon(partial(freeze, network, tmp_path / network, noticed))
    assert set(noticed) == set(PAYLOADS)
    assert max(noticed.values()) <= NOTICED, noticed


@pytest.mark.timeout(200)
async def test_a_frozen_line_is_told_in_the_home_channel_of_another_network_and_so_is_its_return(
    tmp_path: Path,
) -> None:
    wire: Any = WIRES["slack"](tmp_path)
    other, home = TelegramWire(), f"platforms: {{telegram: {{home_channel: '{GROUP}'}}}}\n"

    def hears(words: str) -> bool:
        return any(words in one.text for one in other.shown)

    async with wire.serving(), other.serving(), line_to(wire.url) as (url, line):
        wire.url = url
        async with housed(wire, tmp_path / "home", settings=home, beside=[other]) as house:
            await until(lambda: all(one.presence.facts.up for one in house.gateway.platforms), "both networks", 60)
            line.flows.clear()
            await until(lambda: not house.presence.up, "the news", 2 * NOTICED)
            await until(lambda: hears("slack is down"), "the alert", ALERTED + BUSY_SECONDS)
            line.flows.set()
            await until(lambda: hears("slack works again"), "the good news", 60)


def test_what_is_down_is_told_in_time() -> None:
    assert ALERT_AFTER <= ALERTED

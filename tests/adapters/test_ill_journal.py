"""People who wait for an answer learn of a journal that cannot be written, on every network, past the journal."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.daemon.alerts import ILL, ILL_HOME
from gateway.testing.networks.house import housed
from gateway.testing.networks.wire import BEN
from tests.adapters.wires import ROOMS, WIRES
from tests.daemon.test_damage import take_away
from tests.waits import Stopwatch


def cut_off(journal: Path) -> None:
    with journal.open("r+b") as file:
        file.truncate(journal.stat().st_size // 2)


SLOW = {"user": "slow", "answers": [{"chunks": ["at ", "last"], "delay": "60s"}]}
DAMAGES = {"telegram": cut_off, "discord": take_away, "slack": cut_off}


async def damage(network: str, do: Callable[[Path], None], root: Path, told: dict[str, float]) -> None:
    """Damage a gateway's journal while a person waits, and note when they are notified."""
    wire: Any = WIRES[network](root)
    home = f"platforms: {{{network}: {{home_channel: '{ROOMS[network]}'}}}}\n"
    async with wire.serving(), housed(wire, root, SLOW, {"text": "I heard you."}, settings=home) as house:
        await wire.write("slow")
        await house.hears("llm:before")
        with Stopwatch() as watch:
            do(house.gateway.home.journal)
            await house.shows(ILL)
        told[network] = watch.seconds
        await wire.write("hello", by=BEN)
        await house.shows(ILL, 2)
        await house.shows(ILL_HOME.format("")[:40])
        await anyio.sleep(3)
        assert len(house.with_text(ILL)) == 2  # once to each, however often the network brings it again


@pytest.mark.timeout(120)
async def test_who_waits_is_told_within_five_seconds(tmp_path: Path) -> None:
    told: dict[str, float] = {}
    async with anyio.create_task_group() as tasks:
        for network, do in DAMAGES.items():
            tasks.start_soon(partial(damage, network, do, tmp_path / network, told))
    assert set(told) == set(ROOMS)
    assert max(told.values()) <= 5, told

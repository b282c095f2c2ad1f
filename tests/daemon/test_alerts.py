"""A network that stays down is reported in the home channels of those that work, once, and so is its return."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest

from gateway.adapters.shared.adapter import Presence
from gateway.daemon.alerts import Alerts
from gateway.daemon.platforms import PAUSED_REASON
from gateway.hooks import HookRegistry
from gateway.outbox.outbox import Outbox
from gateway.records import subjects
from tests.engine.memory_engine import MemoryEngine
from tests.spine import chain, until


@dataclass
class Served:
    """As much of a served network as is looked at."""

    name: str
    presence: Presence
    home_channel: str = "home"
    is_elsewhere: bool = False

    @property
    def state(self) -> str:
        return "standby" if self.is_elsewhere else "up"

    @property
    def works(self) -> bool:
        return self.presence.facts.up or self.is_elsewhere


@dataclass
class Town:
    """Two networks, and what was said in their home channels."""

    engine: MemoryEngine
    one: Presence
    other: Presence
    networks: list[Served]

    async def said(self) -> list[tuple[str, str]]:
        out = await chain(self.engine, subjects.OUT_SUBJECTS)
        return [(one.reply.address.platform, one.reply.text) for one in out]

    async def hears(self, count: int) -> list[tuple[str, str]]:
        async def is_there() -> bool:
            return len(await self.said()) >= count

        await until(is_there, f"{count} alerts")
        return await self.said()


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with MemoryEngine() as engine, HookRegistry() as registry, anyio.create_task_group() as tasks:
        one, other = (Presence(name, registry, lambda _detail: None) for name in ("one", "other"))
        networks = [Served("one", one), Served("other", other)]
        served: Any = networks
        alerts = Alerts(served, Outbox(engine), patience=0.03)
        await tasks.start(partial(alerts.run, registry))
        one.up("well")
        other.up("well")
        yield Town(engine, one, other, networks)
        tasks.cancel_scope.cancel()


async def test_what_stays_down_is_told_elsewhere_once_and_its_return_too(town: Town) -> None:
    town.one.down("the token is no longer good")
    assert await town.hears(1) == [("other", "one is down: the token is no longer good")]
    town.one.down("still not")
    await anyio.sleep(0.05)
    town.one.up("well")
    assert (await town.hears(2))[1:] == [("other", "one works again.")]


async def test_what_another_node_serves_is_not_down_and_its_home_channel_is_told(town: Town) -> None:
    town.networks[1].is_elsewhere = True
    town.other.down("it was served here")
    await anyio.sleep(0.1)
    town.one.down("the token is no longer good")
    assert await town.hears(1) == [("other", "one is down: the token is no longer good")]


async def test_what_mends_itself_and_what_was_paused_is_no_news(town: Town) -> None:
    town.one.down("a hiccup")
    town.one.up("well")
    town.other.down(PAUSED_REASON)
    await anyio.sleep(0.05)
    assert await town.said() == []


async def test_where_nothing_works_nobody_can_be_told(town: Town) -> None:
    town.one.down("gone")
    town.other.down("gone too")
    await anyio.sleep(0.05)
    assert await town.said() == []

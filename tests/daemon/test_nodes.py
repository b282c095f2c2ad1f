"""Work that one node at a time does: two on one journal, of each kind of engine that a gateway may have."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.abc
import msgspec
import pytest
from msgspec.structs import replace

from gateway.cluster.nats.engine import open_nats
from gateway.cluster.node_files import (
    OTHER_HOOKS,
    OTHER_SETTINGS,
    digest_of_hooks,
    digest_of_settings,
    list_clock_differences,
    list_differences,
)
from gateway.cluster.nodes import GLANCE, LeasePart, SharedNodes, describe_all
from gateway.cluster.nodes import LEASE_SECONDS as SHIPPED_SECONDS
from gateway.config.node_settings import NODE_ROLES, NodeSettings
from gateway.config.settings import GatewaySettings, Settings
from gateway.daemon.nodes import NodeFiles
from gateway.daemon.parts import ServeFunction
from gateway.engine.interface import HELD_SECONDS, Engine
from gateway.engine.live_messages import LiveLease
from gateway.errors import AdapterError
from gateway.outbox.interface import OutboxSettings
from gateway.records.subjects import presence_subject_of
from gateway.testing.live_gateway import until
from tests.engine.memory_engine import MemoryEngine
from tests.engine.nats_servers import run_servers
from tests.waits import Stopwatch

LEASE_SECONDS = 3.0
STEADY = 16.0  # a lease that is not over when this machine has stood still
pytestmark = pytest.mark.timeout(120)


class Node:
    """One of them, with parts that say when they work."""

    def __init__(self, engine: Engine, name: str, at_work: list[str], lease: float) -> None:
        self.nodes = SharedNodes(engine, name, NODE_ROLES, lease)
        self.at_work = at_work
        self.parts: dict[str, LeasePart] = {}
        self.is_ill = False
        self.files = NodeFiles()
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()

    async def run(self, *keys: str) -> None:
        with self.scope:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self.nodes.run, lambda: self.files)
                for key in keys:
                    self.parts[key] = LeasePart(key, self.make_work(key), self.nodes, key)
                    tasks.start_soon(self.parts[key].run)
        self.ended.set()

    def make_work(self, key: str) -> ServeFunction:
        async def work(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            if self.is_ill:
                raise AdapterError("it cannot be reached from here")
            name = f"{key} on {self.nodes.name}"
            assert not [one for one in self.at_work if one.startswith(f"{key} ")], "two at a time"
            self.at_work.append(name)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self.at_work.remove(name)

        return work

    async def stop(self) -> None:
        self.scope.cancel()
        await self.ended.wait()


class Cluster:
    def __init__(self, tasks: anyio.abc.TaskGroup, engines: list[Engine]) -> None:
        self.at_work: list[str] = []
        self.tasks, self.engines = tasks, engines
        self.begun = 0

    def begin(self, name: str, *keys: str, lease: float = LEASE_SECONDS) -> Node:
        node = Node(self.engines[self.begun], name, self.at_work, lease)
        self.begun += 1
        self.tasks.start_soon(node.run, *keys)
        return node

    async def has(self, *names: str) -> None:
        await until(lambda: sorted(self.at_work) == sorted(names), f"{names}, not {self.at_work},")


@pytest.fixture(params=["memory", "nats"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        if request.param == "nats":
            (server,) = stack.enter_context(run_servers(tmp_path / "nats", 1))
            engines: list[Engine] = [await open_nats(server.url) for _ in range(2)]
        else:
            engines = [MemoryEngine()] * 2
        for engine in engines:
            stack.push_async_callback(engine.close)
        async with anyio.create_task_group() as tasks:
            yield Cluster(tasks, engines)
            tasks.cancel_scope.cancel()


async def test_one_works_the_other_stands_by_and_goes_on_at_once_when_it_ends(cluster: Cluster) -> None:
    one = cluster.begin("one", "tending", lease=3600)
    await cluster.has("tending on one")
    other = cluster.begin("other", "tending", lease=3600)
    await until(lambda: "tending" in other.parts and other.parts["tending"].facts.state == "standby", "the other")
    one.nodes.note_well("tending")  # it says again what it holds, and not only when a fourth of the lease is over
    await until(lambda: other.parts["tending"].facts.detail == "on standby: one serves it", "why")
    await one.stop()
    await cluster.has("tending on other")  # and not when the lease is over
    assert [facts.name for facts in other.nodes.others.list_living()] == []


def test_what_a_dead_node_had_in_hands_comes_to_another_as_soon_as_its_leases_are_over() -> None:
    assert OutboxSettings().ack_wait == HELD_SECONDS <= SHIPPED_SECONDS + GLANCE


async def test_several_bots_are_spread_over_the_nodes_and_stay(cluster: Cluster) -> None:
    keys = ("bot.a", "bot.b", "bot.c")
    cluster.begin("one", *keys, lease=STEADY)
    await cluster.has("bot.a on one", "bot.b on one", "bot.c on one")
    cluster.begin("other", *keys, lease=STEADY)
    await cluster.has("bot.a on other", "bot.b on one", "bot.c on one")
    await anyio.sleep(5)
    await cluster.has("bot.a on other", "bot.b on one", "bot.c on one")


@pytest.mark.parametrize("cluster", ["nats"], indirect=True)
async def test_who_is_cut_off_has_stopped_before_another_begins(cluster: Cluster) -> None:
    cluster.begin("one", "bot.a")
    await cluster.has("bot.a on one")
    other = cluster.begin("other", "bot.a")
    await until(lambda: [facts.name for facts in other.nodes.others.list_living()] == ["one"], "the other")
    with Stopwatch() as watch:
        await cluster.engines[0].close()
        await until(lambda: cluster.at_work == [], "the end")
        await until(lambda: cluster.at_work == ["bot.a on other"], "the other")
    assert watch.seconds < LEASE_SECONDS + 20


class CountingEngine(MemoryEngine):
    """An engine that counts the tries for a lease."""

    tries = 0

    async def lease(self, key: str, holder: str, ttl: float = 10.0) -> LiveLease | None:
        self.tries += 1
        return await super().lease(key, holder, ttl)


async def test_many_who_wait_for_what_a_dead_node_holds_do_not_ask_all_at_once() -> None:
    count, rounds = 40, 3
    async with CountingEngine() as engine, anyio.create_task_group() as tasks:
        assert await engine.lease("tending", "dead", 120)
        cluster = Cluster(tasks, [engine] * count)
        names = [f"node-{number}" for number in range(count)]
        waiting = [cluster.begin(name, "tending").nodes.others for name in names]
        await until(lambda: all(len(others.list_waiting("tending")) == count - 1 for others in waiting), "who waits")
        begun, enough = anyio.current_time(), engine.tries + rounds * count
        await until(lambda: engine.tries >= enough, "their tries")
        took = anyio.current_time() - begun
        tasks.cancel_scope.cancel()
    assert took > 1.5 * rounds * GLANCE  # each asks again after such a moment, and then waits for its turn


async def test_what_is_paused_stays_where_it_is_and_what_cannot_be_done_is_tried_elsewhere(cluster: Cluster) -> None:
    one = cluster.begin("one", "bot.a")
    await cluster.has("bot.a on one")
    other = cluster.begin("other", "bot.a")
    await until(lambda: one.nodes.is_wanted("bot.a"), "who waits")
    one.parts["bot.a"].pause()
    await cluster.has()
    await anyio.sleep(LEASE_SECONDS)
    assert cluster.at_work == []
    one.parts["bot.a"].resume()
    await cluster.has("bot.a on one")
    one.is_ill = True
    one.parts["bot.a"].patience = 1.0
    one.parts["bot.a"].restart()
    await cluster.has("bot.a on other")
    assert other.nodes.describe().works == ("bot.a",)


async def test_who_has_other_files_is_named(cluster: Cluster) -> None:
    one, other = cluster.begin("one"), cluster.begin("other")
    one.files, other.files = NodeFiles("same", "same"), NodeFiles("same", "")  # whose hooks are still read
    named = {"other": ["a is 2 there", "b is missing here"]}

    def list_found() -> list[str]:
        return list_differences(describe_all(one.nodes), one.nodes.others.list_living(), named.__getitem__)

    await until(lambda: [each.settings for each in one.nodes.others.list_living()] == ["same"])
    assert list_found() == []
    other.files = NodeFiles("another", "another")
    await until(
        lambda: (
            list_found()
            == [
                OTHER_SETTINGS.format(name="other"),
                OTHER_HOOKS.format(name="other", which=": a is 2 there; b is missing here"),
            ]
        )
    )
    named["other"] = []  # it has not said yet
    assert "differ from those here (`hermes-gateway hooks list` shows them)" in list_found()[1]
    one.files = other.files
    assert list_found() == []
    one.files = NodeFiles("another", "another", ("barn", "gone"))
    other.files = NodeFiles("another", "another", ("gone", *"abcdef"))
    await until(lambda: len(list_found()) == 2)
    here, there = list_found()
    assert "this gateway lacks skills that conversations have loaded: barn; " in here
    assert "other lacks skills that conversations have loaded: a, b, c, d, e, and 1 more; " in there


async def test_whose_clock_is_another_is_named(cluster: Cluster) -> None:
    one = cluster.begin("one")
    cluster.begin("other")
    await until(one.nodes.others.list_living, "the other")
    assert list_clock_differences(one.nodes) == []
    ahead = replace(describe_all(one.nodes), name="early", run="r", clock=time.time() + 600)
    await cluster.engines[0].publish(presence_subject_of("early"), msgspec.json.encode(ahead))
    await until(lambda: list_clock_differences(one.nodes), "the clock")
    (said,) = list_clock_differences(one.nodes)
    assert said.startswith("the clock of early is 10 min ahead of the one here")


def test_what_is_a_machine_s_own_may_differ() -> None:
    here = Settings()
    assert digest_of_settings(replace(here, node=NodeSettings(name="one"))) == digest_of_settings(here)
    assert digest_of_settings(replace(here, gateway=GatewaySettings(timezone="UTC"))) != digest_of_settings(here)
    assert digest_of_hooks({"a": "1", "b": "2"}) == digest_of_hooks({"b": "2", "a": "1"}) != digest_of_hooks({"a": "1"})
    assert digest_of_hooks({"a": "1", "b": ""}) == ""

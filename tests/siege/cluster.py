"""Three gateways on three NATS servers, people on every network, and harm to gateways and servers while they talk."""

import json
import os
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import anyio
from anyio import to_thread

from gateway.cluster.nats.engine import open_nats
from gateway.errors import EngineError, GatewayError
from gateway.testing import GatewayProcess
from tests.chaos.daemon import Besieged
from tests.engine.nats_servers import NatsServer, find_leader, run_servers
from tests.proof_table import Trial
from tests.siege.cut_calls import CutCalls, CutSends, Kill
from tests.siege.hooks import Notes, take_running
from tests.siege.model import Model
from tests.siege.people import Crowd, until
from tests.siege.processes import end, left_behind
from tests.siege.siege import count_unanswered, settle
from tests.siege.siege import settings as alone
from tests.siege.verdict import Doubt, Verdict, judge, untold
from tests.waits import fail_after

NAMES = ("one", "two", "three")
LONGEST = 180.0
PAUSE = 13.0  # longer than any lease
GLANCE = 0.1
TOOL_SECONDS = 0.5
UNTOLD = re.compile(r"\berror\S* +hooks: ")  # what a gateway says itself that hooks are not told of


@dataclass
class Cluster:
    """The victims; `gaps` are the seconds in which no gateway polled Telegram after a loss."""

    gateways: Sequence[GatewayProcess]
    servers: Sequence[NatsServer]
    crowd: Crowd
    chance: random.Random
    cuts: list[float] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    elections: list[tuple[float, float]] = field(default_factory=list)  # from the loss of a leader to the next one
    faults: list[str] = field(default_factory=list)

    def spawn(self, gateway: GatewayProcess) -> None:
        gateway.process = gateway.spawn("run")

    @property
    def url(self) -> str:
        return ",".join(one.url for one in self.servers)

    async def find_polling(self) -> GatewayProcess:
        """The one that reads on Telegram, as soon as one does."""
        async with fail_after(LONGEST):
            while True:
                for gateway in self.gateways:
                    if await to_thread.run_sync(is_up, gateway, "telegram"):
                        return gateway
                await anyio.sleep(GLANCE)

    async def measure_gap(self) -> None:
        """Measure the time until another gateway polls Telegram."""
        telegram, begun = self.crowd.wires[0], time.monotonic()
        before = telegram.polls
        async with fail_after(LONGEST):
            await until(lambda: telegram.polls > before)
        self.gaps.append(time.monotonic() - begun)


@dataclass
class Aftermath:
    """The results. `rate`: messages a second during the siege; `model` and `sends`: calls that were cut off."""

    cluster: Cluster
    verdict: Verdict
    rate: float
    model: CutCalls
    sends: CutCalls

    def count_hit(self) -> dict[str, int]:
        """In the middle of what gateways were killed, as others saw it."""
        kills = self.cluster.kills
        return {
            "in the middle of a call of the model": self.model.count_hit(kills),
            "in the middle of a tool": sum(kill.tools > 0 for kill in kills),
            "in the middle of a send": self.sends.count_hit(kills),
        }


Deed = Callable[[Cluster], Awaitable[None]]


def ask_status(gateway: GatewayProcess) -> dict[str, Any]:
    """Return its status; empty if it does not answer."""
    try:
        return dict(gateway.call("status"))
    except (GatewayError, OSError):
        return {}


def is_up(gateway: GatewayProcess, network: str) -> bool:
    return bool(ask_status(gateway).get("platforms", {}).get(network, {}).get("up"))


async def kill_any(cluster: Cluster) -> None:
    """In the middle of whatever it does."""
    await anyio.sleep(cluster.chance.uniform(0.0, 2.0))
    await kill(cluster, cluster.chance.choice(cluster.gateways))


async def kill_the_polling_one(cluster: Cluster) -> None:
    """It has the bot's token; another takes it."""
    await anyio.sleep(cluster.chance.uniform(0.0, 2.0))
    await kill(cluster, await cluster.find_polling(), is_polling=True)


async def kill(cluster: Cluster, gateway: GatewayProcess, *, is_polling: bool = False) -> None:
    begun = time.monotonic()
    cluster.cuts.append(begun)
    await to_thread.run_sync(gateway.kill)
    cluster.kills.append(Kill(begun, time.monotonic(), take_running(gateway)))
    if is_polling:
        await cluster.measure_gap()
    cluster.spawn(gateway)


async def pause_the_polling_one(cluster: Cluster) -> None:
    """Pause the polling gateway, which wakes when others have its work, and writes nothing more of it."""
    gateway = await cluster.find_polling()
    process = gateway.process
    assert process
    cluster.cuts.append(time.monotonic())
    process.send_signal(signal.SIGSTOP)
    await cluster.measure_gap()
    await anyio.sleep(PAUSE - min(cluster.gaps[-1], PAUSE))
    cluster.cuts.append(time.monotonic())
    process.send_signal(signal.SIGCONT)


async def kill_the_leader(cluster: Cluster) -> None:
    """The server through which all records go."""
    await anyio.sleep(cluster.chance.uniform(0.0, 2.0))
    async with await open_nats(cluster.url) as engine:
        name, leader = await find_leader(engine)
    server = next(one for one in cluster.servers if one.folder.name == leader)
    others = [one for one in cluster.servers if one is not server]
    begun = time.monotonic()
    cluster.cuts.append(begun)
    server.kill()
    async with fail_after(LONGEST):
        while not await to_thread.run_sync(is_led, others, name, leader):  # noqa: ASYNC110 - asked in a thread
            await anyio.sleep(GLANCE)
        cluster.elections.append((begun, time.monotonic()))
        server.start()
        await until(server.is_ready)


def is_led(servers: Sequence[NatsServer], stream: str, former: str) -> bool:
    """Asks whether one of them sees another leader of the stream than the former one."""
    return any(one.find_leader(stream) not in ("", former) for one in servers)


async def besiege(trial: Trial, folder: Path, deeds: Sequence[Deed], each: int) -> Aftermath:
    """All of these deeds, one after the other, while everybody talks; then it may finish."""
    homes = [folder / name / "home" for name in NAMES]
    for home in homes:
        home.parent.mkdir()
    sockets = [home / "hermes-gateway" / "control.sock" for home in homes]
    crowd, model, sends = Crowd(sockets[0], 1, tuple(sockets[1:]), each), Model(TOOL_SECONDS), CutSends()
    for wire in crowd.wires:
        wire.middlewares.append(sends.delay)
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(run_servers(folder / "nats", len(NAMES)))
        for server in (model, *crowd.wires):
            await stack.enter_async_context(server.serving())
        gateways = [stack.enter_context(Besieged(home, home.parent / "clock", trial.tree)) for home in homes]
        cluster = Cluster(gateways, servers, crowd, random.Random(1))
        for name, gateway in zip(NAMES, gateways, strict=True):
            gateway.environ |= {**crowd.environ, "OPENAI_API_KEY": "loopback"}
            gateway.configure(settings(model, cluster, gateway, name))
        notes = Notes(gateways, folder / "notes", f"1200.{os.getpid():07}")
        stack.callback(clear, gateways, notes)
        for gateway in gateways:
            cluster.spawn(gateway)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crowd.talk)
            async with fail_after(LONGEST):
                await crowd.is_heard()
            begun, before = time.monotonic(), sum(1 for _ in crowd.all_said())
            for number, deed in enumerate(deeds):
                trial.tell(f"{number + 1} of {len(deeds)}: {deed.__name__}, {len(crowd.answered)} answered")
                try:
                    await deed(cluster)
                except (TimeoutError, EngineError) as error:
                    cluster.faults.append(f"{deed.__name__}: {error or 'nothing came of it in time'}")
            crowd.is_over = True
            rate = (sum(1 for _ in crowd.all_said()) - before) / (time.monotonic() - begun)
        trial.tell("what is still owed")
        await settle(partial(count_unanswered, crowd), lambda: len(crowd.answered))
        await settle(lambda: len(untold(crowd, notes, model)), notes.size)
        for gateway in gateways:
            await stop(cluster, gateway)
            cluster.faults += [line for line in gateway.log.read_text().splitlines() if UNTOLD.search(line)]
        crowd.look()
        verdict = judge(crowd, notes, model, Doubt(cluster.cuts, 2.0, cluster.elections))
        return Aftermath(cluster, verdict, rate, model.cut, sends)


def settings(model: Model, cluster: Cluster, gateway: GatewayProcess, name: str) -> str:
    own = {"engine": cluster.url, "node": {"name": name}}
    return json.dumps(json.loads(alone(model, cluster.crowd, gateway)) | own)


async def stop(cluster: Cluster, gateway: GatewayProcess) -> None:
    """One that has just been started takes no signal yet: it is waited for."""
    with anyio.move_on_after(LONGEST):
        while not await to_thread.run_sync(ask_status, gateway):  # noqa: ASYNC110 - asked in a thread
            await anyio.sleep(GLANCE)
    try:
        code, _, _ = await to_thread.run_sync(gateway.stop)
    except TimeoutExpired:
        cluster.faults.append("SIGTERM did not end a gateway in time")
    else:
        if code:
            cluster.faults.append(f"SIGTERM ended a gateway with {code}")


def clear(gateways: Sequence[GatewayProcess], notes: Notes) -> None:
    """Nothing of it outlives this."""
    for gateway in gateways:
        gateway.kill()
        for pid in left_behind(gateway.home.root, notes.sleeps):
            end(pid)

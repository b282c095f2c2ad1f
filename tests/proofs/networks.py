"""Mixed traffic on all chat networks, while lines break: all is answered.

Each network's server on loopback breaks its lines, says "too many", says what nobody knows, and delivers again what it
has delivered. The gateway runs in this process, on the real libraries. Each message has a number of its own, and is
answered by it within a minute. *twice* is no fault: where a line breaks in the very call that sends, nobody knows
whether it arrived, and it is sent again. *half* and *last*: seconds until half of the messages, and all, were answered.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration
from gateway.config.permissions import prepare_home
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.gateway import open_gateway
from gateway.daemon.shutdown import Shutdown
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, Wire
from tests.adapters.wires import ROOMS, WIRES
from tests.proof_table import ROOT, Row, Trial

COLUMNS = ("network", "messages", "lost", "twice", "cut", "refused", "half", "last")
WIDEST = 8
MOST = 9000  # messages: the script of the model has an answer for each
PATIENCE = 60.0
PAUSE = 1.0  # between an answer and the next message of a person
SETTINGS = "access: {rate: 100000}\nsessions: {turns: 16}\n"


@dataclass
class Network:
    """What happens on one of them, and what came of it."""

    wire: Wire
    until: float
    waits: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    deeds: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until

    async def write(self, who: str, numbers: Iterator[int]) -> None:
        """In one way or another, and wait for the answer."""
        chance = random.Random(f"{self.wire.network}{who}")  # the same traffic at each run
        while not self.is_over:
            number = next(numbers)
            said, begun = f"number {number:05} please", time.monotonic()
            match chance.randrange(6):
                case 0:
                    await self.wire.upload((f"{number}.pdf", b"%PDF" * 1000), caption=said, by=who)
                case 1:
                    await self.wire.mention(said, by=who)
                case 2:
                    await self.wire.react(await self.wire.write(said, by=who), "👍", by=who)
                case _:
                    await self.wire.write(said, by=who)
            if not await self._is_answered(number, begun + PATIENCE):
                self.lost.append(said)
            self.waits.append(time.monotonic() - begun)
            await anyio.sleep(PAUSE * chance.uniform(0.5, 1.5))

    async def trouble(self) -> None:
        """Break lines, refuse, and say things that nobody knows."""
        for deed in itertools.cycle(("cut", "refused", "noise", "again")):
            await anyio.sleep(3)
            if self.is_over:
                return
            self.deeds[deed] += 1
            match deed:
                case "cut":
                    self.wire.hang_up()
                case "refused":
                    self.wire.flood(1.0)
                case "noise":
                    await self.wire.noise()
                case "again":
                    await self.wire.again()

    async def _is_answered(self, number: int, until: float) -> bool:
        while not any(f"answer {number:05}." in one.text for one in self.wire.shown):
            if time.monotonic() > until:
                return False
            await anyio.sleep(0.02)
        return True

    def row(self) -> Row:
        shown = Counter(one.text for one in self.wire.shown if one.text.startswith("answer"))
        twice, waits = sum(count > 1 for count in shown.values()), sorted(self.waits)
        counts = (len(waits), len(self.lost), twice, self.deeds["cut"], self.deeds["refused"])
        times = (f"{waits[len(waits) // 2]:.1f}", f"{waits[-1]:.1f}")
        faults = tuple(f"{self.wire.network}: not answered: {one}" for one in self.lost)
        return Row((self.wire.network, *map(str, counts), *times), faults)


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("networks has the gateway in its own process, so it tries this checkout alone")
    for network in anyio.run(talk, trial.folder / "home", trial.amount(600, 40)):
        yield network.row()


async def talk(root: Path, seconds: int) -> list[Network]:
    """Everybody, on all networks at once."""
    async with AsyncExitStack() as stack:
        started, numbers = GatewayProcess(root), itertools.count(1)
        turns = [{"user": f"number {n:05}", "answers": [{"text": f"answer {n:05}."}]} for n in range(1, MOST)]
        wires = [make(root) for name, make in WIRES.items() if name in ROOMS]
        started.script(*turns, settings=SETTINGS)
        environ = dict(started.environ)
        for wire in wires:
            await stack.enter_async_context(wire.serving())
            allowed = ",".join(wire.known_as(one) for one in (ANN, BEN))
            environ |= {**wire.environ, f"{wire.network.upper()}_ALLOWED_USERS": allowed}
        prepare_home(started.home)
        configuration = load_configuration(load_settings_schema(), started.home, environ)
        gateway = await stack.enter_async_context(
            open_gateway(started.home, configuration, Shutdown(10.0), build_verbs)
        )
        while not all(one.presence.facts.up for one in gateway.platforms):  # noqa: ASYNC110 - there is no event for all
            await anyio.sleep(0.05)
        networks = [Network(wire, time.monotonic() + seconds) for wire in wires]
        async with anyio.create_task_group() as tasks:
            for network in networks:
                tasks.start_soon(network.trouble)
                for who in (ANN, BEN):
                    tasks.start_soon(network.write, who, numbers)
        return networks

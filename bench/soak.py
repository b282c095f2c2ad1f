"""Mixed traffic on all chat networks at once, while lines break and the networks say "too many".

`.venv/bin/python -m bench.soak [--seconds N] [--pause SECONDS] [--only NETWORK]`. The gateway and the networks' servers
run in this process, on the real libraries. Each message has a number of its own, and is answered by it. Exit 1 where
one was not answered within a minute. What was answered twice is told: where a line breaks in the very call that sends,
nobody knows whether it arrived, and it is sent again.
"""

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration
from gateway.config.permissions import prepare_home
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.gateway import Gateway, open_gateway
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.status import read_memory_kb
from gateway.testing import GatewayProcess
from tests.adapters.wire import ANN, BEN, Wire
from tests.adapters.wires import WIRES

NETWORKS = [name for name in WIRES if name != "terminal"]
MOST = 9000  # messages: the script of the model has an answer for each
PATIENCE = 60.0
SETTINGS = "access: {rate: 100000}\nsessions: {turns: 16}\n"


@dataclass
class Soak:
    """What happens, and what came of it."""

    until: float
    pause: float
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, MOST)))
    waits: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    deeds: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until


async def person(soak: Soak, wire: Wire, who: str) -> None:
    """Write, in one way or another, and wait for the answer."""
    chance = random.Random(f"{wire.network}{who}")  # the same traffic at each run
    for number in soak.numbers:
        if soak.is_over:
            return
        said = f"number {number:05} please"
        begun = time.monotonic()
        match chance.randrange(6):
            case 0:
                await wire.upload((f"{number}.pdf", b"%PDF" * 1000), caption=said, by=who)
            case 1:
                await wire.mention(said, by=who)
            case 2:
                await wire.react(await wire.write(said, by=who), "👍", by=who)
            case _:
                await wire.write(said, by=who)
        soak.deeds[f"{wire.network} messages"] += 1
        if not await is_answered(wire, number, begun + PATIENCE):
            soak.lost.append(f"{wire.network}: {said}")
        soak.waits.append(time.monotonic() - begun)
        await anyio.sleep(soak.pause * chance.uniform(0.5, 1.5))


async def is_answered(wire: Wire, number: int, until: float) -> bool:
    while not any(f"answer {number:05}." in one.text for one in wire.shown):
        if time.monotonic() > until:
            return False
        await anyio.sleep(0.02)
    return True


async def trouble(soak: Soak, wire: Wire) -> None:
    """Break lines, refuse, and say things that nobody knows."""
    for deed in itertools.cycle(("hang up", "flood", "noise", "again")):
        await anyio.sleep(3)
        if soak.is_over:
            return
        soak.deeds[f"{wire.network} {deed}"] += 1
        match deed:
            case "hang up":
                wire.hang_up()
            case "flood":
                wire.flood(1.0)
            case "noise":
                await wire.noise()
            case "again":
                await wire.again()


async def watch(soak: Soak, gateway: Gateway) -> None:
    """A line now and then: what grows is seen."""
    while not soak.is_over:
        print(
            f"{len(soak.waits):6} answered  {read_memory_kb() // 1024} MB  {len(asyncio.all_tasks())} tasks", flush=True
        )
        await anyio.sleep(min(30.0, max((soak.until - time.monotonic()) / 4, 1)))
    print(f"{gateway.lanes.running} turns run at the end")


async def soak_all(seconds: float, pause: float, names: Sequence[str]) -> Soak:
    soak = Soak(time.monotonic() + seconds, pause)
    async with AsyncExitStack() as stack:
        started = GatewayProcess(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "home")
        turns = [{"user": f"number {n:05}", "answers": [{"text": f"answer {n:05}."}]} for n in range(1, MOST)]
        wires = [WIRES[name](started.home.root) for name in names]
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
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, soak, gateway)
            for wire in wires:
                tasks.start_soon(trouble, soak, wire)
                for who in (ANN, BEN):
                    tasks.start_soon(person, soak, wire, who)
        shown = Counter(one.text for wire in wires for one in wire.shown)
        soak.deeds["answers shown twice"] = sum(count > 1 for text, count in shown.items() if text.startswith("answer"))
    return soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--pause", type=float, default=2.0, help="between an answer and the next message of a person")
    parser.add_argument("--only", action="append", choices=NETWORKS, help="a network; repeatable")
    args = parser.parse_args()
    soak = anyio.run(partial(soak_all, args.seconds, args.pause, args.only or NETWORKS))
    waits = sorted(soak.waits)
    print(", ".join(f"{count} {deed}" for deed, count in sorted(soak.deeds.items())))
    if waits:
        print(f"answered after {waits[len(waits) // 2]:.2f} s (half of them), {waits[-1]:.1f} s (the last)")
    for lost in soak.lost:
        print(f"not answered: {lost}")
    return 1 if soak.lost else 0


if __name__ == "__main__":
    sys.exit(main())

"""Turns on a journal that NATS servers keep, beside the same turns on SQLite: how many, how long, what they cost.

`.venv/bin/python -m bench.cluster [--rounds N] [--seconds S] [--people P] [--folder DIR]`. Three gateways stand beside
each other: on SQLite, on one server and on three, all on this machine; each round measures each of them for some
seconds, so what else runs here meets all alike, and the medians of the rounds are compared. People talk as in
`bench.spine`, with a model that answers at once. What is asked of the servers is counted at the end, beside the
measured rounds, since who listens costs too.
"""

import argparse
import asyncio
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.options import parse_options
from bench.spine import SETTINGS, cpu_seconds, measure
from gateway.testing import GatewayProcess
from tests.engine.nats_requests import count_requests, count_trips
from tests.engine.nats_servers import NatsServer, run_servers

SERVERS = {"SQLite": 0, "NATS R1": 1, "NATS R3": 3}
GOAL_RATE, GOAL_P50, GOAL_CPU = 0.5, 3.0, 3.0
COUNTED_SECONDS = 3.0


@dataclass
class Side:
    """A gateway, the servers of its journal, and of each round what was measured: per turn in milliseconds."""

    gateway: GatewayProcess
    servers: Sequence[NatsServer]
    rates: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def measure(self, people: int, seconds: float) -> None:
        before = self._cpu()
        taken = asyncio.run(measure(self.gateway.home.socket, people, seconds))
        own, theirs = ((after - was) / len(taken) * 1e3 for was, after in zip(before, self._cpu(), strict=True))
        self.rates.append(len(taken) / seconds)
        self.taken += taken
        self.own.append(own)
        self.theirs.append(theirs)

    def _cpu(self) -> tuple[float, float]:
        assert self.gateway.process
        servers = (one.process.pid for one in self.servers if one.process)
        return cpu_seconds(self.gateway.process.pid), sum(map(cpu_seconds, servers))

    async def count(self, people: int, seconds: float) -> tuple[Counter[str], int]:
        """Count the requests to the servers, and the turns that made them."""
        async with count_requests(",".join(one.url for one in self.servers)) as counts:
            turns = len(await measure(self.gateway.home.socket, people, seconds))
            await asyncio.sleep(1)
            return counts, turns


def open_sides(stack: ExitStack, folder: Path, names: Sequence[str] = (*SERVERS,)) -> Iterator[tuple[str, Side]]:
    for name in names:
        count = SERVERS[name]
        servers = stack.enter_context(run_servers(folder / f"servers{count}", count)) if count else []
        gateway = stack.enter_context(GatewayProcess(folder / f"on{count}" / "home", forks=False))
        engine = f"engine: {','.join(one.url for one in servers)}\n" if servers else ""
        gateway.script({"user": "hello", "answers": [{"text": "hello yourself"}]}, settings=SETTINGS + engine)
        gateway.start("--log-level", "error")
        yield name, Side(gateway, servers)


@dataclass(frozen=True)
class Ratios:
    """One side's rate and times beside the first side's: the medians of the rounds."""

    rate: float
    p50: float
    cpu: float

    @property
    def is_met(self) -> bool:
        return self.rate >= GOAL_RATE and self.p50 <= GOAL_P50 and self.cpu <= GOAL_CPU


def compare(side: Side, first: Side) -> Ratios:
    rate = statistics.median(ours / theirs for ours, theirs in zip(side.rates, first.rates, strict=True))
    p50 = statistics.median(side.taken) / statistics.median(first.taken)
    costs = zip(side.own, side.theirs, first.own, strict=True)
    return Ratios(rate, p50, statistics.median((own + theirs) / sqlite for own, theirs, sqlite in costs))


def measure_sides(sides: Sequence[Side], rounds: int, people: int, seconds: float) -> None:
    """In turn, so that what else runs here meets all alike."""
    for side in sides:
        asyncio.run(measure(side.gateway.home.socket, people, 1.0))
    for number in range(rounds):
        for side in sides[:: 1 if number % 2 else -1]:
            side.measure(people, seconds)


def show(sides: dict[str, Side]) -> None:
    first = sides["SQLite"]
    print(f"\n{'':9}{'turns/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms a turn: gateway':>24}{'servers':>9}")
    for name, side in sides.items():
        taken = sorted(side.taken)
        p50, p99 = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
        rate, own, theirs = (statistics.median(some) for some in (side.rates, side.own, side.theirs))
        print(f"{name:9}{rate:9.0f}{p50 * 1e3:9.1f}{p99 * 1e3:9.1f}{own:24.2f}{theirs:9.2f}")
    for name in list(sides)[1:]:
        ratios = compare(sides[name], first)
        print(
            f"{name} beside SQLite: {ratios.rate:.2f} of the turns, p50 {ratios.p50:.1f}x, CPU {ratios.cpu:.1f}x",
            end="",
        )
        goal = f"at least {GOAL_RATE}, at most {GOAL_P50:g}x and {GOAL_CPU:g}x"
        print(f"  {'met' if ratios.is_met else 'MISSED'} ({goal})" if name == "NATS R3" else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="how long each measurement lasts")
    parser.add_argument("--people", type=int, default=16, metavar="P")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to measure")
    options = parse_options(parser, rounds=1, seconds=0.5)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        sides = dict(open_sides(stack, Path(folder)))
        measure_sides([*sides.values()], options.rounds, options.people, options.seconds)
        show(sides)
        for name, side in sides.items():
            if side.servers:
                counts, turns = asyncio.run(side.count(options.people, COUNTED_SECONDS))
                kinds = ", ".join(f"{kind} {count / turns:.1f}" for kind, count in counts.most_common())
                print(f"{name}: a turn waits {count_trips(counts) / turns:.1f} times for servers; of {kinds}")


if __name__ == "__main__":
    main()

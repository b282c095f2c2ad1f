"""Measure hooks in one process: goals P11 to P14.

`.venv/bin/python -m bench.hooks [--rounds N] [--hermes PYTHON]`. Every row stands beside a floor that is measured in
the same process and in turn with it: a dictionary's lookup where nobody listens, else awaiting the same handlers
directly. With the Python of an environment that has hermes-agent, its registry does the same, beside its own floor.
"""

import argparse
import asyncio
import json
import subprocess
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.options import parse_options
from bench.timing import beside, loop
from gateway.hooks import HookRegistry

FIELDS = "platform='telegram', message='hi'"


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: seconds of one event, the ratio to its floor, and the ratio that it may have."""

    what: str
    count: int
    seconds: float
    ratio: float
    goal: float | None = None


def interceptor() -> Callable[..., Awaitable[None]]:
    async def handle(event: object) -> None:
        pass

    return handle


def plain() -> Callable[..., None]:
    def handle(event: object) -> None:
        pass

    return handle


def observer() -> Callable[..., Awaitable[None]]:
    async def handle(event_type: str, context: object) -> None:
        pass

    return handle


async def nobody(rounds: int) -> list[Row]:
    async with HookRegistry() as hooks:
        names = {"hooks": hooks, "names": {}, "name": "agent:start"}
        runs = {
            "floor": loop("names.get(name)", names),
            "emit": loop(f"hooks.emit(name, {FIELDS})", names),
            "wants": loop("hooks.wants(name)", names),
            "run": loop(f"await hooks.run(name, {FIELDS})", names),
        }
        times = await beside(runs, rounds)
    goals = {"emit": 5.0}
    return [
        Row(f"{name}, nobody listens", 0, times[name], times[name] / times["floor"], goals.get(name))
        for name in ("emit", "wants", "run")
    ]


async def observed(count: int, rounds: int, goal: float) -> Row:
    async with HookRegistry() as hooks:
        fns = [observer() for _ in range(count)]
        for fn in fns:
            hooks.watch("agent:start", fn)
        names = {"hooks": hooks, "fns": fns, "name": "agent:start", "context": {"platform": "t", "message": "hi"}}
        runs = {
            "floor": loop("for fn in fns: await fn(name, context)", names),
            "emit": loop(f"hooks.emit(name, {FIELDS})", names, drain="await hooks.settled()"),
        }
        times = await beside(runs, rounds, 0.01)
    return Row("emit to busy observers, the caller's side", count, times["emit"], times["emit"] / times["floor"], goal)


async def intercepted(
    what: str, make: Callable[[], Callable[..., Any]], count: int, rounds: int, goal: float | None
) -> Row:
    async with HookRegistry() as hooks:
        fns = [make() for _ in range(count)]
        for fn in fns:
            hooks.on("agent:start", fn)
        names = {"hooks": hooks, "fns": fns, "name": "agent:start", "event": {"platform": "t", "message": "hi"}}
        direct = "fn(event)" if make is plain else "await fn(event)"
        runs = {
            "floor": loop(f"for fn in fns: {direct}", names),
            "run": loop(f"await hooks.run(name, {FIELDS})", names),
        }
        times = await beside(runs, rounds)
    return Row(f"run, {what}", count, times["run"], times["run"] / times["floor"], goal)


async def matched(what: str, pattern: str, count: int, rounds: int, goals: tuple[float, float]) -> list[Row]:
    """Match one of many patterns, for a known name or a new one."""
    async with HookRegistry() as hooks:
        fn = observer()
        for number in range(count):
            hooks.watch(pattern.format(number), fn if number == count // 2 else observer())
        known = pattern.format(count // 2).replace("*", "start")
        fresh = iter(f"{known}{number}" for number in range(10_000_000))
        names = {"hooks": hooks, "fn": fn, "name": known, "context": {}, "fresh": fresh}
        drain = "await hooks.settled()"
        runs = {
            "floor": loop("await fn(name, context)", names),
            "known": loop("hooks.emit(name)", names, drain),
            "fresh": loop("hooks.emit(next(fresh))", names, drain),
        }
        times = await beside(runs, rounds, 0.005)
    return [
        Row(f"{what}, {age} name", count, times[age], times[age] / times["floor"], goal)
        for age, goal in zip(("known", "fresh"), goals, strict=True)
    ]


async def remembered(names: int) -> str:
    """Measure the memory that so many names leave behind."""
    hooks = HookRegistry()
    hooks.watch("job:*", observer())
    tracemalloc.start()
    for number in range(names):
        hooks.wants(f"job:{number}")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return f"after {names:,} names: {size / 1e6:.1f} MB"


async def measure(rounds: int) -> list[Row]:
    rows = await nobody(rounds)
    rows += [await observed(count, rounds, goal) for count, goal in ((1, 3.0), (10, 1.2), (100, 1.0))]
    goals = ((1, 12.0), (10, 2.1), (100, 1.5))
    rows += [await intercepted("async interceptors", interceptor, count, rounds, goal) for count, goal in goals]
    rows += [await intercepted("plain interceptors", plain, count, rounds, None) for count, _ in goals]
    for count in (10, 1_000, 10_000):
        rows += await matched("patterns ns:*", "ns{}:*", count, rounds, (3.5, 15.0))
    rows += await matched("patterns *:verb:x", "*:verb{}:x*"[:-1], 1_000, rounds, (3.5, 15.0))
    rows += await matched("globs ns:foo*", "ns{}:foo*", 1_000, rounds, (3.5, 15.0))
    return rows


def of_hermes(python: Path, rounds: int) -> dict[int, dict[str, float]]:
    script = Path(__file__).with_name("hermes_hooks.py")
    done = subprocess.run([python, "-X", "utf8", script, str(rounds)], capture_output=True, text=True, check=True)
    return {int(count): ratios for count, ratios in json.loads(done.stdout.splitlines()[-1]).items()}


def shown(row: Row, hermes: dict[int, dict[str, float]]) -> str:
    verdict = "" if row.goal is None else f"{'met' if row.ratio <= row.goal else 'MISSED'} (at most {row.goal:g})"
    verb = "collect" if row.what.startswith("run") else "emit"
    theirs = f"{hermes[row.count][verb]:8.2f}x" if row.count in hermes and "name" not in row.what else ""
    return f"{row.what:44}{row.count:>7}{row.seconds * 1e9:10.0f} ns{row.ratio:8.2f}x{theirs:>12}  {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--names", type=int, default=1_000_000, metavar="N", help="how many are told of once")
    parser.add_argument("--hermes", type=Path, metavar="PYTHON", help="the Python of an environment with hermes-agent")
    options = parse_options(parser, rounds=1, names=100_000)
    hermes = of_hermes(options.hermes, options.rounds) if options.hermes else {}
    print(f"{'':44}{'hooks':>7}{'an event':>13}{'ratio':>9}{'hermes':>12}  goal")
    for row in asyncio.run(measure(options.rounds)):
        print(shown(row, hermes))
    print(asyncio.run(remembered(options.names)))


if __name__ == "__main__":
    main()

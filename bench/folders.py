"""Measure hook folders: found at the start, and changed while they run. Goals P8 and P9.

`.venv/bin/python -m bench.folders [--rounds N] [--hermes PYTHON]`. A first start knows nothing of the folders, a later
one has the index. The floor of a reload is what inotify and the start of a worker take. With the Python of an
environment that has hermes-agent, its registry finds and imports the same folders, first without byte code.
"""

import argparse
import asyncio
import gc
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from bench.options import parse_options
from bench.workers import FORK_SERVER, Row
from gateway.config.settings import HooksSettings
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.inspection import SETTLE_TIME
from gateway.hooks.services import HookEnvironment
from gateway.hooks.wires.fork_client import ForkServerClient

COUNTS = (10, 100, 1000)
WRITES = 20  # in one burst
SETTLED = SETTLE_TIME / 1e9 + 0.1  # seconds after which what was read of a file is kept for later starts
STALE = 50  # questions after a reload, none of which old code may answer
MANIFEST = "name: hook-{n}\ndescription: Notes agent runs\nevents: [agent:start, agent:end, 'command:*']\n"
HANDLER = '''"""Hook {n}: notes agent runs."""
import datetime
import json
from pathlib import Path

STATE = {{"count": 0}}


def _wants(context):
    return context.get("platform") in ("telegram", "discord", "slack") and bool(context.get("message"))


async def handle(event_type, context):
    if not _wants(context):
        return None
    STATE["count"] += 1
    return json.dumps({{"ts": datetime.datetime.now().isoformat(), "event": event_type}})
'''
ASKED = "def handle(event_type, context): return {{'version': {version}}}\n"


@dataclass(frozen=True, slots=True)
class Place:
    """A home with so many hook folders, and one more that answers which version it is."""

    root: Path
    count: int

    @property
    def hooks(self) -> Path:
        return self.root / "hooks"

    @property
    def asked(self) -> Path:
        return self.hooks / "asked" / "handler.py"

    def fill(self) -> None:
        for n in range(self.count):
            folder = self.hooks / f"hook-{n:04}"
            folder.mkdir(parents=True)
            (folder / "HOOK.yaml").write_text(MANIFEST.format(n=n))
            (folder / "handler.py").write_text(HANDLER.format(n=n))

    def add_asked(self) -> None:
        self.asked.parent.mkdir()
        (self.asked.parent / "HOOK.yaml").write_text("intercepts: ['bench:*']\n")
        self.asked.write_text(ASKED.format(version=0))

    @asynccontextmanager
    async def serving(self, registry: HookRegistry, eager: int) -> AsyncIterator[FolderHooks]:
        state = self.root / "state"
        around = HookEnvironment(os.environ, self.root, self.root / "logs", state, packages=sys.path)
        sources = [FolderSource(self.hooks, "home")]
        async with (
            ForkServerClient(FORK_SERVER) as fork_server,
            registry,
            FolderHooks(registry, fork_server, None, HooksSettings(eager=eager), around).running(
                sources, grant
            ) as service,
        ):
            yield service


async def grant(_hook: str, verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise AssertionError(verb)


async def found(place: Place) -> float:
    """Seconds until all are registered; workers come later."""
    registry = HookRegistry()
    async with ForkServerClient(FORK_SERVER) as fork_server, registry:
        state = place.root / "state"
        around = HookEnvironment(os.environ, place.root, place.root / "logs", state, packages=sys.path)
        service = FolderHooks(registry, fork_server, None, HooksSettings(eager=0), around)
        gc.collect()  # a start has no life before it to clear away
        begun = time.perf_counter()
        async with service.running([FolderSource(place.hooks, "home")], grant):
            took = time.perf_counter() - begun
            assert registry.wants("agent:start")
            await service.settled()
    return took


def of_hermes(python: Path, root: Path) -> float:
    script = Path(__file__).with_name("hermes_folders.py")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [python, script], env=environ | {"HERMES_HOME": str(root)}, capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


async def discovery(count: int, rounds: int, hermes: Path | None) -> list[Row]:
    ours: dict[str, list[float]] = {"first": [], "later": []}
    theirs: dict[str, list[float]] = {"first": [], "later": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as top:
            place = Place(Path(top), count)
            place.fill()
            await asyncio.sleep(SETTLED)
            for start in ("first", "later"):
                ours[start].append(await found(place))
            if hermes:
                for start in ("first", "later"):
                    theirs[start].append(of_hermes(hermes, place.root))
    rows = []
    for start, share in (("first", 0.15), ("later", 0.1)):
        took = statistics.median(ours[start]) * 1e3
        peer = statistics.median(theirs[start]) * 1e3 if hermes else None
        goal = peer * share if peer and count == max(COUNTS) else None
        rows.append(Row(f"{count} folders, {start} start", took, "ms", goal, peer))
    return rows


async def version(registry: HookRegistry) -> int:
    return int((await registry.run("bench:ask", version=-1))["version"])


async def reloads(count: int, rounds: int, idle: float) -> tuple[list[float], list[Row]]:
    """Seconds from a write to new code serving, with so many other folders; and what else follows from a write."""
    with tempfile.TemporaryDirectory() as top:
        place, registry, loaded = Place(Path(top), count), HookRegistry(), [0]
        place.fill()
        place.add_asked()
        async with place.serving(registry, eager=5) as service:
            await service.settled()
            await version(registry)
            registry.watch("hook:loaded", lambda _name, _event: loaded.append(1))
            times, stale = [], 0
            for number in range(1, rounds + 1):
                times.append(await reload(place, registry, number))
                for _ in range(STALE // rounds + 1):
                    stale += await version(registry) != number
            before = len(loaded)
            for number in range(WRITES):
                place.asked.write_text(ASKED.format(version=1000 + number))
                await asyncio.sleep(0.002)
            await serves(registry, 1000 + WRITES - 1)
            await asyncio.sleep(0.3)
            began, used = time.perf_counter(), time.process_time()
            await asyncio.sleep(idle)
            share = (time.process_time() - used) / (time.perf_counter() - began) * 100
    rows = [
        Row(f"answers of old code after a reload, {count} folders", stale, "", 0),
        Row(f"reloads in a burst of {WRITES} writes, {count} folders", len(loaded) - before, "", 1),
        Row(f"CPU while nothing happens, {count} folders", share, "%", 0.6),
    ]
    return times, rows


async def serves(registry: HookRegistry, number: int) -> None:
    with anyio.fail_after(10):
        while await version(registry) != number:  # noqa: ASYNC110 - asked as a message would ask
            await asyncio.sleep(0.0005)


async def reload(place: Place, registry: HookRegistry, number: int) -> float:
    beside = place.root / "new"
    beside.write_text(ASKED.format(version=number))
    begun = time.perf_counter()
    beside.replace(place.asked)
    await serves(registry, number)
    took = time.perf_counter() - begun
    await asyncio.sleep(0.15)
    return took


async def measure(rounds: int, starts: int, idle: float, hermes: Path | None) -> list[Row]:
    rows = [row for count in COUNTS for row in await discovery(count, starts, hermes)]
    medians = {}
    for count in (min(COUNTS), max(COUNTS)):
        times, more = await reloads(count, rounds, idle)
        medians[count] = statistics.median(times) * 1e3
        last = sorted(times)[max(0, round(len(times) * 0.95) - 1)] * 1e3
        among_few = medians[min(COUNTS)]
        goal = 60.0 if count == min(COUNTS) else min(60.0, 2 * among_few)
        rows.append(Row(f"a write to new code serving, {count} folders, p50", medians[count], "ms", goal))
        rows.append(Row(f"a write to new code serving, {count} folders, p95", last, "ms", 120))
        rows += more
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, metavar="N", help="how many changes of a folder")
    parser.add_argument("--starts", type=int, default=3, metavar="N", help="how many first and later starts")
    parser.add_argument("--idle", type=float, default=3.0, metavar="S", help="how long it is watched doing nothing")
    parser.add_argument("--hermes", type=Path, metavar="PYTHON", help="the Python of an environment with hermes-agent")
    options = parse_options(parser, starts=1, idle=1.0)
    gc.freeze()  # as the daemon does: what was imported stays
    print(f"{'':58}{'':>10}    {'hermes':>10}  goal")
    hermes = options.hermes and Path(shutil.which(options.hermes) or "")
    for row in asyncio.run(measure(options.rounds, options.starts, options.idle, hermes)):
        print(row.shown())


if __name__ == "__main__":
    main()

"""Measure a turn with a tool beside thirty Hermes plugins, each with `pre_tool_call` and `post_tool_call`.

`.venv/bin/python -m bench.plugins [--plugins N] [--turns N] [--rounds N]`. Two gateways run at the same time, one
without plugins, and answer the same people in turn, some turns each, so that what else runs on the machine meets both.
They write on Telegram, the model answers over HTTP, and the tool is a command of the shell: both ends are on
loopback, and not counted. `cpu ms` is the processor time of all processes of the gateway for a turn, until its
observers are notified. `times` is the median of the rounds, each beside the gateway without plugins.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from bench.options import parse_options
from bench.owed_events import tree_cpu_seconds
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from tests.adapters.telegram_wire import TelegramWire

ENDPOINT = Path(__file__).parent / "peers" / "endpoint.py"
GOAL = 2.0
SETTINGS = "tools: {shell: allow}\naccess: {tools: {user: all, guest: all}}\n"
SOURCE = """
CALLS = []

def judge(tool_name, args, **_):
    return None

def note(**call):
    CALLS.append(call["tool_name"])

def register(ctx):
    ctx.register_hook("pre_tool_call", judge)
    ctx.register_hook("post_tool_call", note)
"""


class Cost(NamedTuple):
    """Milliseconds of a turn."""

    wall: float
    cpu: float


class Chat(NamedTuple):
    """One gateway and its person."""

    gateway: GatewayProcess
    wire: TelegramWire

    async def measure(self, turns: int) -> Cost:
        assert self.gateway.process
        used, begun = tree_cpu_seconds(self.gateway.process.pid), time.perf_counter()
        for number in range(turns):  # one person would wait for Telegram's own limits
            await self.turn(f"{number + 1}00")
        took = time.perf_counter() - begun
        while await asyncio.to_thread(self.count_queued):
            pass
        return Cost(took / turns * 1e3, (tree_cpu_seconds(self.gateway.process.pid) - used) / turns * 1e3)

    async def turn(self, person: str) -> None:
        before = len(self.wire.shown)
        await self.wire.write("do it", by=person)
        await until(lambda: len(self.wire.shown) > before, "the answer")

    def count_queued(self) -> int:
        return sum(hook["queued"] for hook in self.gateway.call("hooks.list")["hooks"])


def furnish(gateway: GatewayProcess, plugins: int, url: str) -> None:
    names = [f"plugin-{number:02}" for number in range(plugins)]
    gateway.configure(f"model: {{provider: openai, name: shell, base_url: {url}}}\n{SETTINGS}")
    for name in names:
        folder = gateway.home.plugins / name
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(f"name: {name}\nversion: 1.0.0\n")
        (folder / "__init__.py").write_text(SOURCE)
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": names}}))


@asynccontextmanager
async def open_chat(home: Path, plugins: int, url: str) -> AsyncIterator[Chat]:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(home, forks=False) as gateway:
            furnish(gateway, plugins, url)
            environ = {**wire.environ, "TELEGRAM_ALLOW_ALL_USERS": "1", "OPENAI_API_KEY": "none"}
            await asyncio.to_thread(gateway.start, "--log-level", "error", environ=environ)
            await asyncio.to_thread(gateway.until, lambda: count_loaded(gateway) == plugins, 120)
            yield Chat(gateway, wire)


def count_loaded(gateway: GatewayProcess) -> int:
    found = gateway.call("hooks.list")["hooks"]
    return sum(one["origin"] == "plugins" and one["state"] == "loaded" for one in found)


async def run(plugins: int, turns: int, rounds: int, url: str) -> None:
    print(f"{'plugins':>8}{'ms':>9}{'cpu ms':>9}{'times ms':>10}{'times cpu':>11}")
    found: dict[int, list[Cost]] = {0: [], plugins: []}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chats = {count: await stack.enter_async_context(open_chat(folder / str(count), count, url)) for count in found}
        for number in range(rounds + 1):
            for count, chat in list(chats.items())[:: 1 if number % 2 else -1]:
                cost = await chat.measure(turns)
                if number:  # the first turns load what the later ones have
                    found[count].append(cost)
    for count, costs in found.items():
        print(line(count, costs, found[0]), flush=True)


def line(plugins: int, costs: list[Cost], without: list[Cost]) -> str:
    wall, cpu = (statistics.median(column) for column in zip(*costs, strict=True))
    rounds = list(zip(costs, without, strict=True))
    times = [statistics.median(one[part] / beside[part] for one, beside in rounds) for part in (0, 1)]
    text = f"{plugins:>8}{wall:>9.2f}{cpu:>9.2f}{times[0]:>10.2f}{times[1]:>11.2f}"
    goal = f"  {'met' if max(times) <= GOAL else 'MISSED'} (at most {GOAL:g} times)"
    return f"{text}{goal if plugins else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugins", type=int, default=30)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parse_options(parser, turns=3, rounds=2)
    with subprocess.Popen([sys.executable, str(ENDPOINT)], stdout=subprocess.PIPE, text=True) as endpoint:
        try:
            assert endpoint.stdout
            url = f"http://127.0.0.1:{int(endpoint.stdout.readline())}/v1"
            asyncio.run(run(options.plugins, options.turns, options.rounds, url))
        finally:
            endpoint.kill()


if __name__ == "__main__":
    main()

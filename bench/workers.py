"""Measure a hook in a process of its own, and the harm that it can do to the gateway: goals P1 and P2.

`.venv/bin/python -m bench.workers [--rounds N] [--battery]`. The floors are measured in the same run: a socket pair
whose other end is a process that sends back each line, and how late a 1 ms ticker is when nothing happens. With
`--battery`, the worst lateness beside each of the ways to misbehave that the tests know.
"""

import argparse
import asyncio
import contextlib
import os
import socket
import statistics
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.options import parse_options
from gateway.hooks import HookRegistry
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.process_handle import read_memory
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import CallMeta, ForkServerSettings, WorkerSpec
from gateway.worker.sandbox import Sandbox

FORK_SERVER = ForkServerSettings(processes=256)
BATTERY = Path(__file__).parents[1] / "tests" / "hooks" / "wires" / "battery.toml"
TAIL = "\ndef handle(event, context):\n    return None if event == 'ok' else do(context)\n"
SMALL = {"tool": "shell", "args": {"command": "ls"}, "call_id": "c1", "platform": "telegram", "user_id": "7"}
MESSAGES = {"messages": [{"role": "user", "content": "word " * 40} for _ in range(480)], "system": "be brief"}
DECIDES = CallMeta(decides=True, writable=("args", "messages"), turn="t", event="e")
MISCHIEF = {
    "sleeps": "import time\ndef do(c): time.sleep(.2)",
    "blocks in a coroutine": "import time\nasync def do(c): time.sleep(.2)",
    "spins": "import time\ndef do(c):\n  end = time.time() + .2\n  while time.time() < end: pass",
    "awaits": "import asyncio\nasync def do(c): await asyncio.sleep(.2)",
    "dies": "import os, time\ndef do(c):\n  time.sleep(.2)\n  os._exit(1)",
}


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    value: float
    unit: str
    goal: float | None = None
    floor: float | None = None

    def shown(self) -> str:
        verdict = (
            "" if self.goal is None else f"{'met' if self.value <= self.goal else 'MISSED'} (at most {self.goal:.4g})"
        )
        floor = "" if self.floor is None else f"{self.floor:10.4g}"
        return f"{self.what:58}{self.value:10.4g} {self.unit:3}{floor:>10}  {verdict}"


class Workshop:
    """Makes workers for one measurement after the other."""

    def __init__(self, fork_server: ForkServerClient, folder: Path) -> None:
        self._fork_server = fork_server
        self._folder = folder
        self._made = 0

    async def make(self, source: str, sandbox: Sandbox | None = None) -> WorkerHandle:
        self._made += 1
        handler = self._folder / f"{self._made}.py"
        handler.write_text(source)
        spec = WorkerSpec(
            name=f"w{self._made}",
            handler=str(handler),
            env={"PATH": os.environ["PATH"]},
            options={},
            path=(),
            modules={},
            memory=512_000_000,
            label="",
            sandbox=sandbox,
        )
        return await self._fork_server.start(spec, serve, self._folder / "log")


async def serve(_verb: str, params: dict[str, Any], _during: str) -> Any:
    return params


def p50(times: list[float]) -> float:
    return statistics.median(times)


async def timed(action: Callable[[], Awaitable[Any]], count: int) -> list[float]:
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        await action()
        times.append(time.perf_counter() - begun)
    return times


async def echo_floor(size: int, count: int) -> float:
    """One line there and back, by an event loop here and a plain process there."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        with theirs.makefile("rb") as lines:
            for line in lines:
                theirs.sendall(line)
        os._exit(0)
    theirs.close()
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
    line = b"x" * size + b"\n"

    async def there_and_back() -> None:
        writer.write(line)
        await reader.readline()

    found = p50(await timed(there_and_back, count))
    writer.close()
    await writer.wait_closed()
    os.waitpid(pid, 0)  # noqa: ASYNC222 - it ends with its end of the pair
    return found


async def round_trip(workshop: Workshop, what: str, fields: dict[str, Any], rounds: int, goal: float) -> Row:
    worker = await workshop.make("def handle(event, context): return None")
    wire = msgspec.json.encode(fields)
    await timed(lambda: worker.call("tool:before", wire, DECIDES, 5), 50)
    found = p50(await timed(lambda: worker.call("tool:before", wire, DECIDES, 5), rounds))
    floor = await echo_floor(len(wire), rounds)
    await worker.stop()
    return Row(f"round trip, {what} ({len(wire)} bytes), p50", found * 1e6, "us", goal, floor * 1e6)


async def hand_over(workshop: Workshop, rounds: int) -> list[Row]:
    """Measure both sides of the mailbox: the emitter leaves an event in it, and it hands the event to the worker."""
    worker = await workshop.make("def handle(event, context): return None")
    emits, hands = [], []
    async with HookRegistry() as hooks:

        async def tell(name: str, context: Any) -> None:
            await worker.call(name, dict(context), CallMeta(), 5)

        hooks.watch("tool:before", tell)
        for _ in range(rounds):
            begun = time.perf_counter()
            hooks.emit("tool:before", **SMALL)
            emits.append(time.perf_counter() - begun)
            await hooks.settled()
    for _ in range(rounds):
        call = worker.call("tool:before", SMALL, DECIDES, 5)
        begun = time.perf_counter()
        future = call.send(None)  # as far as it goes without waiting: the event is written
        hands.append(time.perf_counter() - begun)
        await asyncio.wait([future])
        with contextlib.suppress(StopIteration):
            call.send(None)
    await worker.stop()
    return [
        Row("hand-over by the emitter, p50", p50(emits) * 1e6, "us", 15),
        Row("hand-over to the process, p50", p50(hands) * 1e6, "us", 15),
    ]


async def start_and_memory(workshop: Workshop, rounds: int) -> list[Row]:
    starts: list[float] = []
    private: list[float] = []
    workers: list[WorkerHandle] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        workers.append(await workshop.make("def handle(event, context): return None"))
        starts.append(time.perf_counter() - begun)
    for worker in workers:
        await timed(partial(worker.call, "tool:before", SMALL, DECIDES, 5), 10)
        private.append(read_memory(worker.process.pid))
        await worker.stop()
    return [
        Row("start to ready, p50", p50(starts) * 1e3, "ms", 15),
        Row("private memory of a worker that has been called", p50(private) / (1 << 20), "MB", 4),
    ]


@contextlib.asynccontextmanager
async def lateness() -> AsyncIterator[list[float]]:
    lags: list[float] = []

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - begun - 0.001)

    task = asyncio.create_task(tick())
    yield lags
    task.cancel()


async def idle_lag(seconds: float) -> float:
    async with lateness() as lags:
        await asyncio.sleep(seconds)
    return max(lags)


async def mischief(workshop: Workshop, what: str, source: str) -> list[Row]:
    """Ten messages in a row while a hook does this for 200 ms with each of them."""
    worker = await workshop.make(source + TAIL)
    idle = await idle_lag(1.0)
    async with HookRegistry() as hooks, lateness() as lags:

        async def tell(name: str, context: Any) -> None:
            nonlocal worker
            if worker.gone:
                worker = await workshop.make(source + TAIL)
            await worker.call(name, dict(context), CallMeta(), 5)

        hooks.watch("message:sent", tell)
        hooks.wants("message:sent")  # the first time, the registry looks up who is meant
        begun = time.perf_counter()
        hooks.emit("message:sent", **SMALL)
        one = time.perf_counter() - begun
        for _ in range(9):
            hooks.emit("message:sent", **SMALL)
        ten = time.perf_counter() - begun
        await asyncio.sleep(1.0)
    await worker.stop(0.1)
    return [
        Row(f"a hook {what}: the emitter waits", one * 1e3, "ms", 0.1),
        Row(f"a hook {what}: ten messages in a row", ten * 1e3, "ms", 1.0),
        Row(f"a hook {what}: the loop is late, at worst", max(lags) * 1e3, "ms", idle * 1e3 + 5, idle * 1e3),
    ]


async def misbehaved(workshop: Workshop, case: dict[str, str]) -> float:
    """How late the loop is at worst beside this case of the battery."""
    worker = await workshop.make(case["do"] + TAIL)
    async with lateness() as lags:
        with contextlib.suppress(HookFailed):
            await worker.call("x", {"a": 1}, DECIDES, 0.3)
        await worker.stop(0.2)
    return max(lags)


async def battery(workshop: Workshop) -> list[Row]:
    cases = tomllib.loads(BATTERY.read_text("utf-8"))["cases"]
    idle = await idle_lag(2.0)
    found = sorted([(await misbehaved(workshop, case), name) for name, case in cases.items()], reverse=True)
    rows = [Row(f"late beside {name!r}", lag * 1e3, "ms", idle * 1e3 + 5, idle * 1e3) for lag, name in found[:8]]
    return [*rows, Row(f"late beside {len(found)} ways to misbehave, p50", found[len(found) // 2][0] * 1e3, "ms")]


async def measure(rounds: int, with_battery: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with ForkServerClient(FORK_SERVER) as fork_server:
            workshop = Workshop(fork_server, Path(folder))
            warm = await workshop.make("def handle(event, context): return None")
            await warm.stop()
            show(await hand_over(workshop, rounds))
            show([await round_trip(workshop, "a small event", SMALL, rounds, 100)])
            show([await round_trip(workshop, "an event with messages", MESSAGES, rounds, 1_500)])
            show(await start_and_memory(workshop, 15))
            for what, source in MISCHIEF.items():
                show(await mischief(workshop, what, source))
            if with_battery:
                show(await battery(workshop))


def show(rows: list[Row]) -> None:
    for row in rows:
        print(row.shown(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500, metavar="N")
    parser.add_argument("--battery", action="store_true", help="beside each of the ways to misbehave, too")
    options = parse_options(parser, rounds=20)
    print(f"{'':58}{'found':>10}    {'floor':>10}  goal")
    asyncio.run(measure(options.rounds, options.battery))


if __name__ == "__main__":
    main()

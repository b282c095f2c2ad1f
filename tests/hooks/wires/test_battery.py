"""Nothing that a hook does disturbs the gateway: some eighty ways to misbehave, each beside a healthy hook."""

import os
import re
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.process_tree import find_descendants
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import pid_of, worker_spec
from tests.spine import until
from tests.waits import Stopwatch, measure_wait

pytestmark = [pytest.mark.process, pytest.mark.timeout(240), pytest.mark.usefixtures("light_heap")]

BATTERY = tomllib.loads((Path(__file__).parent / "battery.toml").read_text("utf-8"))
LIMIT = 0.3  # seconds for what is expected to be over its time
PATIENT = 600.0  # and for what is not: the machine may stand still
GRACE = 0.2
TAIL = """
def handle(event, context):
    return {"fine": True} if event == "ok" else do(context)
"""
DECIDES = CallMeta(decides=True)
LATE = 0.05  # seconds that the gateway's loop may be later than it is at rest
ROUNDS = 3  # the machine may stand still, but not in each of them
SLOW = 20.0  # seconds for the end of a process

Started = Callable[[str], Awaitable[WorkerHandle]]


@dataclass
class Pulse:
    """The delay of the loop while something else happened and a healthy hook was called."""

    healthy: WorkerHandle
    lags: list[float] = field(default_factory=list)

    async def tick(self) -> None:
        while True:
            begun, waited = time.perf_counter(), measure_wait()
            await anyio.sleep(0.001)
            late = time.perf_counter() - begun - 0.001
            self.lags.append(late - (measure_wait() - waited))

    async def ask(self) -> None:
        await self.healthy.call("ok", {"a": 1}, DECIDES, PATIENT)

    async def ask_on(self) -> None:
        while True:
            await anyio.sleep(0.02)
            await self.ask()

    def shows_no_harm(self, at_rest: float) -> bool:
        return max(self.lags) < at_rest + LATE


@asynccontextmanager
async def pulse(healthy: WorkerHandle) -> AsyncIterator[Pulse]:
    felt = Pulse(healthy)
    await felt.ask()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(felt.tick)
        tasks.start_soon(felt.ask_on)
        yield felt
        await felt.ask()
        tasks.cancel_scope.cancel()


@pytest.fixture(scope="module")
async def healthy(fork_server: ForkServerClient, tmp_path_factory: pytest.TempPathFactory) -> WorkerHandle:
    return await start(fork_server, tmp_path_factory.mktemp("healthy"), "def do(c): pass" + TAIL)


@pytest.fixture(scope="module")
async def at_rest(healthy: WorkerHandle) -> float:
    """Measure the delay of the loop on this machine at this hour, without any disturbance."""
    async with pulse(healthy) as felt:
        await anyio.sleep(0.5)
    return max(felt.lags)


@pytest.fixture
async def started(fork_server: ForkServerClient, tmp_path: Path) -> AsyncIterator[Started]:
    """Workers that are gone after the test, whatever it has shown."""
    workers: list[WorkerHandle] = []

    async def start_one(source: str) -> WorkerHandle:
        workers.append(await start(fork_server, tmp_path, source))
        return workers[-1]

    yield start_one
    for worker in workers:
        await worker.stop(0)


async def start(fork_server: ForkServerClient, folder: Path, source: str, limit: float = PATIENT) -> WorkerHandle:
    async def echo(verb: str, params: dict[str, Any], during: str) -> Any:
        return params

    (folder / "handler.py").write_text(source)
    spec = worker_spec(folder / "handler.py", name="probe", env={"PATH": os.environ["PATH"]})
    return await fork_server.start(spec, echo, folder / "hook.log", limit)


def limit_for(outcome: str) -> float:
    return LIMIT if outcome.startswith("timeout") else PATIENT


async def described(worker: WorkerHandle, event: str, limit: float) -> str:
    try:
        answer = await worker.call(event, {"a": 1}, DECIDES, limit)
    except HookFailed as failed:
        return f"{failed.kind} {failed}"
    return f"answer {msgspec.json.encode(answer.result).decode()}"


async def settled(worker: WorkerHandle, expected: str) -> None:
    """The process stays, or is gone for the expected reason, which may come a moment after the answer."""
    if "stays" not in expected:
        await worker.gone.wait()
    if worker.gone:
        assert re.search(expected, worker.gone.reason)


async def nothing_is_left(fork_server: ForkServerClient, healthy: WorkerHandle) -> None:
    """Whatever detached itself comes to the fork server at last, which ends it."""
    await until(lambda: not find_descendants({pid_of(fork_server)}, frozenset({healthy.process.pid})))


@pytest.mark.parametrize("name", BATTERY["cases"])
async def test_a_misbehaving_hook_hurts_itself_alone(
    name: str, fork_server: ForkServerClient, healthy: WorkerHandle, at_rest: float, started: Started
) -> None:
    for _ in range(ROUNDS):
        felt = await misbehave(BATTERY["cases"][name], fork_server, healthy, started)
        if felt.shows_no_harm(at_rest):
            return
    pytest.fail(f"the loop was {max(felt.lags):.2f} s late, and as much each time")


async def misbehave(
    case: dict[str, str], fork_server: ForkServerClient, healthy: WorkerHandle, started: Started
) -> Pulse:
    """Let a hook misbehave, and return its effect on others."""
    async with pulse(healthy) as felt:
        worker = await started(case["do"] + TAIL)
        outcome = await described(worker, "x", limit_for(case["outcome"]))
        assert re.match(case["outcome"], outcome), outcome
        await settled(worker, case["worker"])
        again = await started(case["do"] + TAIL) if worker.gone else worker
        assert await described(again, "ok", PATIENT) == 'answer {"fine":true}'
        with Stopwatch() as watch:
            await again.stop(GRACE)
        assert watch.seconds < GRACE + SLOW
        await nothing_is_left(fork_server, healthy)
    return felt


@pytest.mark.parametrize("name", BATTERY["imports"])
async def test_a_handler_that_cannot_be_imported_is_told_why(
    name: str, fork_server: ForkServerClient, healthy: WorkerHandle, at_rest: float, tmp_path: Path
) -> None:
    case = BATTERY["imports"][name]
    async with pulse(healthy) as felt:
        with pytest.raises(HookFailed) as failed:
            await start(fork_server, tmp_path, case["source"], limit_for(case["outcome"]))
        assert re.match(case["outcome"], f"{failed.value.kind} {failed.value}")
        await nothing_is_left(fork_server, healthy)
    assert felt.shows_no_harm(at_rest), felt

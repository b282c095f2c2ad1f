"""The attacks on a besieged gateway."""

import random
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from gateway.errors import GatewayError, NotRunning
from tests.chaos.daemon import Besieged, fill, until
from tests.chaos.machine import set_clock
from tests.engine.conftest import JUMPS
from tests.siege.processes import end, fork_servers, workers
from tests.waits import fail_after

PATIENCE = 60.0
LINES_TOLD = 5  # of the log of a gateway that ended by itself


@dataclass
class Victim:
    """A gateway, the times of its kills, and its unexpected ends."""

    gateway: Besieged
    environ: dict[str, str]
    chance: random.Random
    ballast: Path | None = None
    cuts: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        assert self.gateway.process
        return self.gateway.process.pid

    async def start(self) -> None:
        """Start it and wait for an answer; an unexpected end is reported, and it is restarted."""
        self.spawn()
        async with fail_after(PATIENCE):
            await until(self._is_ready)

    def spawn(self) -> None:
        self.gateway.process = self.gateway.spawn("run", environ=self.environ)

    async def kill(self) -> None:
        self.cuts.append(time.monotonic())
        await to_thread.run_sync(self.gateway.kill)

    async def stop(self) -> None:
        try:
            code, _, _ = await to_thread.run_sync(self.gateway.stop)
            if code:
                self.faults.append(f"SIGTERM ended it with {code}")
        except subprocess.TimeoutExpired:
            self.faults.append("SIGTERM did not end it in time")
            await self.kill()

    async def pause(self, least: float, most: float) -> None:
        await anyio.sleep(self.chance.uniform(least, most))

    def _is_ready(self) -> bool:
        assert self.gateway.process
        if (code := self.gateway.process.poll()) is not None:
            last = self.gateway.log.read_text(errors="replace").splitlines()[-LINES_TOLD:]
            self.faults.append(f"it ended by itself, with {code}: {' / '.join(last)}")
            self.spawn()
        try:
            return bool(self.gateway.call("status")["state"] == "ready")
        except (NotRunning, OSError, GatewayError):
            return False


async def kill_daemon(victim: Victim, number: int) -> None:
    """While it works; each eighth time once more, while it starts."""
    await victim.pause(0.0, 3.0)
    await victim.kill()
    if number % 8 == 7:
        victim.spawn()
        await victim.pause(0.0, 0.6)
        await victim.kill()
    await victim.start()


async def kill_fork_server(victim: Victim, _number: int) -> None:
    """It is replaced before the next one is killed."""
    await victim.pause(0.2, 1.0)
    old = fork_servers(victim.pid)
    for pid in old:
        end(pid)
    with anyio.move_on_after(PATIENCE) as limit:
        await until(lambda: not set(fork_servers(victim.pid)) <= set(old))
    if limit.cancelled_caught:
        victim.faults.append(f"the fork server was not replaced within {PATIENCE:.0f} s")


async def kill_worker(victim: Victim, _number: int) -> None:
    before = set(workers(victim.pid))
    await victim.pause(0.3, 0.8)
    if found := sorted(before.intersection(workers(victim.pid))):  # none that keeps a command of the shell
        end(victim.chance.choice(found))


async def stop_daemon(victim: Victim, _number: int) -> None:
    await victim.pause(0.2, 2.0)
    await victim.stop()
    await victim.start()


async def set_the_clock(victim: Victim, number: int) -> None:
    """Forward or back while it works; right again while it works, or between two processes."""
    await victim.pause(0.2, 1.0)
    set_clock(victim.gateway.clock, JUMPS[number % len(JUMPS)])
    await victim.pause(0.5, 1.5)
    if number % 2:
        await victim.kill()
    set_clock(victim.gateway.clock, 0.0)
    if number % 2:
        await victim.start()


async def fill_the_disk(victim: Victim, number: int) -> None:
    """Fill the disk; each third time, kill the gateway while it is full."""
    assert victim.ballast
    await victim.pause(0.5, 1.5)
    await to_thread.run_sync(fill, victim.ballast)
    await victim.pause(1.0, 2.0)
    if number % 3 == 2:
        await victim.kill()
    with suppress(FileNotFoundError):
        victim.ballast.unlink()
    if number % 3 == 2:
        await victim.start()

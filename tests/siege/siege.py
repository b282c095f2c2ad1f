"""One stage of a siege: a gateway in a new home, twelve people, and one kind of harm, again and again."""

import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import run

import anyio

from gateway.testing import GatewayProcess
from tests.chaos.daemon import Besieged
from tests.proof_table import Trial
from tests.siege.deeds import Victim
from tests.siege.hooks import Notes, find_noted
from tests.siege.model import Model
from tests.siege.people import Crowd
from tests.siege.processes import end, left_behind
from tests.siege.verdict import Doubt, Verdict, judge, untold
from tests.waits import fail_after

QUIET = 60.0  # seconds in which nothing more comes, though something is missing: a hook may wait for half of that
LONGEST = 300.0
GLANCE = 0.2


@dataclass(frozen=True)
class Stage:
    """`doubt` is how many seconds after a message was shown a kill may make it be shown again."""

    name: str
    deed: Callable[[Victim, int], Awaitable[None]]
    times: int
    doubt: float = 2.0
    needs_disk: bool = False


class NoSmallDisk(Exception):
    """Only root can mount one."""


async def besiege(stage: Stage, trial: Trial, folder: Path) -> tuple[Verdict, list[str]]:
    """Return the findings, and the gateway's unexpected ends."""
    disk = folder / "disk"
    crowd = Crowd(disk / "home" / "hermes-gateway" / "control.sock", seed=1)
    async with AsyncExitStack() as stack:
        if stage.needs_disk:
            stack.enter_context(small_disk(disk))
        gateway = stack.enter_context(Besieged(disk / "home", folder / "clock", trial.tree))
        model = Model()
        for server in (model, *crowd.wires):
            await stack.enter_async_context(server.serving())
        gateway.configure(settings(model, crowd, gateway))
        notes = Notes([gateway], folder / "notes", f"1200.{os.getpid():07}")
        stack.callback(clear, gateway, notes)
        environ = {**crowd.environ, "OPENAI_API_KEY": "loopback"}
        victim = Victim(gateway, environ, random.Random(stage.name), disk / "ballast")
        await victim.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crowd.talk)
            async with fail_after(LONGEST):
                await crowd.is_heard()
            for number in range(stage.times):
                trial.tell(f"{stage.name}: {number + 1} of {stage.times}, {len(crowd.answered)} answered")
                await stage.deed(victim, number)
            crowd.is_over = True
        trial.tell(f"{stage.name}: what is still owed")
        await settle(partial(count_unanswered, crowd), lambda: len(crowd.answered))
        await settle(lambda: len(untold(crowd, notes, model)), notes.size)
        await victim.stop()
        crowd.look()
        found = judge(crowd, notes, model, Doubt(victim.cuts, stage.doubt))
        await settle(lambda: len(left_behind(gateway.home.root, notes.sleeps)), lambda: 0, quiet=5.0)
        found.left += left_behind(gateway.home.root, notes.sleeps).values()
        return found, victim.faults


def settings(model: Model, crowd: Crowd, gateway: GatewayProcess) -> str:
    return json.dumps(
        {
            "model": {"provider": "openai", "name": "m", "base_url": model.url},
            "access": {"rate": 100_000, "owners": crowd.owners},
            "sessions": {"too_old": "0s"},
            "tools": {"shell": "allow", "sandbox": {"write": [str(find_noted(gateway))]}},
        }
    )


def count_unanswered(crowd: Crowd) -> int:
    """Count the unanswered messages; answers still come after the last message."""
    crowd.look()
    return len(crowd.unanswered())


async def settle(missing: Callable[[], int], progress: Callable[[], int], quiet: float = QUIET) -> None:
    """Until nothing is missing, or nothing more comes."""
    begun = changed = time.monotonic()
    before = progress()
    while missing() and time.monotonic() - changed < quiet and time.monotonic() - begun < LONGEST:
        await anyio.sleep(GLANCE)
        if (now := progress()) != before:
            before, changed = now, time.monotonic()


def clear(gateway: Besieged, notes: Notes) -> None:
    """Nothing of it outlives the siege."""
    gateway.kill()
    for pid in left_behind(gateway.home.root, notes.sleeps):
        end(pid)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    mounted = run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        raise NoSmallDisk(mounted.stderr.strip())
    try:
        yield
    finally:
        run(["umount", "-l", folder], check=True)

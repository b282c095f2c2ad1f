"""Jobs on the daemon, while it is killed, stopped, its clock is set and its disk is full.

Jobs of one moment come all the time, others repeat each minute. Their answers go to a chat on Discord's server on
loopback, which lives on. A person writes there, so the gateway hears the network's time when its clock is right again.
In the end the history of each job and the chat are compared.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from gateway.errors import GatewayError
from gateway.yaml_source.timetable import parse_timetable
from tests.adapters.discord_facts import CHANNEL
from tests.adapters.discord_wire import DiscordWire
from tests.chaos.daemon import Besieged
from tests.siege import deeds
from tests.siege.deeds import Victim
from tests.siege.job_verdict import JobVerdict, judge_ends, list_lost
from tests.siege.model import NUMBER, Model
from tests.siege.siege import NoSmallDisk, settle, small_disk

SLACK = 90.0  # seconds before the end whose moments may still be on their way
REPEATED = ("every 1m", "* * * * *", "every 2m", "*/2 * * * *")
Deed = Callable[[Victim, int], Awaitable[None]]


@dataclass(frozen=True)
class JobSiege:
    """How long it lasts, how many jobs repeat, what happens how often, and the longest time until a moment."""

    seconds: float = 600.0
    repeated: int = 24
    kills: int = 50
    stops: int = 10
    jumps: int = 20
    fills: int = 3
    longest: int = 60

    def list_deeds(self, chance: random.Random, *, has_disk: bool) -> list[tuple[float, Deed, int]]:
        """List what happens, and when, in order."""
        times: list[tuple[Deed, int]] = [
            (deeds.kill_daemon, self.kills),
            (deeds.stop_daemon, self.stops),
            (deeds.set_the_clock, self.jumps),
            (deeds.fill_the_disk, self.fills if has_disk else 0),
        ]
        found = [(chance.uniform(0, self.seconds), deed, at) for deed, count in times for at in range(count)]
        return sorted(found, key=lambda one: one[0])


@dataclass(frozen=True)
class MadeJob:
    """A job, when it was made, and the number that its answer has."""

    name: str
    when: str
    at: float
    number: str


async def besiege_jobs(plan: JobSiege, folder: Path, tell: Callable[[str], None]) -> JobVerdict:
    """Make jobs while all goes wrong, let the rest end, and compare."""
    found, made = JobVerdict(), list[MadeJob]()
    disk, wire, model = folder / "disk", DiscordWire(), Model()
    async with AsyncExitStack() as stack:
        has_disk = mount(stack, disk)
        gateway = stack.enter_context(Besieged(disk / "home", folder / "clock"))
        for server in (wire, model):
            await stack.enter_async_context(server.serving())
        gateway.configure(json.dumps(make_settings(model, wire)))
        environ = {**wire.environ, "OPENAI_API_KEY": "loopback"}
        victim = Victim(gateway, environ, random.Random("jobs"), disk / "ballast")
        await victim.start()
        begun, is_over = time.monotonic(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(make_jobs, gateway, plan, made)
            tasks.start_soon(write, wire, is_over)
            await harm(victim, plan.list_deeds(victim.chance, has_disk=has_disk), found.counts, tell)
            await anyio.sleep(max(0.0, begun + plan.seconds - time.monotonic()))
            is_over.set()
        tell("what still runs")
        await settle(lambda: count_running(gateway, made), lambda: len(wire.shown))
        found.faults += victim.faults
        shown = Counter(number for one in wire.shown for number in NUMBER.findall(one.text))
        for job in made:
            rows = read_rows(gateway, job.name)
            for row in rows:
                found.count_row(row["state"], row.get("count", 1))
            found.faults += judge_job(job, rows, shown[job.number], is_paused(gateway, job.name))
        await victim.stop()
    found.counts["jobs"] = len(made)
    return found


def mount(stack: AsyncExitStack, disk: Path) -> bool:
    """Mount a small disk, if we may."""
    try:
        stack.enter_context(small_disk(disk))
    except NoSmallDisk:
        return False
    return True


def make_settings(model: Model, wire: DiscordWire) -> dict[str, Any]:
    return {
        "model": {"provider": "openai", "name": "m", "base_url": model.url},
        "access": {"owners": {"discord": [wire.known_as("1001")]}},
        "jobs": {"each_person": 10_000, "runs_an_hour": 10_000},
    }


async def make_jobs(gateway: Besieged, plan: JobSiege, made: list[MadeJob]) -> None:
    """Make those that repeat first, and then one of one moment again and again."""
    begun, chance = time.monotonic(), random.Random("made")
    while time.monotonic() - begun < plan.seconds or len(made) < plan.repeated:
        at = len(made)
        when = REPEATED[at % len(REPEATED)] if at < plan.repeated else f"{chance.randrange(1, plan.longest)}s"
        await make_job(gateway, MadeJob(f"j{at}", when, 0.0, f"n{at * 10:06}"), made)
        if at >= plan.repeated:
            await anyio.sleep(2.0)  # the chat takes a message a second


async def write(wire: DiscordWire, is_over: anyio.Event) -> None:
    """Write now and then, so that the network's own time is known."""
    while not is_over.is_set():
        await wire.write("hello", by="1001")
        await anyio.sleep(5.0)


async def make_job(gateway: Besieged, job: MadeJob, made: list[MadeJob]) -> None:
    """Make a job, again until the gateway has it: a kill may have cut off the answer alone."""
    params = {"name": job.name, "when": job.when, "text": f"please {job.number}", "to": f"discord:{CHANNEL}"}
    while True:
        try:
            await to_thread.run_sync(gateway.call, "jobs.add", params)
        except (GatewayError, OSError) as error:
            if "already" not in str(error):
                await anyio.sleep(0.1)
                continue
        made.append(MadeJob(job.name, job.when, time.time(), job.number))
        return


async def harm(
    victim: Victim, planned: Sequence[tuple[float, Deed, int]], counts: Counter[str], tell: Callable[[str], None]
) -> None:
    """Do each deed at its time."""
    begun = time.monotonic()
    for at, deed, number in planned:
        await anyio.sleep(max(0.0, begun + at - time.monotonic()))
        tell(f"{deed.__name__} at {time.monotonic() - begun:.0f} s")
        await deed(victim, number)
        counts[deed.__name__] += 1


def read_rows(gateway: Besieged, name: str) -> list[dict[str, Any]]:
    return list(gateway.call("jobs.history", {"name": name})["moments"])


def is_paused(gateway: Besieged, name: str) -> bool:
    return bool(gateway.call("jobs.show", {"name": name})["paused"])


def count_running(gateway: Besieged, made: Sequence[MadeJob]) -> int:
    """Count the jobs that run or are about to, and the answers on their way, which nothing counts before a login."""
    replies: int = gateway.call("status")["backlog"]["replies"].get("discord", 1)
    of_one_moment = {job.name for job in made if job.when not in REPEATED}
    states = {str(one["name"]): str(one["state"]) for one in gateway.call("jobs.list")["jobs"]}
    waiting = [name for name, state in states.items() if name in of_one_moment and state != "over"]
    return replies + len({*waiting, *(name for name, state in states.items() if state == "running")})


def judge_job(job: MadeJob, rows: Sequence[dict[str, Any]], shown: int, is_stopped: bool) -> Iterator[str]:
    what = f"{job.name} ({job.when})"
    yield from judge_ends(what, Counter(row["state"] for row in rows), shown)
    if job.when not in REPEATED:
        if len(rows) != 1:
            yield f"{'doubled' if rows else 'lost'}: {what} has {len(rows)} ends"
    elif not is_stopped:
        spans = [(row["due"], row.get("to") or row["due"]) for row in rows]
        lost = list_lost(parse_timetable(job.when, None), job.at, time.time() - SLACK, spans)
        yield from (f"lost: {what} was due at {due}" for due in lost)

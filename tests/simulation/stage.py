"""One simulated gateway: the real lanes, outbox and jobs on a journal in memory, and people on a network of our own.

It is killed between any two steps, and its wall clock jumps; the journal and the network live on.
"""

import gc
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import anyio
from msgspec.structs import replace

from gateway.agent.model import Chunk, ModelRequest
from gateway.engine.journal_clock import Clock
from gateway.jobs.job import Job, Missed, Overlap, parse_time
from gateway.jobs.journal import JobJournal
from gateway.jobs.runner import JobPorts, JobRunner
from gateway.jobs.timer import clocks_of
from gateway.messages.message import Address, Message, Reply
from tests.dispatcher.room import Net, chat
from tests.engine.memory_engine import MemoryEngine
from tests.siege.job_verdict import JobVerdict
from tests.simulation.judge import judge
from tests.simulation.world import BEGUN, WORLD, Life

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Jerusalem")
TIMES = ("every 7m", "every 31m", "every 2h", "*/10 * * * *", "30 * * * *", "15 9 * * *", "0 2 * * *", "5m", "40m")
JUMPS = (-2 * HOUR, -600.0, 600.0, 3 * HOUR, 2 * DAY, -30 * DAY)
RIGHT_AGAIN = 3000.0  # seconds after which a clock that was set is right again


@dataclass(frozen=True)
class Plan:
    """The size of a simulation; `seconds` is how long people write and things go wrong."""

    messages: int = 500
    jobs: int = 200
    makers: int = 8
    chats: int = 20
    seconds: float = 4 * HOUR
    kills: int = 40
    jumps: int = 6
    begun: float = BEGUN
    times: tuple[str, ...] = TIMES
    rest: float = HOUR


@dataclass
class Outcome(JobVerdict):
    """The outcome of a run, and the digest of the whole journal."""

    seed: int = 0
    digest: str = ""


class Echo:
    """A model that takes a while, and says again what it was told."""

    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        await anyio.sleep(WORLD.chance.expovariate(1 / 4))
        yield Chunk(str(request.messages[-1].content)[-60:])


class SlowNet(Net):
    """A network that lives on, knows a message again, and takes a while."""

    doubt = "lookup"

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[tuple[str, int], str] = {}

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        await anyio.sleep(WORLD.chance.uniform(0, 0.4))
        self.sent.append(reply)
        name = self.ids[nonce, part] = f"m{len(self.sent)}"
        await anyio.sleep(WORLD.chance.uniform(0, 0.4))
        return (name,)

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        found = self.ids.get((nonce, part))
        return (found,) if found else None


class Stage:
    """The journal, the network and the people, who outlive the gateway."""

    def __init__(self, seed: int, plan: Plan) -> None:
        WORLD.reset(seed)
        WORLD.ahead = plan.begun
        self.plan, self.outcome, self.net = plan, Outcome(seed=seed), SlowNet()
        self.clock = Clock(WORLD.wall, WORLD.read_steady, WORLD.read_steady, 1, lambda: False)
        self.engine = MemoryEngine(self.clock)
        self.graves: list[Any] = []
        chance = WORLD.chance
        self.unsaid: dict[int, list[tuple[float, str]]] = {}
        for number in range(plan.messages):
            said = self.unsaid.setdefault(chance.randrange(plan.chats), [])
            said.append((chance.uniform(0, plan.seconds), f"n{number}"))
        for said in self.unsaid.values():
            said.sort()
        self.unmade = sorted(chance.uniform(0, plan.seconds / 2) for _ in range(plan.jobs))
        self.made: list[Job] = []
        self.is_judged = False
        self.troubles = self._plan_troubles()

    def _plan_troubles(self) -> list[tuple[float, Callable[[], None] | None]]:
        """Kills (None) and settings of the clock, in order."""
        chance, plan = WORLD.chance, self.plan
        found: list[tuple[float, Callable[[], None] | None]] = []
        found += [(chance.uniform(0, plan.seconds), None) for _ in range(plan.kills)]
        for number in range(plan.jumps):
            at = plan.seconds * (number + chance.random() / 2) / plan.jumps
            jump = chance.choice(JUMPS)
            found.append((at, partial(self._set_clock, jump)))
            found.append((at + min(RIGHT_AGAIN, plan.seconds / plan.jumps / 2), partial(self._set_clock, 0.0)))
        return sorted(found, key=lambda one: one[0])

    def _set_clock(self, ahead: float) -> None:
        WORLD.ahead = self.plan.begun + ahead
        self.outcome.counts["jumps"] += 1

    def run(self) -> Outcome:
        """Live from kill to kill, until all is said and done."""
        while self.troubles:
            self._live_once()
        self._live_once()
        return self.outcome

    def _live_once(self) -> None:
        life = Life()
        task = life.start(self._live())
        end = self.plan.seconds + self.plan.rest
        while not task.done():
            life.step()
            while self.troubles and self.troubles[0][0] <= WORLD.steady:
                deed = self.troubles.pop(0)[1]
                if deed is None:
                    for _ in range(WORLD.chance.randrange(40)):
                        life.step()
                    self._kill(life, task)
                    return
                deed()
            if WORLD.steady > end + DAY:
                self.outcome.faults.append("it did not end")
                break
        if not self.is_judged and task.done() and not task.cancelled() and (error := task.exception()):
            self.outcome.faults.append(f"it ended by itself: {error!r}")
            self._kill(life, task)

    def _kill(self, life: Life, *grave: Any) -> None:
        """Drop everything but the journal's records, and what it knows of its consumers and its clock.

        What has ended must not run its `finally`, so it is kept from the collector.
        """
        gc.collect()
        gc.freeze()
        self.outcome.counts["kills"] += 1
        life.end()
        self.graves.append((life, grave, self.engine))
        self.engine = self.engine.reopen(self.clock)

    async def _live(self) -> None:
        async with chat(engine=self.engine, net=self.net, model=Echo()) as room, anyio.create_task_group() as tasks:
            lanes, jobs = room.dispatcher.lanes, room.dispatcher.jobs
            ports = JobPorts(lanes.accept, lanes.interrupt, room.house.access.find_role, room.hooks.emit)
            runner = await tasks.start(
                self._run_jobs, JobRunner(self.engine, jobs, ports, clocks_of(self.engine.clock))
            )
            for number, said in self.unsaid.items():
                tasks.start_soon(self._write, room.dispatcher.receive, number, said)
            tasks.start_soon(self._make_jobs, jobs)
            await anyio.sleep(max(0.0, self.plan.seconds + self.plan.rest - WORLD.steady))
            await self._settle(jobs, runner)
            await judge(self.engine, self.outcome, self.made, self.net.sent)
            self.is_judged = True
            tasks.cancel_scope.cancel()

    async def _write(self, receive: Callable[[Message], Any], number: int, said: list[tuple[float, str]]) -> None:
        """Write what a chat has to say; what is not confirmed comes again after a kill."""
        while said:
            at, text = said[0]
            await anyio.sleep(max(0.0, at - WORLD.steady))
            await receive(Message(text, Address("net", f"room{number}"), "78"[number % 2], text))
            said.pop(0)
            self.outcome.counts["messages"] += 1

    async def _make_jobs(self, jobs: JobJournal) -> None:
        while self.unmade:
            await anyio.sleep(max(0.0, self.unmade[0] - WORLD.steady))
            number = len(self.made)
            job = self._make_job(number, jobs)
            await jobs.add(job)
            stored = await jobs.read(f"{job.maker}/{job.name}")
            self.made.append(stored.job if stored else job)
            self.unmade.pop(0)
            self.outcome.counts["jobs"] += 1

    def _make_job(self, number: int, jobs: JobJournal) -> Job:
        """Make a job; it is another one after a kill, so the name tells them apart."""
        chance, now = WORLD.chance, jobs.clock()
        when, zone = chance.choice(self.plan.times), chance.choice(ZONES)
        at, ahead = parse_time(when, zone, now, self.engine.clock.calculate_difference)
        place = Address("net", f"jobs{number % self.plan.makers}")
        name, maker = f"j{number}-{WORLD.steady:.0f}", f"net:m{number % self.plan.makers}"
        key = f"agent:main:net:dm:job{number}"
        job = Job(name, name, maker, when, f"do {name}", place, place, key, "7", now, zone=zone, at=at, ahead=ahead)
        missed, overlap = chance.choice(get_args(Missed)), chance.choice(get_args(Overlap))
        return replace(job, missed=missed, overlap=overlap)

    async def _run_jobs(self, runner: JobRunner, *, task_status: Any) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                await tasks.start(runner.run)
                task_status.started(scope)

    async def _settle(self, jobs: JobJournal, runner: anyio.CancelScope) -> None:
        """Wait until what has begun has ended, and begin nothing more."""
        for _ in range(6000):
            if not any([one.job.running async for one in jobs.read_all()]):
                break
            await anyio.sleep(0.1)
        runner.cancel()
        await anyio.sleep(60)


def simulate(seed: int, plan: Plan) -> Outcome:
    """Run a simulation; the digest is of every byte in the journal."""
    stage = Stage(seed, plan)
    outcome = stage.run()
    hashed = hashlib.sha256()
    for record in stage.engine.list_records():
        hashed.update(repr(record).encode())
    outcome.digest = hashed.hexdigest()[:16]
    outcome.counts["hours"] = round(WORLD.steady / HOUR)
    return outcome

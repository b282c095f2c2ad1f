"""A runner of jobs on a journal in memory, whose clock is set by hand."""

from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec

from gateway.engine.interface import NewRecord
from gateway.jobs.job import (
    Job,
    parse_time,
)
from gateway.jobs.journal import JobJournal
from gateway.jobs.runner import JobPorts, JobRunner
from gateway.jobs.timer import Clocks
from gateway.lanes.lanes import make_inbound_put
from gateway.messages.message import Message
from gateway.messages.roles import Role
from gateway.records import records, subjects
from tests.dispatcher.room import KEY, ROOM
from tests.engine.memory_engine import MemoryEngine
from tests.spine import until

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp()


class House:
    """A runner on a journal in memory, whose clock is set by hand; the lanes end each turn as `status` says."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine
        self.now, self.ahead, self.jump = NOON, 0.0, 0.0
        self.jobs = JobJournal(engine, lambda: self.now)
        self.came: list[Message] = []
        self.seqs: list[int] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.role: Role | None = "user"
        self.stopped: list[str] = []
        self.alerts: list[str] = []

    def runner(self) -> JobRunner:
        return JobRunner(self.engine, self.jobs, self.ports(), self.clocks)

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.now, lambda: self.ahead, lambda: self.jump)

    def ports(self) -> JobPorts:
        return JobPorts(
            self.accept,
            self.stop,
            lambda _: self.role,
            lambda name, **facts: self.told.append((name, facts)),
            alert=self.alert,
        )

    async def alert(self, text: str) -> None:
        self.alerts.append(text)

    def has_come(self, count: int) -> bool:
        return len(self.came) >= count

    async def accept(self, message: Message, key: str, *extra: NewRecord) -> int:
        seqs = await self.engine.append(make_inbound_put(message, key, "", self.now), *extra)
        self.came.append(message)
        self.seqs.append(seqs[0])
        return seqs[0]

    async def stop(self, _key: str) -> None:
        self.stopped.append(_key)
        await self.end("interrupted")

    async def end(self, status: Any = "ok", at: int = -1, error: str = "") -> None:
        """End the turn of a message that came."""
        end = records.TurnEnded(upto=self.seqs[at], turn_id=f"t{self.seqs[at]}", status=status, error=error)
        await self.engine.append(NewRecord(subjects.session_subject_of("turn", KEY), records.encode(end)))

    async def add(self, name: str = "tea", **more: Any) -> Job:
        when = more.pop("when", "every 1h")
        at, ahead = parse_time(when, "UTC", self.now, lambda: self.ahead)
        job = Job(name, name, "net:7", when, "make tea", ROOM, ROOM, KEY, "7", self.now, zone="UTC", at=at, ahead=ahead)
        job = msgspec.structs.replace(job, **more)
        await self.jobs.add(job)
        return job

    async def rows(self, job: Job) -> list[tuple[float, str, str]]:
        """Return the history, oldest first: hours after noon, state and reason."""
        found = await self.jobs.read_history(job)
        return [((one.due - NOON) / 3600, one.state, one.reason) for one in reversed(found)]

    async def run_until_all_ended(self, status: Any = "ok") -> None:
        """Run what is due, to the end of its turn."""
        runner, before = self.runner(), len(self.came)
        async with anyio.create_task_group() as tasks:
            await tasks.start(runner.run)
            for at in range(before, len(self.came)):
                await self.end(status, at)
            await until(lambda: sum(name != "job:due" for name, _ in self.told) >= len(self.told) / 2)
            await self.settle()
            tasks.cancel_scope.cancel()

    async def settle(self) -> None:
        while any([one.job.running async for one in self.jobs.read_all()]):  # noqa: ASYNC110 - the journal tells nobody
            await anyio.sleep(0.001)

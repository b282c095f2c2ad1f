"""The jobs and their history in the journal: a record for each job, and one for each of its moments.

A moment's first record is appended on the condition that it is the first, so it runs at most once, whatever the clock
does and however many gateways there are. A record of the history goes when there are about a thousand newer ones, or
after 90 days.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec

from gateway.config.node_settings import JobSettings
from gateway.engine.interface import Engine, NewRecord, Tail
from gateway.errors import AgentError, Conflict
from gateway.jobs.job import LONGEST_KEPT, STRANGER, TOO_OFTEN, Job, Moment, find_history_limit, read_timetable
from gateway.jobs.messages import OWN_SESSION
from gateway.messages.message import Address
from gateway.records import records, subjects
from gateway.records.stores import make_value_put, read_store


class StoredJob(msgspec.Struct, frozen=True):
    """A job as the journal has it; `seq` is its record."""

    seq: int
    job: Job


class JobJournal(msgspec.Struct, eq=False):
    """All jobs, by maker and name."""

    _engine: Engine
    clock: Callable[[], float] = time.time
    limits: Callable[[], JobSettings] = JobSettings

    async def tail(self) -> Tail:
        """Return the changes of jobs from now on."""
        return await self._engine.tail(subjects.hook_store_subject_of(subjects.JOBS))

    async def read_all(self) -> AsyncIterator[StoredJob]:
        """Yield all jobs, each with its last record."""
        found: dict[str, StoredJob] = {}
        async for record, kept in read_store(self._engine, subjects.JOBS):
            found[kept.key] = StoredJob(record.seq, msgspec.convert(kept.value, Job))
        for one in found.values():
            yield one

    async def read(self, key: str) -> StoredJob | None:
        where = subjects.hook_store_subject_of(subjects.JOBS, key)
        seq, kept = await records.read_last(self._engine, where, records.StoredValue)
        return StoredJob(seq, msgspec.convert(kept.value, Job)) if kept else None

    async def list_of(self, session_key: str, origin: Address | None = None) -> list[Job]:
        """List the jobs of a conversation of which moments will come, the next one first.

        With `origin`, also those that were made there, and have a session of their own.
        """
        own = OWN_SESSION.format("")

        def is_here(job: Job) -> bool:
            return job.session_key == session_key or (job.origin == origin and job.session_key.startswith(own))

        found = [one.job async for one in self.read_all() if is_here(one.job)]
        return sorted([job for job in found if not job.is_over], key=lambda job: job.find_next() or 0.0)

    async def list_all(self, sees: Callable[[Job], bool] = lambda _job: True) -> list[Job]:
        """List the jobs that the person sees by name; those that are over come last."""
        found = [one.job async for one in self.read_all() if sees(one.job)]
        return sorted(found, key=lambda job: (job.is_over, job.name, job.maker))

    async def find(self, name: str, sees: Callable[[Job], bool] = lambda _job: True) -> StoredJob:
        """Return the job with this name, or with this `maker/name`, among those that the person sees.

        Raises:
            AgentError: it was not found, or several makers have one.
        """
        found = [one async for one in self.read_all() if sees(one.job) and name in (one.job.name, key_of(one.job))]
        if len(found) == 1:
            return found[0]
        if not found:
            raise AgentError(f"the job {name!r} was not found; to see them: hermes-gateway jobs list")
        raise AgentError(f"there are several jobs {name!r}; write one of {', '.join(key_of(one.job) for one in found)}")

    async def add(self, job: Job, *, replace: bool = False) -> None:
        """Add a job. The one of a turn that runs again changes nothing.

        Raises:
            AgentError: there is one of this name already, or the maker has too many.
        """
        before = await self.read(key_of(job))
        if before and before.job.id == job.id:
            return
        if before and not replace and not before.job.is_over:
            raise AgentError(f"there is a job {job.name!r} already; remove it first, or replace it with --replace")
        own = [one async for one in self.read_all() if one.job.maker == job.maker and not one.job.is_over]
        job = msgspec.structs.replace(job, reached=job.since - self._engine.clock.calculate_difference())
        most = self.limits().each_person
        if len(own) >= most + bool(before and not before.job.is_over):
            raise AgentError(f"{job.maker} has {most} jobs already (`jobs.each_person`); remove some first")
        await self.change(StoredJob(before.seq if before else 0, job))

    async def change(self, found: StoredJob, *beside: NewRecord) -> None:
        """Write a job in the place of the record that was found, and others in the same append.

        Raises:
            Conflict: it has changed meanwhile.
        """
        put = make_job_put(found)
        await self._engine.append(*beside, put)
        if found.seq:
            await self._engine.purge(put.subject, found.seq)

    async def pause(self, job: Job, reason: str) -> None:
        """Pause a job for this reason, or go on with it without one: moments in between are not made up for."""

        def pause(found: Job) -> Job:
            since = found.since if reason or found.at else max(found.since, self.clock())
            return msgspec.structs.replace(found, paused=reason, since=since, failures=0)

        await self._update(job, pause)

    async def ask(self, job: Job) -> None:
        """Have a job run now, in addition to its own times."""
        await self._update(job, lambda found: msgspec.structs.replace(found, asked=self.clock()))

    async def _update(self, job: Job, change: Callable[[Job], Job]) -> None:
        """Change a job as it is now, and again if another process was faster; one that is gone stays gone."""
        while (found := await self.read(key_of(job))) and found.job.id == job.id:
            with suppress(Conflict):
                await self.change(StoredJob(found.seq, change(found.job)))
                return

    async def remove(self, job: Job) -> None:
        """Remove a job; its history goes with time."""
        await self._engine.purge(subjects.hook_store_subject_of(subjects.JOBS, key_of(job)))

    async def read_moment(self, job: Job, due: float) -> tuple[int, Moment | None]:
        """Return the last record of a moment."""
        where = subjects.moment_subject_of(job.id, due)
        seq, kept = await records.read_last(self._engine, where, records.StoredValue)
        return seq, msgspec.convert(kept.value, Moment) if kept else None

    async def end(self, job: Job, moment: Moment, *beside: NewRecord) -> Job | None:
        """Write the end of a running moment, and others in the same append; return the job as it is then.

        None: it has an end already.
        """
        while True:
            seq, before = await self.read_moment(job, moment.due)
            found = await self.read(key_of(job))
            if before is None or before.state != "running":
                return None
            row = make_row_put(job, moment, seq)
            if found is None or found.job.id != job.id:  # removed meanwhile
                await self._engine.append(row, *beside)
                return job
            left = tuple(due for due in found.job.running if due != moment.due)
            failures = found.job.failures + 1 if moment.state == "failed" else 0
            last = msgspec.structs.replace(moment, answer="")
            now = msgspec.structs.replace(found.job, running=left, failures=failures, last=last)
            try:
                await self.change(StoredJob(found.seq, now), row, *beside)
            except Conflict:
                continue
            await self._engine.purge(row.subject, seq)
            return now

    async def read_history(self, job: Job, limit: int = 1000) -> list[Moment]:
        """Return what became of its moments, the newest first; each was written before the record of the job."""
        end = await self._engine.last(subjects.hook_store_subject_of(subjects.JOBS, key_of(job)))
        where = subjects.moment_subject_of(job.id)
        rows = await records.read_last_records(self._engine, where, end.seq if end else 0, limit)
        kept = {row.subject: records.decode_readable(row.data) for row in rows}
        moments = [msgspec.convert(one.value, Moment) for one in kept.values() if isinstance(one, records.StoredValue)]
        return sorted(moments, key=lambda one: one.due, reverse=True)


def describe_problem(job: Job, name: str, late: float) -> str:
    """Describe the problem of a job, or return ""; after its last moment, a failure counts until `late`."""
    if job.paused in (TOO_OFTEN, STRANGER):
        return f"job {name} is paused: {job.paused}; run hermes-gateway jobs resume {name}"
    if job.last is None or job.last.state != "failed" or (job.is_over and job.last.due < late):
        return ""
    return f"job {name} failed: {job.last.reason}; run hermes-gateway jobs history {name}"


async def list_problems(jobs: JobJournal) -> list[str]:
    """List the problems of jobs, each with its reason and the command to type."""
    found = await jobs.list_all()
    names, late = Counter(job.name for job in found), jobs.clock() - 86_400.0
    called = [(job, job.name if names[job.name] == 1 else key_of(job)) for job in found]
    return [line for job, name in called if (line := describe_problem(job, name, late))]


async def find_missed(jobs: JobJournal, job: Job, missed: Moment) -> list[Moment]:
    """Return the moments that were missed, from the first one without a record on: the clock may have gone back."""
    while (await jobs.read_moment(job, missed.due))[1] is not None:
        if missed.count == 1:
            return []
        due = read_timetable(job.when, job.zone).next_after(missed.due)
        missed = msgspec.structs.replace(missed, due=due, count=missed.count - 1)
    return [missed]


def key_of(job: Job) -> str:
    """Return the key of a job: maker and name."""
    return f"{job.maker}/{job.name}"


def make_job_put(found: StoredJob) -> NewRecord:
    """Make the record of a job; one that is over goes with its history."""
    job = found.job
    ttl = LONGEST_KEPT if job.is_over and not job.running else None
    return make_value_put(subjects.JOBS, key_of(job), msgspec.to_builtins(job), expect=found.seq, ttl=ttl)


def make_row_put(job: Job, moment: Moment, seq: int = 0) -> NewRecord:
    """Make the record of a moment, whose last one was `seq`; `people forget` finds it by its maker."""
    ttl = None if moment.state == "running" else find_history_limit(job, moment.due)
    value = {**msgspec.to_builtins(moment), "maker": job.maker}
    kept = records.StoredValue(hook=subjects.JOBS, key=job.name, value=value)
    return NewRecord(subjects.moment_subject_of(job.id, moment.due), records.encode(kept), expect=seq, ttl=ttl)

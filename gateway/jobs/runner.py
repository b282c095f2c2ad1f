"""Runs jobs: each due moment becomes a message to the agent, and has an end in the journal.

The message and the record that the moment runs are one append, so a crash loses neither and repeats neither. The end of
the turn is read from the conversation's chain, also after a restart. A command runs at most once, too: if a crash cuts
it off, it runs again only if it is `repeatable`.

One of several gateways on a journal does this at a time. If two do it for a moment, the journal takes one of them.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Engine, NewRecord, Tail, append_until_written
from gateway.errors import Conflict
from gateway.jobs.job import (
    GRACE,
    MOST_FAILURES,
    STRANGER,
    TOO_OFTEN,
    DueMoments,
    Job,
    Moment,
    MomentState,
    describe_moment,
)
from gateway.jobs.journal import JobJournal, StoredJob, find_missed, key_of, make_job_put, make_row_put
from gateway.jobs.messages import find_low_role, id_of, make_message
from gateway.jobs.ping import call_ping
from gateway.jobs.programs import MAY_HAVE_RUN, TOO_LONG, RunProgram, run_no_program, run_program
from gateway.jobs.timer import LONGEST_JUMP, Clocks, Now, Timer
from gateway.messages.message import Message
from gateway.messages.roles import Role
from gateway.records import records, subjects
from gateway.records.stores import read_store
from gateway.records.turn_ends import wait_for_turn_end
from gateway.yaml_source.units import format_duration

HOUR = 3600.0
MOST_BESIDE = 50  # records in the append of a moment
LONGEST_ANSWER, LONGEST_REASON = 4000, 500
EVENTS = {"ran": "done"}  # the names of events where they are not those of the states
WHY = {"interrupted": "it was stopped", "expired": "it came too late", "forgotten": "it was forgotten"}
PAUSED = (
    f"The job {{}} of {{}} {TOO_OFTEN} and is paused: {{}}. To go on with it, type:\n`hermes-gateway jobs resume {{}}`"
)
STOPPED = "The job {} of {} was stopped: it {}."
STILL_RUNNING = "the moment before it still runs"
SPENT = "its maker's jobs have run {} times in an hour (`jobs.runs_an_hour`)"

log = logging.getLogger(__name__)


async def send_no_alert(_text: str) -> None:
    """Serve a gateway without home channels."""


class JobPorts(NamedTuple):
    """The parts of the gateway that a job needs when it is due: lanes, access, events, programs, alerts."""

    accept: Callable[..., Awaitable[int | None]]
    interrupt: Callable[[str], Awaitable[Any]]
    find_role: Callable[[Message], Role | None]
    emit: Callable[..., Any]
    run_program: RunProgram = run_no_program
    ping: Callable[[str, str], Coroutine[Any, Any, None]] = call_ping
    alert: Callable[[str], Awaitable[None]] = send_no_alert


class JobRunner:
    """Runs the jobs of a journal while `run` runs."""

    def __init__(self, engine: Engine, jobs: JobJournal, ports: JobPorts, clocks: Clocks) -> None:
        self._engine = engine
        self._jobs = jobs
        self._ports = ports
        self._clocks = clocks
        self._timer = Timer(self._load, self._begin, clocks)
        self.look = self._timer.look
        self._runs: dict[str, deque[float]] = defaultdict(deque)  # by maker, within the last hour
        self._tasks: anyio.abc.TaskGroup | None = None
        self._heard: Tail

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run jobs until cancelled. Any node may make one; this node runs it."""
        async with anyio.create_task_group() as self._tasks:
            self._heard = await self._jobs.tail()
            await take_reminders(self._engine, self._jobs)
            await self._load()
            self._runs.clear()
            async for found in self._jobs.read_all():
                self._runs[found.job.maker] = deque(sorted([*self._runs[found.job.maker], *found.job.runs]))
                running = found.job.running
                for due in running[:1] if found.job.command else running:  # the others begin when it has ended
                    await self._resume(found.job, due, is_cut_off=True)
            task_status.started()
            await self._timer.run(self._hear)

    async def _hear(self) -> None:
        """Plan the next job that is changed, or all jobs if the tail has lost changes."""
        record = await anext(self._heard)
        kept = records.decode_readable(record.data)
        if isinstance(kept, records.StoredValue):
            self._plan(msgspec.convert(kept.value, Job))
        if self._heard.dropped:
            heard = await self._jobs.tail()
            await self._load()
            self._heard = heard  # at the end: a look at the clock may cut this off, and then it begins again

    async def _load(self) -> None:
        async for found in self._jobs.read_all():
            self._plan(found.job)

    def _plan(self, job: Job) -> None:
        key, due = key_of(job), job.find_next()
        if due is None:
            self._timer.drop(key)
        elif job.asked or job.since != find_start(job, self._clocks.read()):
            self._timer.put(key, 0.0)
        else:
            self._timer.put(key, due - (job.ahead or 0.0), is_steady=job.ahead is not None)

    async def _resume(self, job: Job, due: float, *, is_cut_off: bool) -> None:
        """Go on with a moment that waited, or that ran when the last gateway ended."""
        seq, moment = await self._jobs.read_moment(job, due)
        if moment and moment.state == "running" and self._tasks:
            at = await find_message(self._engine, job, due, seq)
            self._tasks.start_soon(self._watch, job, moment, at, is_cut_off)

    async def _begin(self, keys: Sequence[str]) -> None:
        """Begin the moments of the jobs that are due, by their present records."""
        for key in keys:
            while found := await self._jobs.read(key):
                with suppress(Conflict):
                    self._plan(await self._begin_found(found))
                    break

    async def _begin_found(self, found: StoredJob) -> Job:
        job, now = found.job, self._clocks.read()
        since = find_start(job, now)
        if job.since != since:
            reached = max(job.reached, min(job.since, now.steady))
            job = replace(job, since=since, reached=reached)
            await self._jobs.change(StoredJob(found.seq, job))
        elif due := job.find_due(now.due, now.steady):
            return await self._take(found, due)
        return job

    async def _take(self, found: StoredJob, due: DueMoments) -> Job:
        """Write what becomes of these moments, and run the last one if it may run; return the job as it is then.

        Raises:
            Conflict: another gateway was faster.
        """
        job = found.job
        after = replace(job, asked=0.0) if job.asked else replace(job, since=due.last)
        if (await self._jobs.read_moment(job, due.last))[1] is not None:  # the clock went back, and it has run
            await self._jobs.change(StoredJob(found.seq, after))
            return after
        rows = list[Moment]()
        if job.missed == "skip" and due.late_by > GRACE and not job.asked:
            reason = "the gateway was not there"
            rows += await find_missed(
                self._jobs, job, Moment(due.first, "missed", reason, round(due.late_by, 3), due.last, due.count)
            )
        else:
            if due.count > 1:
                missed = Moment(due.first, "missed", "the next one ran", 0.0, due.previous, due.count - 1)
                rows += await find_missed(self._jobs, job, missed)
            reason = self._find_refusal(job)
            state: MomentState = "skipped" if reason else "running"
            rows.insert(0, Moment(due.last, state, reason, round(due.late_by, 3)))
            if reason == STRANGER:
                after = replace(after, paused=STRANGER)
        await self._write(found.seq, after, rows)
        return after

    async def _write(self, seq: int, job: Job, rows: list[Moment]) -> None:
        first = rows[0]
        puts = [make_row_put(job, one) for one in rows]
        if first.state == "running":
            now = self._clocks.read().steady
            runs = (*(one for one in job.runs if one > now - HOUR), now)
            await self._start(StoredJob(seq, replace(job, runs=runs)), first, puts)
            self._runs[job.maker].append(now)  # a Conflict, after which it is taken again, counts nothing
        else:
            await self._jobs.change(StoredJob(seq, replace(job, last=first)), *puts)
        for one in rows:
            if one.state != "running":
                send_event(self._ports, one.state, job, one)

    async def _start(self, found: StoredJob, moment: Moment, puts: list[NewRecord]) -> None:
        """Write that a moment runs, with its message to the agent, or begin its command."""
        job = found.job
        now, at = replace(job, running=(*job.running, moment.due)), 0
        message = None if job.command else make_message(job, moment.due, self._ports.find_role)
        if message is None:
            await self._jobs.change(StoredJob(found.seq, now), *puts)
        else:
            put = make_job_put(StoredJob(found.seq, now))
            accepted = await self._ports.accept(message, job.session_key, *puts, put)
            await self._engine.purge(put.subject, found.seq)
            row = (await self._jobs.read_moment(job, moment.due))[0] if not accepted else 0
            at = accepted or await find_message(self._engine, job, moment.due, row)
        send_event(self._ports, "due", job, moment)
        if self._tasks and not (job.command and job.running):
            self._tasks.start_soon(self._watch, job, moment, at)

    def _find_refusal(self, job: Job) -> str:
        """Return why a moment is skipped, or ""."""
        if find_low_role(job, self._ports.find_role) is None:
            return STRANGER
        if len(job.running) > (job.overlap == "queue"):
            return STILL_RUNNING
        runs = self._runs[job.maker]
        while runs and runs[0] < self._clocks.read().steady - HOUR:
            runs.popleft()
        most = self._jobs.limits().runs_an_hour
        return SPENT.format(most) if len(runs) >= most else ""

    async def _watch(self, job: Job, moment: Moment, seq: int, is_cut_off: bool = False) -> None:
        """Wait for the end of a running moment, whose message has this sequence, and write it down."""
        if not job.command:
            await self._end(job, await find_turn_end(self._engine, self._ports, job, moment, seq))
        elif is_cut_off and not job.repeatable:
            await self._end(job, replace(moment, state="failed", reason=MAY_HAVE_RUN))
        else:
            ended, reply = await run_program(job, moment, self._ports.find_role, self._ports.run_program)
            put = records.make_reply_put(reply, job.session_key, "", self._engine.clock.read())
            await self._end(job, ended, *([put] if ended.answer else []))

    async def _end(self, job: Job, moment: Moment, *beside: NewRecord) -> None:
        """Write down the end of a moment, and begin the command that waits for it."""
        moment = replace(moment, reason=moment.reason[:LONGEST_REASON], answer=moment.answer[:LONGEST_ANSWER])
        end = partial(self._jobs.end, job, moment, *beside)
        now = await append_until_written(end, f"the end of the job {job.name}")
        if now is None:
            return
        send_event(self._ports, moment.state, job, moment)
        if job.ping and moment.state == "ran" and self._tasks:
            self._tasks.start_soon(self._ports.ping, job.ping, f"the job {job.name}")
        if now.failures >= MOST_FAILURES and not now.at:
            log.warning("the job %s of %s %s, and is paused: %s", job.name, job.maker, TOO_OFTEN, moment.reason)
            await self._jobs.pause(now, TOO_OFTEN)
            await self._ports.alert(PAUSED.format(job.name, job.maker, moment.reason, key_of(job)))
        elif moment.reason == TOO_LONG.format(format_duration(job.max_time)):
            await self._ports.alert(STOPPED.format(job.name, job.maker, moment.reason))
        if now.command and now.running and now.id == job.id:
            await self._resume(now, now.running[0], is_cut_off=False)


def send_event(ports: JobPorts, state: str, job: Job, moment: Moment) -> None:
    """Emit the event of a moment."""
    facts = {"job": job.name, "maker": job.maker, "due": moment.due, "late_by": moment.late_by}
    ports.emit(f"job:{EVENTS.get(state, state)}", **facts, reason=moment.reason)


def find_start(job: Job, now: Now) -> float:
    """Return the time after which moments count: now if the clock was set back by far; as before if it is right."""
    if job.at:
        return job.since
    if job.since > now.wall + LONGEST_JUMP:
        return now.wall
    reached = job.reached + min(0.0, now.due - now.steady)  # by a clock that is still behind
    return reached if job.since + GRACE < reached <= now.due else job.since  # clocks differ by a little at each reading


async def find_message(engine: Engine, job: Job, due: float, row: int) -> int:
    """Return the sequence of a moment's message: one append wrote it and, at `row`, the record of the moment."""
    subject = subjects.session_subject_of("in", job.session_key)
    async for record, kept in records.read_all(engine, subject, records.InboundMessage, max(0, row - MOST_BESIDE)):
        if kept.message.id == id_of(job, due):
            return record.seq
    return row - 1


async def wait_for_end(engine: Engine, ports: JobPorts, job: Job, seq: int) -> tuple[records.TurnEnded, bool]:
    """Wait for the end of the turn that answers this message; stop it after the job's time, and say if that was so.

    Time in which the turn waits for its place, or for a person, does not count.
    """
    subject = subjects.session_subject_of("turn", job.session_key)
    heard = await engine.tail(subject)
    with anyio.CancelScope() as timer:
        async for _, kept in records.read_all(engine, subject, records.TurnRecord, seq):
            if isinstance(kept, records.TurnEnded) and kept.upto >= seq:
                return kept, False
            if isinstance(kept, records.Claim) and kept.on >= seq:
                timer.deadline = anyio.current_time() + job.max_time
        return await wait_for_turn_end(heard, seq, timer, job.max_time), False
    await ports.interrupt(job.session_key)
    return await wait_for_turn_end(heard, seq), True


async def find_turn_end(engine: Engine, ports: JobPorts, job: Job, moment: Moment, seq: int) -> Moment:
    """Wait for the end of the turn that answers this message, and return the moment as it ended."""
    end, is_long = await wait_for_end(engine, ports, job, seq)
    state, reason = read_end(end, TOO_LONG.format(format_duration(job.max_time)) if is_long else "")
    answer = await records.read_answer(engine, job.session_key, end.turn_id, seq, job.address)
    return replace(moment, state=state, reason=reason, answer=answer)


def read_end(end: records.TurnEnded, reason: str) -> tuple[MomentState, str]:
    """Return what became of a moment, and why, by the end of its turn."""
    if end.status in ("ok", "ended", "command"):
        return "ran", ""
    if end.status == "denied":
        return "skipped", end.error or "it was not allowed"
    return "failed", reason or end.error or WHY.get(end.status, end.status)


async def take_reminders(engine: Engine, jobs: JobJournal) -> None:
    """Make jobs of the reminders that an earlier version has kept."""
    async for record, kept in read_store(engine, subjects.REMINDERS):
        one, role = kept.value, kept.value.get("role")  # its fields are those of a job, too
        maker = one.get("person") or f"{one['address']['platform']}:{one['user_id']}"
        named = {"name": one["id"], "maker": maker, "origin": one["address"], "when": describe_moment(one["at"], "")}
        rights = {"role": role or "owner", "is_internal": bool(role), "ahead": one.get("ahead", 0.0), "since": 0.0}
        job = msgspec.convert({**one, **named, **rights}, Job)
        if await jobs.read(key_of(job)) is None:
            await jobs.change(StoredJob(0, job))
        await engine.purge(record.subject)

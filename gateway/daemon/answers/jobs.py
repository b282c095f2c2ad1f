"""Answers about jobs. Every caller of the socket is the owner at the terminal; new jobs belong to the owner."""

from typing import Any

from gateway.access.access_control import INTERNAL
from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.turns import Turns
from gateway.daemon.groups.work import Work
from gateway.dispatcher.context import ChatPlaces
from gateway.errors import AgentError
from gateway.jobs.job import BY_HAND, Job, Moment, digest_of, find_zone, parse_time
from gateway.jobs.verbs import JobAddParams, JobParams
from gateway.messages.message import Address
from gateway.records import subjects

TERMINAL = Address(PLATFORM, "main")


async def jobs_list(turns: Turns) -> Any:
    jobs = turns.dispatcher.jobs
    found = sorted([one.job async for one in jobs.read_all()], key=lambda job: (job.is_over, job.name, job.maker))
    return {"jobs": [_describe(job, turns.context.places) for job in found]}


async def jobs_show(turns: Turns, params: JobParams) -> Any:
    return _describe((await turns.dispatcher.jobs.find(params.name)).job, turns.context.places)


async def jobs_history(turns: Turns, params: JobParams) -> Any:
    jobs = turns.dispatcher.jobs
    found = await jobs.read_history((await jobs.find(params.name)).job)
    return {"moments": [_describe_end(one) for one in found]}


async def jobs_add(base: Base, work: Work, turns: Turns, params: JobAddParams) -> Any:
    jobs, clock, agents = turns.dispatcher.jobs, base.engine.clock, work.agents.now.names
    zone, now = params.zone or base.settings.gateway.timezone, jobs.clock()
    find_zone(zone)
    if bool(params.text.strip()) == bool(params.command.strip()):
        raise AgentError("a job needs a text for the agent, or a command, and not both")
    if params.agent and params.agent not in agents:
        raise AgentError(f"the agent {params.agent!r} was not found; there are {', '.join(sorted(agents))}")
    places = turns.context.places
    address = places.resolve_destination(params.to) if params.to else Address(INTERNAL, params.name)
    at, ahead = parse_time(params.when, zone, now, clock.calculate_difference)
    job = Job(
        id=subjects.token_of(f"{params.name} {now}")[:12],
        name=params.name,
        maker=f"{PLATFORM}:{OWNER}",
        when=params.when,
        text=params.text,
        address=address,
        origin=TERMINAL,
        session_key=f"agent:main:{INTERNAL}:dm:job:{params.name}",
        user_id=OWNER,
        since=now,
        zone=zone,
        at=at,
        ahead=ahead,
        agent=params.agent,
        missed=params.missed,
        overlap=params.overlap,
        max_time=params.max_time,
        command=params.command,
        allowed=digest_of(params.command),
        repeatable=params.repeatable,
        named=params.to if params.to and places.is_name(params.to) else "",
    )
    await jobs.add(job, replace=params.replace)
    return _describe(job, places)


async def jobs_pause(turns: Turns, params: JobParams) -> Any:
    return await _change(turns, params.name, BY_HAND)


async def jobs_resume(turns: Turns, params: JobParams) -> Any:
    return await _change(turns, params.name, "")


async def jobs_run(turns: Turns, params: JobParams) -> Any:
    jobs = turns.dispatcher.jobs
    job = (await jobs.find(params.name)).job
    await jobs.ask(job)
    return _describe(job, turns.context.places)


async def jobs_remove(turns: Turns, params: JobParams) -> Any:
    jobs = turns.dispatcher.jobs
    job = (await jobs.find(params.name)).job
    await jobs.remove(job)
    return {"name": job.name, "maker": job.maker}


async def _change(turns: Turns, name: str, reason: str) -> Any:
    jobs = turns.dispatcher.jobs
    job = (await jobs.find(name)).job
    await jobs.pause(job, reason)
    return _describe((await jobs.find(f"{job.maker}/{job.name}")).job, turns.context.places)


def _describe_end(moment: Moment) -> dict[str, Any]:
    said = {"due": moment.due, "state": moment.state, "reason": moment.reason, "late_by": moment.late_by}
    if moment.state == "missed":
        return {"from": said.pop("due"), "to": moment.until, "count": moment.count, **said}
    return {**said, "answer": moment.answer}


def _describe(job: Job, places: ChatPlaces) -> dict[str, Any]:
    state = "running" if job.running else "paused" if job.paused else "over" if job.is_over else "waiting"
    fields = (
        *("name", "maker", "when", "zone", "text", "command", "agent"),
        *("missed", "overlap", "max_time", "repeatable", "failures", "paused"),
    )
    to = "" if job.address.platform == INTERNAL else places.show_bound(job.address, job.named)
    return {
        **{name: getattr(job, name) for name in fields},
        "state": state,
        "next": job.find_next(),
        "to": to,
        "last": _describe_end(job.last) if job.last else None,
    }

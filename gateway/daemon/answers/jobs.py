"""Answers about jobs. A new job belongs to its caller: the owner at the terminal, or a person on the page."""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.access.access_control import INTERNAL, WEB
from gateway.adapters.page.places import address_of
from gateway.adapters.terminal import OWNER, PLATFORM
from gateway.daemon.agents import Agents
from gateway.daemon.answers.proposals import find_proposer
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.turns import Turns
from gateway.daemon.groups.work import Work
from gateway.dispatcher.context import ChatPlaces
from gateway.errors import AgentError
from gateway.jobs.job import BY_HAND, Job, Moment, digest_of, find_zone, parse_time
from gateway.jobs.journal import JobJournal
from gateway.jobs.messages import OWN_SESSION
from gateway.jobs.verbs import JobAddParams, JobHistoryParams, JobListParams, JobParams
from gateway.messages.message import Address
from gateway.messages.roles import Role
from gateway.records import activity, subjects
from gateway.records.activity import CALLER, PAGE_PLACE

AHEAD = 12 * 3600.0  # seconds for which the next moments are listed
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TERMINAL = Address(PLATFORM, "main")


async def jobs_list(turns: Turns, params: JobListParams) -> Any:
    jobs = turns.dispatcher.jobs
    found = await jobs.list_all()
    return {
        "jobs": [_describe(job, turns.context.places) | await _look_around(jobs, job, params.moments) for job in found]
    }


async def _look_around(jobs: JobJournal, job: Job, most: int) -> dict[str, Any]:
    if not most:
        return {}
    past = [msgspec.structs.replace(one, answer="") for one in await jobs.read_history(job, most)]
    return {"past": [*map(_describe_end, past)], "ahead": job.list_next(jobs.clock() + AHEAD, most)}


async def jobs_show(turns: Turns, params: JobParams) -> Any:
    return _describe((await turns.dispatcher.jobs.find(params.name)).job, turns.context.places)


async def jobs_history(turns: Turns, params: JobHistoryParams) -> Any:
    jobs = turns.dispatcher.jobs
    found = await jobs.read_history((await jobs.find(params.name)).job, params.limit)
    return {"moments": [_describe_end(one) for one in found]}


async def jobs_add(base: Base, work: Work, turns: Turns, params: JobAddParams) -> Any:
    jobs, clock = turns.dispatcher.jobs, base.engine.clock
    zone, now = params.zone or base.settings.gateway.timezone, jobs.clock()
    find_zone(zone)
    check_params(params, work.agents.now)
    maker, origin, role = find_maker()
    if params.command and origin != TERMINAL:
        raise AgentError("a job with a command is made at the terminal, or in a chat by the agent, which asks first")
    own = params.name if origin == TERMINAL else f"{maker}:{params.name}"
    places = turns.context.places
    address = places.resolve_destination(params.to) if params.to else Address(INTERNAL, own)
    at, ahead = parse_time(params.when, zone, now, clock.calculate_difference)
    job = Job(
        id=subjects.token_of(f"{own} {now}")[:12],
        name=params.name,
        maker=maker,
        when=params.when,
        text=params.text,
        address=address,
        origin=origin,
        session_key=OWN_SESSION.format(own),
        user_id=maker.partition(":")[2],
        role=role,
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
        model=params.model,
        ping=params.ping,
        paused=BY_HAND if params.paused else "",
        named=params.to if params.to and places.is_name(params.to) else "",
    )
    await jobs.add(job, replace=params.replace)
    return _describe(job, places)


def check_params(params: JobAddParams, agents: Agents) -> None:
    """Raise AgentError if a new job has no name or no work, or names what does not exist."""
    if not NAME.fullmatch(params.name):
        raise AgentError("a job's name has letters, digits, `_`, `.` and `-`, at most 64, as daily-report")
    if bool(params.text.strip()) == bool(params.command.strip()):
        raise AgentError("a job needs a text for the agent, or a command, and not both")
    for what, name, known in (("agent", params.agent, agents.names), ("model", params.model, agents.models)):
        if name and name not in known:
            raise AgentError(f"the {what} {name!r} was not found; there are {', '.join(sorted(known))}")
    if params.command and params.model:
        raise AgentError("a command has no model; leave --model out")
    if params.ping and not is_url(params.ping):
        raise AgentError("--ping takes a URL, as https://hc-ping.com/ID")


def is_url(text: str) -> bool:
    try:
        return text.startswith(("https://", "http://")) and bool(urlsplit(text).hostname)
    except ValueError:  # as for http://[
        return False


def find_maker() -> tuple[str, Address, Role]:
    """Return the caller as the maker of a job: their id, their own chat, and their role."""
    if not CALLER.get(activity.OWNER).place.startswith(PAGE_PLACE):
        return f"{PLATFORM}:{OWNER}", TERMINAL, "owner"
    by = find_proposer()
    return f"{WEB}:{by.name}", address_of(by.name), by.role


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
        return {**said, "from": moment.due, "to": moment.until, "count": moment.count}
    return {**said, "answer": moment.answer}


def _describe(job: Job, places: ChatPlaces) -> dict[str, Any]:
    state = "running" if job.running else "paused" if job.paused else "over" if job.is_over else "waiting"
    fields = (
        *("name", "maker", "when", "zone", "text", "command", "agent", "model"),
        *("missed", "overlap", "max_time", "repeatable", "ping", "failures", "paused"),
    )
    to = "" if job.address.platform == INTERNAL else places.show_bound(job.address, job.named)
    return {
        **{name: getattr(job, name) for name in fields},
        "state": state,
        "next": job.find_next(),
        "to": to,
        "last": _describe_end(job.last) if job.last else None,
    }

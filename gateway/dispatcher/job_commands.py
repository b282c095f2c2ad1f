"""The command `/jobs`: the jobs that a person may see, by their role."""

from typing import Any

from gateway.dispatcher.commands import Command, CommandOption, CommandResult, say_error
from gateway.errors import AgentError
from gateway.jobs.job import BY_HAND, IN_CHAT, Job, describe_job, describe_times
from gateway.jobs.journal import JobJournal, key_of
from gateway.messages.roles import Role, is_admin, rank_of
from gateway.records.records import ActivityRecord

USAGE = "/jobs takes `pause NAME`, `resume NAME`, or nothing."
DONE = {"pause": "The job {} is paused; /jobs resume {} goes on.", "resume": "The job {} goes on."}


async def run_jobs(call: Any) -> CommandResult:
    """List the jobs that the person of this `CommandCall` may see, or pause or resume one of them."""
    jobs, person, role = JobJournal(call.context.engine), str(call.message.payer), call.role
    is_operator = rank_of(role) >= rank_of("operator")
    sees = lambda job: is_operator or job.maker == person  # noqa: E731
    verb, _, name = call.args.partition(" ")
    if not verb:
        is_alone = call.message.address.chat_type == "dm"  # a group reads no texts
        found = [job for job in await jobs.list_all(sees) if not job.is_over]
        return CommandResult("\n".join(_describe(job, person, role, is_alone) for job in found) or "No jobs.")
    if verb not in DONE or not name.strip():
        return CommandResult(USAGE)
    try:
        job = (await jobs.find(name.strip(), sees)).job
    except AgentError as error:
        return CommandResult(say_error(error) if is_operator else f"The job {name.strip()!r} was not found.")
    if job.paused == BY_HAND and not is_operator:  # their own pause would take its place
        return CommandResult(f"The job {job.name} was paused by an operator, who can resume it.")
    await jobs.pause(job, "" if verb == "resume" else BY_HAND if is_operator else IN_CHAT)
    called = _name(job, person)
    return CommandResult(DONE[verb].format(called, called), activity=ActivityRecord(what=f"jobs.{verb}", on=called))


def _describe(job: Job, person: str, role: Role, is_alone: bool) -> str:
    is_whole = is_alone and (job.maker == person or is_admin(role))
    describe = describe_job if is_whole else describe_times
    return describe(job, _name(job, person))


def _name(job: Job, person: str) -> str:
    return job.name if job.maker == person else key_of(job)


JOBS = Command(
    "jobs",
    "list your jobs, and when each runs next",
    run_jobs,
    usage="[pause NAME|resume NAME]",
    options=(
        CommandOption("do", "the action", choices=("pause", "resume")),
        CommandOption("job", "which one"),
    ),
    urgent=True,
)

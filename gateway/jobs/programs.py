"""The programs of jobs: a command runs in the place of a text, without a model, and its output is the answer."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from gateway.agent.toolbox.shell import NO_OUTPUT, CommandOutput
from gateway.errors import AccessError, GatewayError
from gateway.jobs.job import SILENT, STRANGER, Job, Moment
from gateway.jobs.messages import find_low_role, id_of
from gateway.messages.message import Message, Reply
from gateway.messages.roles import Role
from gateway.yaml_source.units import format_duration

MAY_HAVE_RUN = "may have run"
TOO_LONG = "took longer than {}"

# Runs the command of a job with these rights. Raises AccessError if they do not suffice.
RunProgram: TypeAlias = Callable[[Job, Role], Awaitable[CommandOutput]]


async def run_no_program(job: Job, _role: Role) -> CommandOutput:
    raise AccessError(f"no commands run here, and so not that of {job.name}")


async def run_program(
    job: Job, moment: Moment, find_role: Callable[[Message], Role | None], run: RunProgram
) -> tuple[Moment, Reply]:
    """Run the command of a job; return the moment as it ended, and the reply with its answer."""
    role = find_low_role(job, find_role)
    ended = await _run(job, moment, role, run) if role else replace(moment, state="skipped", reason=STRANGER)
    return ended, Reply(id_of(job, moment.due), job.address, ended.answer, role=role or "")


async def _run(job: Job, moment: Moment, role: Role, run: RunProgram) -> Moment:
    try:
        output = await run(job, role)
    except AccessError as error:
        return replace(moment, state="skipped", reason=str(error))
    except GatewayError as error:
        return replace(moment, state="failed", reason=str(error))
    answer = "" if output.text.strip() in (NO_OUTPUT, SILENT) else output.text
    if output.status == 0:
        return replace(moment, state="ran", answer=answer)
    reason = TOO_LONG.format(format_duration(job.max_time)) if output.status is None else f"exit code {output.status}"
    return replace(moment, state="failed", reason=reason, answer=answer)

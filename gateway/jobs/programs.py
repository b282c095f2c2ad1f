"""The programs of jobs: a command runs in the place of a text, without a model, and its output is the answer."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from gateway.agent.toolbox.shell import NO_OUTPUT, SHELL, CommandOutput
from gateway.errors import AccessError, GatewayError
from gateway.events import Pause
from gateway.events.outcomes import find_reply
from gateway.hooks.scope import HookScope
from gateway.jobs.job import SILENT, STRANGER, Job, Moment
from gateway.jobs.messages import find_low_role, id_of
from gateway.messages.message import Message, Reply
from gateway.messages.roles import Role
from gateway.yaml_source.units import format_duration

MAY_HAVE_RUN = "may have run"
TOO_LONG = "took longer than {}"
NOT_ALLOWED = "a hook did not allow the command"
ASKED = "a hook asks a person about the command, and no person waits for a job"
CHANGED = "a hook changed the command, and a job runs it as it was made, or not at all"

# Runs the command of a job with these rights. Raises AccessError if they do not suffice.
RunProgram: TypeAlias = Callable[[Job, Role], Awaitable[CommandOutput]]


async def run_no_program(job: Job, _role: Role) -> CommandOutput:
    raise AccessError(f"no commands run here, and so not that of {job.name}")


async def check_command(command: str, view: HookScope) -> None:
    """Have the hooks before tools decide about the command of a job, as about a call of `shell`.

    Raises:
        AccessError: a hook denied or changed the command, or asks a person.
    """
    call = {"tool": SHELL, "args": {"command": command}, "result": None, "impl": None}
    try:
        event = await view.run("tool:before", **call | {"args": {"command": command}, "call_id": "", "hop": 0})
    except Pause:
        raise AccessError(ASKED) from None
    if (reply := find_reply(event.outcome)) is not None:
        raise AccessError(reply or NOT_ALLOWED)
    if any(event.get(name) != value for name, value in call.items()):
        raise AccessError(CHANGED)


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

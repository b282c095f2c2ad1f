"""The commands of jobs: they run as the shell tool of the job's agent would run them, with the rights of the job."""

from typing import Any

from gateway.agent.toolbox.file_reach import FOLDER
from gateway.agent.toolbox.shell import SHELL, CommandOutput, run_command
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.errors import AccessError
from gateway.jobs.job import Job, digest_of
from gateway.jobs.messages import JOB_MESSAGE
from gateway.jobs.programs import check_command
from gateway.messages.roles import Role, scope_of

NO_SHELL = (
    "its agent or its maker has no tool `shell`; `tools.shell`, the agent's `tools` and `access.tools` in config.yaml "
    "give it"
)
NOT_ALLOWED = "it needs an approval here now; remove the job and make it again"


async def run_job_program(
    base: Base, storage: Storage, people: People, work: Work, job: Job, role: Role
) -> CommandOutput:
    """Run the command of a job.

    Raises:
        AccessError: the agent or this role has no shell, the command needs an approval that it does not have, or a hook
            did not allow it.
    """
    agents = work.agents.now
    agent = agents.find(job.agent, people.chats.find(job.address, job.user_id)["agent"].value).name
    tool = agents.find_shell(agent)
    if agents.shell is None or tool is None or people.access.fit_tool(tool, role) is None:
        raise AccessError(NO_SHELL)
    fields = build_fields(job, role, agent)
    facts = {**fields, FOLDER: job.address.find_folder(base.home.files, job.user_id)}
    if job.allowed != digest_of(job.command) and agents.shell.needs_approval(job.command, facts):
        raise AccessError(NOT_ALLOWED)
    view = base.registry.scope(fields, answers={})
    await check_command(job.command, view)
    with storage.marks.changing_files():  # its changes to files are no person's doing
        output = await run_command(agents.shell, job.command, facts, seconds=job.max_time)
    call = {"tool": SHELL, "args": {"command": job.command}, "call_id": "", "hop": 0}
    view.emit("tool:after", **call, result=output.text, parts=[], error=None, denied=None, duration=None)
    return output


def build_fields(job: Job, role: Role, agent: str) -> dict[str, Any]:
    """Return the fields of events about a job's command: the fields of a turn that a job has too."""
    at = job.address
    return {
        "platform": at.platform,
        "account": at.account,
        "user_id": job.user_id,
        "person": job.person or job.maker,
        "scope": scope_of(role),
        "role": role,
        "chat_id": at.chat_id,
        "thread_id": at.thread_id,
        "chat_type": at.chat_type,
        "session_id": "",
        "session_key": job.session_key,
        "turn_id": f"{JOB_MESSAGE}{job.id}",
        "agent": agent,
    }

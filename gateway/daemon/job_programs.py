"""The commands of jobs: they run as the shell tool of the job's agent would run them, with the rights of the job."""

from gateway.agent.toolbox.file_reach import FOLDER
from gateway.agent.toolbox.shell import CommandOutput, run_command
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.errors import AccessError
from gateway.jobs.job import Job, digest_of
from gateway.messages.roles import Role

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
        AccessError: the agent or this role has no shell, or the command needs an approval that it does not have.
    """
    agents = work.agents.now
    tool = agents.find_shell(job.agent, people.chats.find(job.address, job.user_id)["agent"].value)
    if agents.shell is None or tool is None or people.access.fit_tool(tool, role) is None:
        raise AccessError(NO_SHELL)
    facts = {
        "role": role,
        "user_id": job.user_id,
        "chat_type": job.address.chat_type,
        FOLDER: job.address.find_folder(base.home.files, job.user_id),
    }
    if job.allowed != digest_of(job.command) and agents.shell.needs_approval(job.command, facts):
        raise AccessError(NOT_ALLOWED)
    with storage.marks.changing_files():  # its changes to files are no person's doing
        return await run_command(agents.shell, job.command, facts, seconds=job.max_time)

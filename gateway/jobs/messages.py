"""The messages of jobs to the agent, and the rights with which a job runs."""

import dataclasses
from collections.abc import Callable

from gateway.jobs.job import Job
from gateway.messages.authors import HOOK, WEBHOOK, find_author
from gateway.messages.message import Address, Message
from gateway.messages.roles import Role, pick_low_role

JOB_MESSAGE = "job-"  # starts the ids of their messages
OWN_SESSION = "agent:main:internal:dm:job:{}"  # of a job that does not run in a conversation
JOB_MODEL = "model"  # the model of the job, in `extra` of its message
DUE_TEXT = "[A reminder that was set here is due. Tell the person, or do what it says.] {}"
JOB_TEXT = "[The job {} is due. Do what it says; if you have nothing to say, answer [SILENT] alone.] {}"


def id_of(job: Job, due: float) -> str:
    """Return the id of the message, or of the answer, of a moment."""
    return f"{JOB_MESSAGE}{job.id}-{due:.3f}"


def make_message(job: Job, due: float, find_role: Callable[[Message], Role | None]) -> Message | None:
    """Make the message of a moment, with the least rights of the job and its maker; None: they may not speak."""
    role = find_low_role(job, find_role)
    if role is None:
        return None
    text = DUE_TEXT.format(job.text) if job.at else JOB_TEXT.format(job.name, job.text)
    said = Message(
        *(id_of(job, due), job.address, job.user_id, text),
        session=job.session_key,
        agent=job.agent,
        person=job.person,
        is_job=True,
        extra={JOB_MODEL: job.model} if job.model else {},
    )
    if job.is_internal:
        return dataclasses.replace(said, kind="internal", role=role)
    if job.address == job.origin and role == find_role(Message("", job.origin, job.user_id, "")):
        return said
    return dataclasses.replace(said, kind="internal", role=role, person=job.person or job.maker)


def find_low_role(job: Job, find_role: Callable[[Message], Role | None]) -> Role | None:
    """Return the least of a job's rights and those that the person who answers for it has now; None: they have none."""
    at, user = job.origin, job.user_id
    if job.is_internal:
        network, _, user = job.person.partition(":")
        if not user or job.person.startswith((HOOK, WEBHOOK)) or find_author(job.person).startswith((HOOK, WEBHOOK)):
            return job.role  # no person, but a hook or a webhook, whose rights were given to it
        at = job.origin if job.origin.platform == network else Address(network, user)
    now = find_role(Message("", at, user, ""))
    return pick_low_role(now, job.role) if now else None

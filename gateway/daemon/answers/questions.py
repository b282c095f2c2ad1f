"""Answers about open approvals and other questions.

Every caller of the socket is the owner, who can approve all calls. On the page, a person can approve the calls of
others if `tools.approvers` includes their role.
"""

from typing import Any

from gateway.adapters import terminal
from gateway.adapters.page import places
from gateway.daemon.groups.people import People
from gateway.daemon.groups.turns import Turns
from gateway.errors import RoleRefused, SessionError
from gateway.questions.open_questions import Persons
from gateway.questions.proposals import NOT_HERE, as_approval
from gateway.questions.verbs import ApprovalAnswerParams, QuestionAnswerParams
from gateway.records.activity import CALLER, OWNER, TERMINAL_PLACE

OWNERS = ((terminal.PLATFORM, terminal.OWNER), (places.PLATFORM, places.OWNER))


def find_persons() -> Persons:
    """Return the ids of the caller in chats: those of the owner, or of the person on the page."""
    platform, _, name = CALLER.get(OWNER).name.partition(":")
    if platform != places.PLATFORM or not name:
        return OWNERS
    network, colon, user = name.partition(":")
    return (*(((network, user),) if colon else ()), (platform, name))


def is_at_terminal() -> bool:
    """Return True if the caller is a person at a terminal: no other caller can answer proposals."""
    caller = CALLER.get(None)
    return caller is not None and caller.place == TERMINAL_PLACE and caller.role == "owner"


async def approvals_list(people: People, turns: Turns) -> Any:
    questions = turns.dispatcher.questions
    found = {"approvals": await questions.list_approvals(find_persons()), "questions": await questions.list_questions()}
    if is_at_terminal():
        kept = await turns.proposals.journal.list()
        found["approvals"] += [as_approval(one.proposal) for one in kept if one.proposal.is_open]
    rows = [one for rows in found.values() for one in rows]
    ids = [f"{one['platform']}:{one[field]}" for one in rows for field in ("user_id", "chat_id")]
    return {**found, "names": people.names.describe(ids)}


async def approvals_answer(people: People, turns: Turns, params: ApprovalAnswerParams) -> Any:
    if found := await turns.proposals.journal.find(params.id):
        if not is_at_terminal():
            raise RoleRefused(NOT_HERE)
        if params.lasts != "once":
            raise SessionError("a proposal is allowed this once only")
        by = f"{terminal.PLATFORM}:{terminal.OWNER}"
        await turns.proposals.journal.answer(found, allowed=params.allowed, by=by, digest=params.digest)
        return {"id": params.id, "allowed": params.allowed}
    role = CALLER.get(OWNER).role
    if not people.access.can_approve(role, is_own=False):
        raise RoleRefused(f"the role {role} approves nothing here: tools.approvers in config.yaml says who does")
    answer = "deny" if not params.allowed else "yes" if params.lasts == "once" else params.lasts
    await turns.dispatcher.questions.answer_approval(params.id, answer, find_persons(), params.digest)
    return {"id": params.id, "allowed": params.allowed}


async def questions_answer(turns: Turns, params: QuestionAnswerParams) -> Any:
    if not params.text.strip():
        raise SessionError("the answer has no text")
    session_key = await turns.dispatcher.questions.answer_question(
        params.id, params.text, find_persons(), params.digest
    )
    return {"id": params.id, "session_key": session_key}

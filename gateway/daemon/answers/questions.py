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
from gateway.questions.verbs import ApprovalAnswerParams, QuestionAnswerParams
from gateway.records import activity

OWNERS = ((terminal.PLATFORM, terminal.OWNER), (places.PLATFORM, places.OWNER))


def find_persons() -> Persons:
    """Return the caller as chats know them: the owner, or a person of the page with their name on a network."""
    platform, _, name = activity.CALLER.get(activity.OWNER).name.partition(":")
    if platform != places.PLATFORM or not name:
        return OWNERS
    network, colon, user = name.partition(":")
    return (*(((network, user),) if colon else ()), (platform, name))


async def approvals_list(people: People, turns: Turns) -> Any:
    questions = turns.dispatcher.questions
    found = {"approvals": await questions.list_approvals(find_persons()), "questions": await questions.list_questions()}
    rows = [one for rows in found.values() for one in rows]
    ids = [f"{one['platform']}:{one[field]}" for one in rows for field in ("user_id", "chat_id")]
    return {**found, "names": people.names.describe(ids)}


async def approvals_answer(people: People, turns: Turns, params: ApprovalAnswerParams) -> Any:
    role = activity.CALLER.get(activity.OWNER).role
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

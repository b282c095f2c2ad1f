"""What the control socket answers about what waits for somebody's word: approvals, and other questions.

Whoever reaches the socket is the owner, so their yes counts for everybody's call; on the page it counts for those who
may approve what others want (`tools.approvers`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from gateway.adapters import terminal
from gateway.adapters.page import places
from gateway.control.params import NoParams
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.dispatcher.open_questions import Persons
from gateway.errors import RoleRefused, SessionError
from gateway.records import activity

TEXT_LIMIT = 100_000
OWNERS = ((terminal.PLATFORM, terminal.OWNER), (places.PLATFORM, places.OWNER))

Answer: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]


class ApprovalAnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the approval of this id is given, and for how long; `digest` says what was shown of it."""

    id: str
    allowed: bool
    lasts: Literal["once", "session", "always"] = "once"
    digest: str = ""


class QuestionAnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said to the question of this id; `digest` says what was shown of it."""

    id: str
    text: Answer
    digest: str = ""


def find_persons() -> Persons:
    """Who asks, as chats know them: the owner; or whom the page names, who may be known on a network besides."""
    platform, _, name = activity.CALLER.get(activity.OWNER).name.partition(":")
    if platform != places.PLATFORM or not name:
        return OWNERS
    network, colon, user = name.partition(":")
    return (*(((network, user),) if colon else ()), (platform, name))


async def _list(gateway: Gateway, _params: NoParams) -> Any:
    questions = gateway.dispatcher.questions
    return {"approvals": await questions.list_approvals(find_persons()), "questions": await questions.list_questions()}


async def _answer_approval(gateway: Gateway, params: ApprovalAnswerParams) -> Any:
    role = activity.CALLER.get(activity.OWNER).role
    if not gateway.access.can_approve(role, is_own=False):
        raise RoleRefused(f"the role {role} approves nothing here: tools.approvers in config.yaml says who does")
    answer = "deny" if not params.allowed else "yes" if params.lasts == "once" else params.lasts
    await gateway.dispatcher.questions.answer_approval(params.id, answer, find_persons(), params.digest)
    return {"id": params.id, "allowed": params.allowed}


async def _answer_question(gateway: Gateway, params: QuestionAnswerParams) -> Any:
    if not params.text.strip():
        raise SessionError("there is no answer in this")
    session_key = await gateway.dispatcher.questions.answer_question(
        params.id, params.text, find_persons(), params.digest
    )
    return {"id": params.id, "session_key": session_key}


QUESTION_VERBS: Mapping[str, GatewayVerb[Any]] = {
    "approvals.list": GatewayVerb(NoParams, _list),
    "approvals.answer": GatewayVerb(ApprovalAnswerParams, _answer_approval),
    "questions.answer": GatewayVerb(QuestionAnswerParams, _answer_question),
}

"""The right to answer: an approval is for approvers, any other question for the person asked, and for approvers.

The access rules decide who is an approver (`tools.approvers`). The place of the question, and the way of the answer (a
button, a text, a command), make no difference.
"""

import re
from typing import NamedTuple

from gateway.access.access_control import API, AccessControl
from gateway.agent.tool_approval import LASTING
from gateway.engine.interface import Engine
from gateway.events import YES_WORDS, is_yes
from gateway.messages.message import Message
from gateway.messages.roles import Role, is_admin
from gateway.records import records, subjects
from gateway.sessions.session import OpenTurn, Session

# The ids of old approvals without calls: by a tool, and by a hook before tools.
OLD_APPROVAL = re.compile(r"[^/]+/[^/]+/approve|[^/]+/tools?:before/.*", re.DOTALL)
ANSWER_WORDS = YES_WORDS | {"n", "no", "deny"}


class AnswerRights(NamedTuple):
    """The open questions that a person may answer, by name, and if they are the person asked in this turn."""

    names: tuple[str, ...]
    is_own: bool


async def find_rights(
    engine: Engine, access: AccessControl, session: Session, message: Message, role: Role
) -> AnswerRights:
    """Return what the sender of this message may answer in a session."""
    turn = session.turn
    if turn is None or not turn.questions or message.address.platform == API:
        return AnswerRights((), is_own=False)
    asker = await find_sender(engine, session)
    is_own = asker is not None and asker.kind != "internal" and is_same_person(asker, message)
    may_approve = access.can_approve(role, is_own=is_own)
    may_speak = is_own or may_approve or is_admin(role)
    names = (name for name in turn.questions if (may_approve if is_approval(turn, name) else may_speak))
    return AnswerRights(tuple(names), is_own)


def is_approval(turn: OpenTurn, name: str) -> bool:
    """Return True if this question of a turn is an approval.

    The first version wrote no calls: then its name decides.
    """
    return bool(turn.calls.get(name) or OLD_APPROVAL.fullmatch(name))


def is_same_person(one: Message, other: Message) -> bool:
    return bool(one.user_id) and (one.address.platform, one.user_id) == (other.address.platform, other.user_id)


def as_answer(turn: OpenTurn, name: str, answer: str, *, is_own: bool) -> str:
    """Return the effective answer: another person's request is approved only once, whatever was said."""
    lasts = answer.strip().lower() in LASTING
    return "yes" if lasts and not is_own and is_approval(turn, name) else answer


def list_refusals(turn: OpenTurn) -> tuple[str, ...]:
    """Describe the tools that unattended work was not allowed to use, for its answer."""
    missed = [name for name, answer in turn.answers.items() if is_approval(turn, name) and not is_yes(answer)]
    tools = dict.fromkeys(call.tool for name in missed for call in turn.calls.get(name, ()))
    return (f"(Done without {', '.join(tools)}: no approval came in time.)",) if tools else ()


async def find_sender(engine: Engine, session: Session) -> Message | None:
    """Return the first message of a session's open turn."""
    waiting = await engine.read(subjects.session_subject_of("in", session.key), session.upto, 1)
    kept = records.decode(waiting[0].data) if waiting else None
    return kept.message if isinstance(kept, records.InboundMessage) else None

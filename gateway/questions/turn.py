"""The questions of a turn: its result while it waits, the text that the chat shows, and the answers that count."""

from collections.abc import Mapping
from typing import Any

from gateway.access.access_control import API, INTERNAL, TERMINAL, AccessControl
from gateway.events import Question
from gateway.lanes.turn import ANSWER_WAIT, LaneResult, LaneTurn
from gateway.messages.message import Message, Reply
from gateway.questions.places import make_answer_buttons, question_token_of
from gateway.questions.shown import own_reply_id_of
from gateway.questions.text import show_question, to_markdown
from gateway.records import records
from gateway.sessions.session import OpenTurn


def answers_of_turn(turn: OpenTurn, now: float) -> dict[str, Any]:
    """Return people's answers. An approval expires with its question: a turn that was away for longer has none."""
    is_over = now > turn.until
    return {name: None if is_over and name in turn.calls else answer for name, answer in turn.answers.items()}


def make_question_reply(turn: LaneTurn, message: Message, question: Question, *, can_last: bool) -> Reply:
    """Return the question as the chat displays it."""
    shown = show_question(question, can_last=can_last, has_buttons=message.address.platform != TERMINAL)
    return Reply(
        own_reply_id_of(turn.turn_id, question.id),
        message.address,
        to_markdown(shown),
        buttons=make_answer_buttons(question_token_of(turn.turn_id, question.id), can_last=can_last),
        reply_to=message.id,
        literals=shown,
    )


def make_question_result(
    access: AccessControl, turn: LaneTurn, message: Message, questions: tuple[Question, ...], unattended: float
) -> LaneResult:
    """Make a result that waits: each question goes to the chat, with buttons if the network has them.

    An approval that the person may not give goes to an approver instead, by its request. If no person waits, it is open
    for `unattended` seconds.
    """
    asked = {question.id: question for question in questions}
    approvals = [question for question in asked.values() if question.is_approval]
    prompts: Mapping[str, str] = {question.id: question.prompt for question in asked.values()}
    calls = {question.id: question.calls for question in approvals}
    if message.address.platform == API:  # a program waits, and no person can answer instead
        return LaneResult(questions=prompts, calls=calls, wait=0.0)
    is_own, is_attended = access.can_approve_own(message), message.kind != "internal"
    replies = tuple(
        make_question_reply(turn, message, question, can_last=question.can_last and is_own)
        for question in asked.values()
        if is_own or not question.is_approval
    )
    requests = tuple(
        records.ApprovalRequest(
            mark=question_token_of(turn.turn_id, question.id),
            session_key=turn.session.key,
            turn_id=turn.turn_id,
            name=question.id,
            address=message.address,
            message_id=message.id,
            user_id=message.user_id,
            user_name=message.user_name,
            is_own=is_own,
            is_attended=is_attended,
        )
        for question in approvals
    )
    wait = ANSWER_WAIT
    if not is_attended and requests:
        wait = unattended
    elif message.address.platform == INTERNAL:
        wait = 0.0  # if no one can answer, it is denied at once
    return LaneResult(replies=replies, questions=prompts, calls=calls, wait=wait, requests=requests)

"""All open questions, in all conversations, for the people who decide on the gateway's host or on its page.

An approval is found by its request; any other question only by its turn. Each is shown whole, in the same words as in a
chat, with a digest of its content: an answer includes the digest, so that an approval never applies to a question that
has changed since.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from gateway.dispatcher.approval_requests import ApprovalRequests
from gateway.dispatcher.chat_commands import question_token_of
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.question_places import describe_request, describe_sender
from gateway.dispatcher.question_rights import LASTING, find_sender, is_approval
from gateway.dispatcher.question_text import LASTING as LASTING_WORDS
from gateway.dispatcher.question_text import show_calls
from gateway.dispatcher.shown_questions import ShownQuestions
from gateway.errors import SessionError
from gateway.lanes.lanes import Lanes, list_open_sessions
from gateway.messages.message import LiteralText
from gateway.records import subjects
from gateway.records.records import ApprovalRequest
from gateway.sessions.session import OpenTurn

GONE = "it was answered, or nobody answered in time"
CHANGED = "it asks for something else now than what you were shown: look at it again"


Persons: TypeAlias = Sequence[tuple[str, str]]
"""The platforms and ids of the person who looks or answers; the first is recorded as the author of the answer."""


class OpenQuestion(NamedTuple):
    """A question that is no approval, with its place."""

    mark: str
    name: str
    turn: OpenTurn
    session_key: str


class OpenQuestions:
    """Lists and settles questions for a person by all their ids: their own requests they may approve for longer."""

    def __init__(self, context: DispatcherContext, lanes: Lanes, approvals: ApprovalRequests) -> None:
        self._context = context
        self._lanes = lanes
        self._approvals = approvals
        self._shown = ShownQuestions(context.engine, context.outbox)

    async def list_approvals(self, persons: Persons) -> list[dict[str, Any]]:
        """List the open approvals."""
        return [await self._describe_approval(*one, persons) for one in await self._approvals.list_open()]

    async def list_questions(self) -> list[dict[str, Any]]:
        """List the other open questions."""
        return [await self._describe(one) for one in await self._find_questions()]

    async def answer_approval(self, mark: str, answer: str, persons: Persons, digest: str) -> None:
        """Settle an approval.

        Raises:
            SessionError: it is not open any more, asks for something else, or cannot be approved for so long.
        """
        request = await self._approvals.find(mark)
        if request is None:
            raise SessionError(f"no approval {mark[:60]!r} is open: {GONE}\nthose that are: hermes-gateway approvals")
        if answer in LASTING and not await self._find_lasting(request, persons):
            raise SessionError("this can be allowed once only: for longer whoever wants it allows it themself")
        await self._settle(request.session_key, request.name, answer, persons, digest)

    async def answer_question(self, mark: str, text: str, persons: Persons, digest: str) -> str:
        """Settle a question, and return its session. Raises SessionError as `answer_approval` does."""
        found = next((one for one in await self._find_questions() if one.mark == mark), None)
        if found is None:
            raise SessionError(f"no question {mark[:60]!r} is open: {GONE}\nthose that are: hermes-gateway approvals")
        await self._settle(found.session_key, found.name, text, persons, digest)
        return found.session_key

    async def _settle(self, key: str, name: str, answer: str, persons: Persons, digest: str) -> None:
        if not await self._lanes.answer(key, name, answer, ":".join(persons[0]), digest=digest):
            turn = (await self._context.sessions.open(key)).turn
            raise SessionError(CHANGED if turn and name in turn.questions else f"it is not open any more: {GONE}")

    async def _find_questions(self) -> list[OpenQuestion]:
        found: list[OpenQuestion] = []
        for key in await list_open_sessions(self._context.engine):
            turn = (await self._context.sessions.open(key)).turn
            if turn and turn.is_waiting:
                names = (name for name in turn.questions if not is_approval(turn, name))
                found += [OpenQuestion(question_token_of(turn.turn_id, name), name, turn, key) for name in names]
        return found

    async def _describe(self, question: OpenQuestion) -> dict[str, Any]:
        turn, session = question.turn, await self._context.sessions.open(question.session_key)
        asked = await find_sender(self._context.engine, session)
        return {
            "id": question.mark,
            "question": turn.questions[question.name],
            "session_key": question.session_key,
            "platform": asked.address.platform if asked else "",
            "chat_id": asked.address.chat_id if asked else "",
            "thread_id": asked.address.thread_id if asked else "",
            "user_id": asked.user_id if asked else "",
            "user_name": asked.user_name if asked else "",
            "until": self._until(turn),
            **show_question(turn, question.name),
        }

    def _until(self, turn: OpenTurn) -> float:
        """Return the end by the wall clock."""
        return turn.until + time.time() - self._context.engine.clock.latest()

    async def _describe_approval(self, request: ApprovalRequest, turn: OpenTurn, persons: Persons) -> dict[str, Any]:
        lasting = await self._find_lasting(request, persons)
        described = describe_request(request, turn, self._until(turn)) | show_question(turn, request.name, lasting)
        return {**described, "who": describe_sender(request), "can_last": bool(lasting)}

    async def _find_lasting(self, request: ApprovalRequest, persons: Persons) -> tuple[LiteralText, ...]:
        """Return the texts of what a lasting approval by this person would cover; empty if they cannot give one."""
        if not request.is_own or (request.address.platform, request.user_id) not in persons:
            return ()
        found = await self._context.engine.read(subjects.approval_subject_of(request.mark), limit=1)
        shown = await self._shown.list(found[0].seq, request) if found else []
        return tuple(one for each in shown for one in each.reply.literals if one.words.startswith(LASTING_WORDS))


def show_question(turn: OpenTurn, name: str, further: tuple[LiteralText, ...] = ()) -> dict[str, Any]:
    """Return the question as displayed, with the digest that identifies it."""
    shown = (*show_calls(turn.questions[name], turn.calls.get(name, ())), *further)
    return {"shown": [msgspec.to_builtins(one) for one in shown], "digest": turn.digest_of(name)}

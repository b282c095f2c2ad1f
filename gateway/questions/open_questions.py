"""All open questions, in all conversations, for the people who decide on the gateway's host or on its page.

An approval is found by its request; any other question only by its turn. Each is shown whole, in the same words as in a
chat, with a digest of its content: an answer includes the digest, so that an approval never applies to a question that
has changed since.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from gateway.agent.tool_approval import LASTING
from gateway.engine.interface import Engine
from gateway.errors import SessionError
from gateway.events import Pause
from gateway.lanes.lanes import Lanes, list_open_sessions
from gateway.messages.message import Address, LiteralText, Message
from gateway.questions.approval_requests import ApprovalRequests
from gateway.questions.places import describe_sender, question_token_of
from gateway.questions.rights import find_sender, is_approval
from gateway.questions.text import LASTING as LASTING_WORDS
from gateway.questions.text import show_calls
from gateway.records import subjects
from gateway.records.records import ApprovalRequest
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import OpenTurn

GONE = "it was answered, or no answer came in time"
CHANGED = "it asks for something else now than what you were shown: look at it again"


Persons: TypeAlias = Sequence[tuple[str, str]]
"""The platforms and ids of the person who looks or answers; the first is recorded as the author of the answer."""


class OpenQuestion(NamedTuple):
    """A question that is not an approval, with its place."""

    mark: str
    name: str
    turn: OpenTurn
    session_key: str


class OpenQuestions(msgspec.Struct, frozen=True):
    """Lists and settles questions for a person by all their ids: their own requests they may approve for longer."""

    engine: Engine
    sessions: SessionRepository
    lanes: Lanes
    approvals: ApprovalRequests

    async def list_approvals(self, persons: Persons) -> list[dict[str, Any]]:
        """List the open approvals."""
        return [await self._describe_approval(*one, persons) for one in await self.approvals.list_open()]

    async def list_questions(self) -> list[dict[str, Any]]:
        """List the other open questions."""
        return [await self._describe_question(one) for one in await self._find_questions()]

    async def answer_approval(self, mark: str, answer: str, persons: Persons, digest: str) -> None:
        """Settle an approval.

        Raises:
            SessionError: it is not open any more, asks for something else, or cannot be approved for so long.
        """
        request = await self.approvals.find(mark)
        if request is None:
            raise SessionError(f"no approval {mark[:60]!r} is open: {GONE}\nthose that are: hermes-gateway approvals")
        if answer in LASTING and not await self._find_lasting(request, persons):
            raise SessionError("this can be allowed once only: a lasting approval comes from the person who wants it")
        await self._settle(request.session_key, request.name, answer, persons, digest)

    async def answer_question(self, mark: str, text: str, persons: Persons, digest: str) -> str:
        """Settle a question, and return its session. Raises SessionError as `answer_approval` does."""
        found = next((one for one in await self._find_questions() if one.mark == mark), None)
        if found is None:
            raise SessionError(f"no question {mark[:60]!r} is open: {GONE}\nthose that are: hermes-gateway approvals")
        await self._settle(found.session_key, found.name, text, persons, digest)
        return found.session_key

    async def _settle(self, key: str, name: str, answer: str, persons: Persons, digest: str) -> None:
        if not await self.lanes.answer(key, name, answer, ":".join(persons[0]), digest=digest):
            turn = (await self.sessions.open(key)).turn
            raise SessionError(CHANGED if turn and name in turn.questions else f"it is not open any more: {GONE}")

    async def _find_questions(self) -> list[OpenQuestion]:
        found: list[OpenQuestion] = []
        for key in await list_open_sessions(self.engine):
            turn = (await self.sessions.open(key)).turn
            if turn and turn.is_waiting:
                names = (name for name in turn.questions if not is_approval(turn, name))
                found += [OpenQuestion(question_token_of(turn.turn_id, name), name, turn, key) for name in names]
        return found

    async def _describe_question(self, question: OpenQuestion) -> dict[str, Any]:
        session = await self.sessions.open(question.session_key)
        asked = await find_sender(self.engine, session) or Message("", Address("", ""), "", "")
        return self._describe(question, asked)

    async def _describe_approval(self, request: ApprovalRequest, turn: OpenTurn, persons: Persons) -> dict[str, Any]:
        lasting, calls = await self._find_lasting(request, persons), turn.calls[request.name]
        question = OpenQuestion(request.mark, request.name, turn, request.session_key)
        return self._describe(question, request, *lasting) | {
            "tools": [call.tool for call in calls],
            "calls": [{"tool": call.tool, "args": call.args} for call in calls],
            "who": describe_sender(request),
            "can_last": bool(lasting),
        }

    def _describe(
        self, question: OpenQuestion, asker: Message | ApprovalRequest, *further: LiteralText
    ) -> dict[str, Any]:
        """Describe a question as it is displayed, with the digest of it. It is open `until` then, by the wall clock."""
        turn, name, at = question.turn, question.name, asker.address
        shown = (*show_calls(turn.questions[name], turn.calls.get(name, ())), *further)
        return {
            "id": question.mark,
            "question": turn.questions[name],
            "hooks": find_hooks_of_question(turn, name),
            "session_key": question.session_key,
            "platform": at.platform,
            "chat_id": at.chat_id,
            "thread_id": at.thread_id,
            "user_id": asker.user_id,
            "user_name": asker.user_name,
            "until": turn.until + time.time() - self.engine.clock.latest(),
            "shown": [msgspec.to_builtins(one) for one in shown],
            "digest": turn.digest_of(name),
        }

    async def _find_lasting(self, request: ApprovalRequest, persons: Persons) -> tuple[LiteralText, ...]:
        """Return the texts of what a lasting approval by this person would cover; empty if they cannot give one."""
        if not request.is_own or (request.address.platform, request.user_id) not in persons:
            return ()
        found = await self.engine.read(subjects.approval_subject_of(request.mark), limit=1)
        shown = await self.approvals.shown.list(found[0].seq, request) if found else []
        return tuple(one for each in shown for one in each.reply.literals if one.words.startswith(LASTING_WORDS))


def find_hooks_of_question(turn: OpenTurn, name: str) -> list[str]:
    """Return the hooks that ask this question; none if a tool's own rule asks it."""
    prompt, calls = turn.questions[name], {call.call_id for call in turn.calls.get(name, ())}
    asked = (one for one in turn.decisions if one.decision == Pause.decision and prompt in one.reason)
    return sorted({one.hook for one in asked if not calls or one.call_id in calls})

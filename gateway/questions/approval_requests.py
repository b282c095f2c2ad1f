"""Open approvals: the approvers, the places of a question, and its end.

A turn that needs an approval is in the journal with its questions; a request beside it marks one of them as an
approval. The same append writes both, and the request is removed last. Everything between may happen again after a
crash:

- The person who wants the tool may approve: the question is already in their chat.
- They may not: the question goes to the first place that takes it, by the network's confirmation. If no place does in
  time the answer is no; until then the question is in `hermes-gateway approvals` too.
- The question is settled: answered by anyone, withdrawn, or too old. Every chat that shows it gets the result, and its
  buttons go.

A process that continues after a crash asks no one twice, and closes questions that were left open. The time to reach an
approver starts again.
"""

import logging

import anyio
import anyio.abc

from gateway.agent.tool_approval import UNREACHABLE
from gateway.engine.interface import Engine
from gateway.lanes.lanes import Lanes
from gateway.messages.message import Message, Reply
from gateway.outbox.outbox import Outbox
from gateway.questions.places import (
    ASKED,
    Approvers,
    describe_answer,
    describe_tools,
    make_question,
)
from gateway.questions.shown import KIND, ShownQuestions
from gateway.questions.tool_approvals import expire_approvals
from gateway.records import records, subjects
from gateway.records.records import ApprovalRequest
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import OpenTurn

LOOK = 0.25  # between two checks which networks are served

log = logging.getLogger(__name__)


class ApprovalRequests:
    """All open requests. They are handled while `run` runs."""

    def __init__(self, engine: Engine, sessions: SessionRepository, outbox: Outbox, lanes: Lanes) -> None:
        self._engine = engine
        self._sessions = sessions
        self._outbox = outbox
        self._lanes = lanes
        self.shown = ShownQuestions(engine, outbox)
        self._attended: set[str] = set()

    async def run(
        self, approvers: Approvers, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Handle the open requests and new ones."""
        new = await self._engine.tail(subjects.APPROVAL_SUBJECTS)
        self._attended.clear()
        async with anyio.create_task_group() as tasks:
            task_status.started()
            await expire_approvals(self._engine, approvers.access)
            for _, request in await self._list():
                self._begin(tasks, approvers, request)
            async for record in new:
                self._begin(tasks, approvers, records.decode_readable(record.data))

    async def find(self, mark: str) -> ApprovalRequest | None:
        """Return the request of the question with this mark; None if it is settled or unknown."""
        found = await self._engine.read(subjects.approval_subject_of(mark), limit=1) if mark.isalnum() else []
        kept = records.decode(found[0].data) if found else None
        return kept if isinstance(kept, ApprovalRequest) else None

    async def find_shown(self, message: Message) -> list[ApprovalRequest]:
        """Return the open requests that the chat of this message shows; for a reply to one, only that one."""
        at, found = message.address, []
        for seq, request in await self._list():
            for shown in await self.shown.list(seq, request):
                to = shown.reply.address
                is_here = to.served_as == at.served_as and to.chat_id in (at.chat_id, message.user_id)
                is_meant = not message.reply_to or any(
                    message.reply_to in ids for ids in (await self.shown.find_ids(shown) if is_here else ())
                )
                if is_here and is_meant and await self.is_open(request):
                    found.append(request)
        return found

    async def is_open(self, request: ApprovalRequest) -> bool:
        """Return True if its turn still waits for the answer."""
        return await self._find_turn(request) is not None

    async def list_open(self) -> list[tuple[ApprovalRequest, OpenTurn]]:
        """List all requests that wait for an approval, each with its turn."""
        return [(request, turn) for _, request in await self._list() if (turn := await self._find_turn(request))]

    async def answer(self, request: ApprovalRequest, answer: str, by: str, by_name: str = "") -> bool:
        """Settle a request; return False if it is settled already."""
        return await self._lanes.answer(request.session_key, request.name, answer, by, by_name=by_name)

    async def is_withdrawn(self, reply: Reply) -> bool:
        """Return True if this is a question that needs no answer any more."""
        kind, _, rest = reply.id.partition(":")
        if kind != KIND:
            return False
        request = await self.find(rest.partition(":")[0])
        return request is None or not await self.is_open(request)

    async def _list(self) -> list[tuple[int, ApprovalRequest]]:
        """List the requests with their sequences, oldest first."""
        found = records.read_all(self._engine, subjects.APPROVAL_SUBJECTS, ApprovalRequest)
        return [(record.seq, request) async for record, request in found]

    async def _find_turn(self, request: ApprovalRequest) -> OpenTurn | None:
        turn = (await self._sessions.open(request.session_key)).turn
        is_open = turn is not None and turn.turn_id == request.turn_id and request.name in turn.questions
        return turn if is_open else None

    def _begin(self, tasks: anyio.abc.TaskGroup, approvers: Approvers, request: records.JournalRecord | None) -> None:
        if isinstance(request, ApprovalRequest) and request.mark not in self._attended:
            self._attended.add(request.mark)
            tasks.start_soon(self._attend, approvers, request.mark)

    async def _attend(self, approvers: Approvers, mark: str) -> None:
        """Handle the requests under one mark; a turn that crashed repeats its request."""
        try:
            while found := await self._engine.read(subjects.approval_subject_of(mark), limit=1):
                request = records.decode(found[0].data)
                assert isinstance(request, ApprovalRequest)
                await self._see_through(approvers, found[0].seq, request)
                await self._engine.purge(found[0].subject, found[0].seq)
        except Exception:  # its failure must not end the others; the next start handles it
            log.exception("the approval %s could not be processed", mark)
        finally:
            self._attended.discard(mark)

    async def _see_through(self, approvers: Approvers, seq: int, request: ApprovalRequest) -> None:
        chain = await self._engine.tail(subjects.session_subject_of("turn", request.session_key))
        async with anyio.create_task_group() as tasks:
            if await self.is_open(request):
                if not request.is_own:
                    tasks.start_soon(self._ask, approvers, seq, request)
                async for _ in chain:
                    if not await self.is_open(request):
                        break
            tasks.cancel_scope.cancel()
        text = await self._describe_end(seq, request)
        async with anyio.create_task_group() as tasks:
            for shown in await self.shown.list(seq, request):
                tasks.start_soon(self.shown.close, shown, text)

    async def _ask(self, approvers: Approvers, seq: int, request: ApprovalRequest) -> None:
        """Ask an approver; if none can be reached, the answer is no."""
        told = unreachable = " ".join(filter(None, [UNREACHABLE, approvers.access.suggest_owner()]))
        with anyio.move_on_after(approvers.reach):
            told = await self._reach_somebody(approvers, seq, request)
        with anyio.CancelScope(shield=True):  # the answer ends this task
            is_meant = told != unreachable or await self.answer(request, UNREACHABLE, "")
            if is_meant and request.is_attended:
                await self.shown.tell(seq, request, told)

    async def _reach_somebody(self, approvers: Approvers, seq: int, request: ApprovalRequest) -> str:
        """Try until a place has taken the question; return the message for the person who wants the tool."""
        owed = {shown.reply.id: shown.owed for shown in await self.shown.list(seq, request)}
        waiting = dict(enumerate(approvers.list_places(request)))
        while True:
            turn = await self._find_turn(request)
            for number, place in list(waiting.items()):
                if turn and await self._outbox.is_served(place.address.served_as):
                    del waiting[number]
                    reply = make_question(request, turn, place, f"{KIND}:{request.mark}:{seq}:{number}")
                    if await self.shown.show(reply, request, owed.get(reply.id)):
                        return ASKED.format(tools=describe_tools(turn.calls[request.name]))
            await anyio.sleep(LOOK)

    async def _describe_end(self, seq: int, request: ApprovalRequest) -> str:
        """Describe the end of a request."""
        where = subjects.session_subject_of("turn", request.session_key)
        async for _, kept in records.read_all(self._engine, where, records.QuestionAnswered, seq):
            if (kept.turn_id, kept.name) == (request.turn_id, request.name):
                return describe_answer(kept)
        return "This is no longer asked."

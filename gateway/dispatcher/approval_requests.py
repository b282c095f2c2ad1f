"""Approvals that are open: who is asked where, and what becomes of what they were shown.

A turn that needs a yes stands in the journal with its questions; a request beside it says that one of them is an
approval. It is written in the same append, and goes last. What happens in between can happen again:

- Whoever wants the tool may allow it: the question stands in their chat already.
- They may not: it goes to the first place that takes it, and taken is what the network says that it has. Where none
  does in time the answer is no; until the answer is there it stands in `hermes-gateway approvals` too.
- The question is settled: answered by anybody, withdrawn, or too old. Every place that shows it is told so, and its
  buttons go.

Whoever takes this up after a crash asks nobody twice, and closes what was left open. The time in which somebody must
be reached begins anew then.
"""

import logging

import anyio
import anyio.abc

from gateway.agent.tool_approval import UNREACHABLE
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.question_places import (
    ASKED,
    describe_answer,
    describe_tools,
    list_places,
    make_question,
)
from gateway.dispatcher.shown_questions import KIND, ShownQuestions
from gateway.dispatcher.tool_approvals import expire_approvals
from gateway.lanes.lanes import Lanes
from gateway.messages.message import Message, Reply
from gateway.records import records, subjects
from gateway.records.records import ApprovalRequest
from gateway.sessions.session import OpenTurn

LOOK = 0.25  # between two looks at which networks are served

log = logging.getLogger(__name__)


class ApprovalRequests:
    """All requests that are open. They are seen to while `run` runs."""

    def __init__(self, context: DispatcherContext, lanes: Lanes) -> None:
        self._context = context
        self._engine = context.engine
        self._lanes = lanes
        self._shown = ShownQuestions(context.engine, context.outbox)
        self._attended: set[str] = set()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """See to those that are open, and to those that come."""
        new = await self._engine.tail(subjects.APPROVAL_SUBJECTS)
        self._attended.clear()
        async with anyio.create_task_group() as tasks:
            task_status.started()
            await expire_approvals(self._engine, self._context.access)
            for _, request in await self._list():
                self._begin(tasks, request)
            async for record in new:
                self._begin(tasks, records.decode_readable(record.data))

    async def find(self, mark: str) -> ApprovalRequest | None:
        """The request of the question that carries this mark; None: it is settled, or there was none."""
        found = await self._engine.read(subjects.approval_subject_of(mark), limit=1) if mark.isalnum() else []
        kept = records.decode(found[0].data) if found else None
        return kept if isinstance(kept, ApprovalRequest) else None

    async def find_shown(self, message: Message) -> list[ApprovalRequest]:
        """The open requests that the chat of this message shows; where it is a reply to one of them, that one."""
        at, found = message.address, []
        for seq, request in await self._list():
            for shown in await self._shown.list(seq, request):
                to = shown.reply.address
                is_here = to.served_as == at.served_as and to.chat_id in (at.chat_id, message.user_id)
                is_meant = not message.reply_to or any(
                    message.reply_to in ids for ids in (await self._shown.find_ids(shown) if is_here else ())
                )
                if is_here and is_meant and await self.is_open(request):
                    found.append(request)
        return found

    async def is_open(self, request: ApprovalRequest) -> bool:
        """Does its turn still wait for the answer?"""
        return await self._find_turn(request) is not None

    async def list_open(self) -> list[tuple[ApprovalRequest, OpenTurn]]:
        """All that wait for somebody's yes, each with its turn."""
        return [(request, turn) for _, request in await self._list() if (turn := await self._find_turn(request))]

    async def answer(self, request: ApprovalRequest, answer: str, by: str, by_name: str = "") -> bool:
        """Settle it; False: it is settled already."""
        return await self._lanes.answer(request.session_key, request.name, answer, by, by_name=by_name)

    async def is_withdrawn(self, reply: Reply) -> bool:
        """Is this a question that nobody needs to be asked any more?"""
        kind, _, rest = reply.id.partition(":")
        if kind != KIND:
            return False
        request = await self.find(rest.partition(":")[0])
        return request is None or not await self.is_open(request)

    async def _list(self) -> list[tuple[int, ApprovalRequest]]:
        """Each with its sequence, the oldest first."""
        found = records.read_all(self._engine, subjects.APPROVAL_SUBJECTS, ApprovalRequest)
        return [(record.seq, request) async for record, request in found]

    async def _find_turn(self, request: ApprovalRequest) -> OpenTurn | None:
        turn = (await self._context.sessions.open(request.session_key)).turn
        is_open = turn is not None and turn.turn_id == request.turn_id and request.name in turn.questions
        return turn if is_open else None

    def _begin(self, tasks: anyio.abc.TaskGroup, request: records.JournalRecord | None) -> None:
        if isinstance(request, ApprovalRequest) and request.mark not in self._attended:
            self._attended.add(request.mark)
            tasks.start_soon(self._attend, request.mark)

    async def _attend(self, mark: str) -> None:
        """See to what is asked under one mark; a turn that crashed asks the same once more."""
        try:
            while found := await self._engine.read(subjects.approval_subject_of(mark), limit=1):
                request = records.decode(found[0].data)
                assert isinstance(request, ApprovalRequest)
                await self._see_through(found[0].seq, request)
                await self._engine.purge(found[0].subject, found[0].seq)
        except Exception:  # one that fails must not end the others; it is taken up again at the next start
            log.exception("the approval %s cannot be seen to", mark)
        finally:
            self._attended.discard(mark)

    async def _see_through(self, seq: int, request: ApprovalRequest) -> None:
        chain = await self._engine.tail(subjects.session_subject_of("turn", request.session_key))
        async with anyio.create_task_group() as tasks:
            if await self.is_open(request):
                if not request.is_own:
                    tasks.start_soon(self._ask, seq, request)
                async for _ in chain:
                    if not await self.is_open(request):
                        break
            tasks.cancel_scope.cancel()
        text = await self._describe_end(seq, request)
        async with anyio.create_task_group() as tasks:
            for shown in await self._shown.list(seq, request):
                tasks.start_soon(self._shown.close, shown, text)

    async def _ask(self, seq: int, request: ApprovalRequest) -> None:
        """Ask somebody who may allow it; where nobody can be reached, the answer is no."""
        told = unreachable = " ".join(filter(None, [UNREACHABLE, self._context.access.suggest_owner()]))
        with anyio.move_on_after(self._context.reach):
            told = await self._reach_somebody(seq, request)
        with anyio.CancelScope(shield=True):  # the answer ends what runs here
            is_meant = told != unreachable or await self.answer(request, UNREACHABLE, "")
            if is_meant and request.is_attended:
                await self._shown.tell(seq, request, told)

    async def _reach_somebody(self, seq: int, request: ApprovalRequest) -> str:
        """Goes on until a place has taken the question; what whoever wants it is told then."""
        owed = {shown.reply.id: shown.owed for shown in await self._shown.list(seq, request)}
        waiting = dict(enumerate(list_places(self._context, request)))
        while True:
            turn = await self._find_turn(request)
            for number, place in list(waiting.items()):
                if turn and await self._context.outbox.is_served(place.address.served_as):
                    del waiting[number]
                    reply = make_question(request, turn, place, f"{KIND}:{request.mark}:{seq}:{number}")
                    if await self._shown.show(reply, request, owed.get(reply.id)):
                        return ASKED.format(tools=describe_tools(turn.calls[request.name]))
            await anyio.sleep(LOOK)

    async def _describe_end(self, seq: int, request: ApprovalRequest) -> str:
        """What became of it, in words."""
        where = subjects.session_subject_of("turn", request.session_key)
        async for _, kept in records.read_all(self._engine, where, records.QuestionAnswered, seq):
            if (kept.turn_id, kept.name) == (request.turn_id, request.name):
                return describe_answer(kept)
        return "This is no longer asked."

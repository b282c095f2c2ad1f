"""The questions of programs on the desk to the owners, in their direct chats: an approval is for one call, once.

A question is a proposal in the journal, so it is answered as proposals are: by a button or a command in an owner's own
chat, or at the terminal. It outlives a restart of the gateway: the program's command asks again, and finds it by its
id.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.config.desk_settings import DeskSettings
from gateway.desk.call import DeskCall, DeskQuestion
from gateway.desk.history import DeskHistory, describe_answer
from gateway.engine.interface import Engine
from gateway.errors import Conflict
from gateway.messages.message import Address, LiteralText
from gateway.outbox.outbox import Outbox
from gateway.questions.places import question_token_of
from gateway.questions.proposals import (
    DESK,
    KeptProposal,
    Proposal,
    ProposalJournal,
    close_proposal,
    describe_end,
    send_proposal,
    subject_of,
)
from gateway.records.activity import Activity
from gateway.records.records import ActivityRecord
from gateway.worker.process_tree import is_running

MOST_SHOWN = 200_000  # characters of a call; a network shows a long one as a file
MOST_OPEN = 20
BACK_SECONDS = 5.0  # a caller that lost its connection asks again, for example when a proxy ended it
REFUSED = "An owner refused this in a chat. Go on without it, or ask them."
TOO_LONG = "This call is too long to show in a chat. Split it."
TOO_MANY = f"{MOST_OPEN} questions wait for an owner already. Wait for their answers, then try again."
AT_THE_DESK = "It was answered at the desk."
GONE = "The program does not ask any more."

Outcome: TypeAlias = Literal["done", "refused", "late", "withdrawn"]

log = logging.getLogger(__name__)


class DeskAnswer(NamedTuple):
    """The end of a question. `by`: the person who answered; `why`: what the program reads of a denial."""

    outcome: Outcome
    by: str = ""
    why: str = REFUSED


@cache
def report_no_owner() -> None:
    """Log this once, since each call of the program would say it again."""
    log.warning("desk: no owner has a chat with this bot; answer by `hermes-gateway approvals`, and see docs/people.md")


class DeskQuestions(msgspec.Struct, frozen=True):
    """Puts questions and waits for their answers. `list_owners` lists the owners' direct chats on networks."""

    engine: Engine
    outbox: Outbox
    activity: Activity
    tasks: anyio.abc.TaskGroup
    list_owners: Callable[[], Sequence[Address]]
    describe_person: Callable[[str], str]
    read_settings: Callable[[], DeskSettings]
    node: str
    history: DeskHistory
    waiting: dict[str, DeskQuestion] = {}  # by their keys

    @property
    def journal(self) -> ProposalJournal:
        return ProposalJournal(self.engine)

    async def ask(self, question: DeskQuestion) -> DeskAnswer:
        """Put the question, unless it is put already, and wait for its end."""
        call, shown, owners = question.call, question.show(), self.list_owners()
        if sum(len(one.text) for one in shown) > MOST_SHOWN:
            return DeskAnswer("refused", why=TOO_LONG)
        if len(self.waiting) >= MOST_OPEN:
            return DeskAnswer("refused", why=TOO_MANY)
        if not owners:
            report_no_owner()
        key = f"{DESK}:{call.program.name}:{question.id}"
        self.waiting[key] = question
        try:
            return await self._wait(question, key, shown, owners)
        except Exception:  # a cancelled one is withdrawn with its caller
            self.waiting.pop(key, None)
            raise

    async def _wait(
        self, question: DeskQuestion, key: str, shown: tuple[LiteralText, ...], owners: Sequence[Address]
    ) -> DeskAnswer:
        call = question.call
        tail = await self.engine.tail(subject_of(key))
        seq, kept = await self.journal.read(key)
        if kept is None:
            now, mark = time.time(), question_token_of(question.id, call.digest)
            kept = Proposal(
                id=question.id,
                kind=DESK,
                name=call.given.tool_name,
                by=key,
                place=call.given.cwd,
                node=self.node,
                run=call.asker,
                at=now,
                until=now + self.read_settings().wait,
                mark=mark,
                shown=shown,
                digest=call.digest,
                places=tuple(dict.fromkeys(at.served_as for at in owners)),
            )
            await self.journal.write(kept, seq)
            await send_proposal(self.outbox, kept, owners)
        with anyio.move_on_after(max(kept.until - time.time(), 0)):
            while (await self._read(key)).proposal.state == "open":
                await anext(tail)
        del self.waiting[key]
        return await self._conclude(question, key)

    async def withdraw(self, call: DeskCall) -> None:
        """Withdraw the questions about this call, whose caller has left, unless it asks again at once."""
        left = {key: one for key, one in self.waiting.items() if one.call is call}
        if left and is_running(call.asker):
            await anyio.sleep(BACK_SECONDS)
        for key, one in left.items():
            if self.waiting.get(key) is one:
                await self._withdraw(self.waiting.pop(key), key, GONE)

    async def end(self, later: DeskCall) -> None:
        """Withdraw what was answered at the desk, as this later event shows."""
        for key, one in [(key, one) for key, one in self.waiting.items() if one.call.is_ended_by(later)]:
            await self._withdraw(one, key, AT_THE_DESK)

    async def _withdraw(self, question: DeskQuestion, key: str, why: str) -> None:
        seq, found = await self.journal.read(key)
        if found and found.state == "open":
            await self._end(question, KeptProposal(seq, found), "withdrawn", why)

    async def _read(self, key: str) -> KeptProposal:
        seq, kept = await self.journal.read(key)
        assert kept is not None
        return KeptProposal(seq, kept)

    async def _conclude(self, question: DeskQuestion, key: str) -> DeskAnswer:
        """Write the end of the question, and return the answer that counts."""
        found = await self._read(key)
        if found.proposal.state == "open" and not await self._end(question, found, "late"):
            found = await self._read(key)  # somebody answered in this moment
        match found.proposal.state:
            case "allowed":
                await self._end(question, found, "done")
                return DeskAnswer("done", found.proposal.answered_by)
            case "refused":
                await self._end(question, found, "refused")
                return DeskAnswer("refused", found.proposal.answered_by)
            case "done":  # the answer was lost on its way to the program
                return DeskAnswer("done", found.proposal.answered_by)
            case "withdrawn":
                return DeskAnswer("withdrawn")
        return DeskAnswer("late")

    async def _end(self, question: DeskQuestion, found: KeptProposal, state: Outcome, result: str = "") -> bool:
        """Write an end and show it in the chats; False if another end was faster."""
        ended = replace(found.proposal, state=state, result=result, mark="", shown=())  # the chats show the call
        try:
            await self.journal.write(ended, found.seq)
        except Conflict:
            return False
        on = f"{ended.id} {ended.name} in {ended.place}: {state}"
        await self.activity.write(ActivityRecord(what="desk.end", on=on, who=ended.answered_by))
        who = self.describe_person(ended.answered_by)
        self.tasks.start_soon(close_proposal, self.engine, self.outbox, ended, who)
        entries = describe_answer(question, describe_end(ended, who), is_allowed=state == "done")
        await self.history.add(question.call, *entries)
        return True

"""Proposals on the gateway that put them: from the first look over an owner's answer to the change.

Each is one call of a tool that no agent has, run without a model: with its events, its question and its digest. Hooks
at `tool:before` may refuse it, or ask as well; a call that a hook changed is not made. An owner's yes is for one call,
and lasts for none after it. The plan with its secrets is in memory only, so that a restart ends the proposal.
"""

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.access.access_control import WEB
from gateway.agent import Agent, Ports, Tool, run_tool
from gateway.agent.models.demo import DemoModel
from gateway.engine.interface import Engine
from gateway.errors import AgentError, Conflict, EngineError, GatewayError, SessionError
from gateway.events import AskedCall, Pause, Question
from gateway.hooks import HookRegistry
from gateway.logs.signs import show_signs
from gateway.messages.message import Address, LiteralText, Reply
from gateway.messages.roles import Role, scope_of
from gateway.messages.transcript import Entry, ToolCall
from gateway.outbox.outbox import Outbox
from gateway.questions.places import question_token_of
from gateway.questions.proposals import (
    DESK,
    KIND,
    TOOL,
    KeptProposal,
    Proposal,
    ProposalJournal,
    State,
    close_proposal,
    send_proposal,
    subject_of,
)
from gateway.records.activity import CALLER, Activity, Caller
from gateway.records.records import ActivityRecord
from gateway.worker.process_tree import is_running

OPEN_SECONDS = 600.0
MOST_SHOWN = 3000  # characters of a plan that an owner can see whole in one message
MOST_AN_HOUR = 6
HOUR = 3600.0
BROKEN_OFF = "it was broken off; look whether it took effect"
RESTARTED = "the gateway was restarted, which ends a proposal: make it again"
VANISHED = "its machine does not answer any more, which ends a proposal: make it again"
UNDER_WAY = ("open", "allowed")
LOOK_PAUSE = 10.0  # seconds between two looks whether another machine lives that has a proposal
OPEN_ALREADY = "one of your proposals is open already\nwait for its answer, or withdraw it"
CALLER_SECONDS = 5.0
CALLER_ENDED = "The program does not ask any more."
CALL_CHANGED = "a hook changed the call, and a proposal is made as it was shown or not at all"

log = logging.getLogger(__name__)


class Plan(Protocol):
    """A change of one kind. Its checks before this needed no other machine."""

    kind: str
    name: str

    async def look(self) -> tuple[LiteralText, ...]:
        """Return what would change, complete; a secret by what it opens and its last four characters.

        Raises:
            GatewayError: it cannot be done, for example since a network does not know the token.
        """

    def make_digest(self) -> bytes:
        """Return a checksum over all of it, and over the files as they were."""

    async def apply(self) -> str:
        """Make the change, exactly as it was shown; return what was done, in words.

        Raises:
            GatewayError: it cannot be done any more; nothing has changed.
        """


class Proposer(msgspec.Struct, frozen=True):
    """The person who proposes: their name, their place (the page, and the address of their browser), their role."""

    name: str
    place: str
    role: Role


class Attempt(msgspec.Struct):
    """A proposal under way: its plan, the call of the tool, and the answers up to now."""

    plan: Plan
    kept: KeptProposal
    call: ToolCall
    role: Role
    answers: dict[str, Any] = {}
    calls: dict[str, tuple[AskedCall, ...]] = {}
    questions: tuple[Question, ...] = ()
    done: str = ""  # what the change did, in words

    @property
    def proposal(self) -> Proposal:
        return self.kept.proposal


class Proposals(msgspec.Struct, frozen=True):
    """All proposals of this gateway. `list_owners` lists the owners' direct chats on networks.

    `describe_person` returns the name of a person beside the id, `is_alive` whether another gateway's process lives.
    """

    engine: Engine
    registry: HookRegistry
    outbox: Outbox
    activity: Activity
    tasks: anyio.abc.TaskGroup
    list_owners: Callable[[], Sequence[Address]]
    describe_person: Callable[[str], str]
    is_alive: Callable[[str], Awaitable[bool]]
    node: str
    run_id: str
    key: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))  # hides what a digest is made of

    @property
    def journal(self) -> ProposalJournal:
        return ProposalJournal(self.engine)

    async def make(self, plan: Plan, by: Proposer) -> Proposal:
        """Look at a plan, and ask the owners.

        Raises:
            GatewayError: it cannot be done, a hook refuses it, or this person has proposed too much.
        """
        kept = await self._begin(plan, by)
        try:
            shown = await self._describe(plan, kept.proposal)
            digest = hmac.digest(self.key, plan.make_digest(), hashlib.sha256).hex()
            kept = await self.journal.write(replace(kept.proposal, shown=shown, digest=digest), kept.seq)
            args = {"kind": plan.kind, "name": plan.name, "change": [msgspec.to_builtins(one) for one in shown]}
            call = ToolCall(kept.proposal.id, TOOL, args | {"digest": digest})
            attempt = Attempt(plan, kept, call, by.role)
            if entry := await self._try(attempt):
                raise SessionError(entry.content)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._end(kept.proposal, "failed", str(error) if isinstance(error, GatewayError) else BROKEN_OFF)
            raise
        self.tasks.start_soon(self._attend, attempt)
        return attempt.proposal

    async def withdraw(self, number: str, by: str) -> Proposal:
        """Withdraw an open proposal of one's own. Raises SessionError if no open one has that id."""
        _, found = await self.journal.read(by)
        if found is None or found.id != number or not found.is_open:
            raise SessionError(f"no proposal {number[:60]!r} of yours is open")
        if not await self._end(found, "withdrawn", ""):
            raise SessionError("an owner was faster")
        return replace(found, state="withdrawn", mark="")

    async def is_settled(self, reply: Reply) -> bool:
        """Return True if this reply shows a proposal that needs no answer any more."""
        kind, _, rest = reply.id.partition(":")
        return kind == KIND and await self.journal.find(rest.partition(":")[0]) is None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """End the proposals that an earlier process of this gateway left, and those of a machine that vanishes."""
        news = await self.engine.tail(subject_of())
        for _, left in await self.journal.list():
            if left.kind == DESK and left.node == self.node and left.state in UNDER_WAY:
                self.tasks.start_soon(self._end_call, left)
        others = await self._end_left({})
        task_status.started()
        while True:
            await (anyio.sleep(LOOK_PAUSE) if others else anext(news, None))
            others = await self._end_left(others)

    async def _end_left(self, before: Mapping[str, bool]) -> dict[str, bool]:
        """End what no process sees to. Return the other processes with proposals: True for one that is silent.

        One that was silent before as well is gone: a single answer may be late.
        """
        found = dict[str, bool]()
        for _, left in await self.journal.list():
            if left.kind == DESK or left.run == self.run_id or left.state not in UNDER_WAY:
                continue
            is_ours = left.node == self.node
            is_silent = is_ours or not await self.is_alive(left.run)
            if is_ours or (is_silent and before.get(left.run)):
                why = RESTARTED if is_ours else VANISHED
                await self._end(left, "failed", why if left.state == "open" else BROKEN_OFF)
            else:
                found[left.run] = is_silent
        return found

    async def _end_call(self, left: Proposal) -> None:
        """End a question of the desk for which no process waits; one that lives asks again, and ends it."""
        while time.time() < left.until and is_running(left.run):  # noqa: ASYNC110 - a process tells nobody of its end
            await anyio.sleep(CALLER_SECONDS)
        await self._end(left, "withdrawn", CALLER_ENDED)

    async def check(self, by: str) -> tuple[int, tuple[float, ...]]:
        """Return the sequence of this person's record, and when they proposed within this hour.

        Raises:
            SessionError: they have an open proposal, or made too many.
        """
        (seq, last), now = await self.journal.read(by), time.time()
        grace = OPEN_SECONDS if last and last.state == "allowed" else 0.0  # it is under way, and has its end to write
        if last and last.state in UNDER_WAY and now < last.until + grace:
            raise SessionError(OPEN_ALREADY)
        begun = tuple(at for at in (last.begun if last else ()) if now - at < HOUR)
        if len(begun) >= MOST_AN_HOUR:
            raise SessionError(f"{MOST_AN_HOUR} proposals in an hour are the most\ntry again later")
        return seq, begun

    async def _begin(self, plan: Plan, by: Proposer) -> KeptProposal:
        """Write a proposal without its question. Raises SessionError if this person has proposed too much."""
        (seq, begun), now = await self.check(by.name), time.time()
        begins = Proposal(
            id=secrets.token_hex(6),
            kind=plan.kind,
            name=plan.name,
            by=by.name,
            place=by.place,
            node=self.node,
            run=self.run_id,
            at=now,
            until=now + OPEN_SECONDS,
            begun=(*begun, now),
        )
        try:
            return await self.journal.write(begins, seq)
        except Conflict:
            raise SessionError(OPEN_ALREADY) from None

    async def _describe(self, plan: Plan, proposal: Proposal) -> tuple[LiteralText, ...]:
        who = LiteralText(
            "A person proposes on the page:", f"{self.describe_person(proposal.by)}, from {proposal.place}"
        )
        where = LiteralText("It is done on the machine:", proposal.node)
        shown = tuple(LiteralText(one.words, show_signs(one.text)) for one in (who, *await plan.look(), where))
        if sum(len(one.words) + len(one.text) for one in shown) > MOST_SHOWN:
            raise SessionError("this is too long for an owner to see whole\npropose less at once")
        return shown

    async def _try(self, attempt: Attempt) -> Entry | None:
        """Call the tool; None: a question was put."""
        by = attempt.proposal.by
        facts: dict[str, Any] = {"platform": WEB, "user_id": by, "session_id": "", "turn_id": attempt.proposal.id}
        facts |= {"role": attempt.role, "scope": scope_of(attempt.role)}
        view = self.registry.scope(facts, answers=attempt.answers)
        ports = Ports(
            run=view.run,
            emit=view.emit,
            wants=view.wants,
            facts=facts,
            authors=view.bags.authors,
            changed_by=view.changed_by,
            turn_id=attempt.proposal.id,
            answers=attempt.answers,
            calls=attempt.calls,
        )
        tool = Tool(TOOL, "", {}, partial(_apply, attempt), asks=True)
        try:
            return await run_tool(Agent(KIND, DemoModel(), tools=(tool,)), attempt.call, ports)
        except Pause as pause:
            if attempt.done:  # a hook asks about what is done already
                return Entry("tool", attempt.done)
            await self._ask(attempt, pause.questions)
            return None

    async def _ask(self, attempt: Attempt, questions: tuple[Question, ...]) -> None:
        """Put the questions as one, with a mark of its own: an old button answers no later question."""
        if any(call.args != attempt.call.args for one in questions for call in one.calls):
            raise SessionError(CALL_CHANGED)
        attempt.questions = questions
        attempt.calls |= {one.id: one.calls for one in questions if one.calls}
        proposal = attempt.proposal
        asked = tuple(
            LiteralText("A hook asks as well:", show_signs(f"{one.hook}: {one.prompt}"))
            for one in questions
            if one.hook != TOOL
        )
        owners = self.list_owners()  # a network that is not connected yet gets the question when it is
        mark = question_token_of(proposal.id, "\0".join(one.id for one in questions))
        places = tuple(dict.fromkeys(at.served_as for at in owners))
        put = replace(proposal, state="open", mark=mark, shown=(*proposal.shown, *asked), places=places)
        attempt.kept = await self.journal.write(put, attempt.kept.seq)
        await send_proposal(self.outbox, put, owners)

    async def _attend(self, attempt: Attempt) -> None:
        """See a proposal through to its end."""
        reason = ""
        try:
            while not reason and (answered := await self._hear(attempt)) is not None:
                attempt.kept = answered
                CALLER.set(Caller(answered.proposal.answered_by, "proposal", "owner"))
                attempt.answers |= {one.id: "yes" for one in attempt.questions}
                if entry := await self._try(attempt):
                    reason = attempt.done or entry.content or BROKEN_OFF
        except GatewayError as error:
            reason = attempt.done or str(error)
        except Exception:  # its failure must not end the others
            log.exception("the proposal %s could not be processed", attempt.proposal.id)
            reason = attempt.done or BROKEN_OFF
        if reason:
            try:
                await self._end(attempt.proposal, "done" if attempt.done else "failed", reason)
            except EngineError as error:  # what failed may be the journal itself, and the gateway must not end with it
                log.error("the end of the proposal %s is not written: %s", attempt.proposal.id, error)

    async def _hear(self, attempt: Attempt) -> KeptProposal | None:
        """Wait for the answer, and return the proposal if an owner allowed it."""
        asked = attempt.proposal
        tail = await self.engine.tail(subject_of(asked.by))
        with anyio.move_on_after(max(asked.until - time.time(), 0)):
            while (found := await self._read(asked)) and found.proposal.state == "open":
                await anext(tail, None)
        await self._end(asked, "late", "")  # unless it was answered
        found = await self._read(asked)
        if found and found.proposal.state == "refused":
            await self._end(found.proposal, "refused", "")
        return found if found and found.proposal.state == "allowed" else None

    async def _read(self, asked: Proposal) -> KeptProposal | None:
        seq, now = await self.journal.read(asked.by)
        return KeptProposal(seq, now) if now and now.id == asked.id else None

    async def _end(self, proposal: Proposal, state: State, result: str) -> bool:
        """Write the end of a proposal, record it, and show it in the chats that asked.

        Returns False if it is not in the state any more in which it was seen.
        """
        found = await self._read(proposal)
        if found is None or (state in ("late", "withdrawn") and found.proposal.state != "open"):
            return False
        ended = replace(found.proposal, state=state, result=result, mark="")
        try:
            await self.journal.write(ended, found.seq)
        except Conflict:
            return False
        on = f"{proposal.id} {proposal.kind} {proposal.name}: {state}"
        await self.activity.write(ActivityRecord(what="proposals.end", on=on, who=ended.answered_by or ended.by))
        who = self.describe_person(ended.answered_by)
        self.tasks.start_soon(close_proposal, self.engine, self.outbox, ended, who)
        return True


async def _apply(attempt: Attempt, args: dict[str, Any], _context: Any) -> str:
    """Make the change, if the call is the one that was shown."""
    if args != attempt.call.args:
        raise AgentError(CALL_CHANGED)
    if not attempt.done:  # a yes is for one change, also where a hook wants another try of the call
        attempt.done = await attempt.plan.apply()
    return attempt.done

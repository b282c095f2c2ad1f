"""Proposals as all gateways know them: a change of the house that a person has proposed, and an owner's answer.

Each person has one record, with their last proposal; only an owner's answer leads on from `open` to `allowed`. The
gateway that put the question makes the change and keeps what is secret of it, so it listens to the record: the answer
may come to another gateway, to which the owner's network is connected.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import anyio
import msgspec

from gateway.access.access_control import API, INTERNAL, TERMINAL, WEB
from gateway.agent.tool_approval import LASTING
from gateway.engine.interface import Engine
from gateway.errors import Conflict, SessionError
from gateway.messages.message import Address, LiteralText, Message, Reply
from gateway.messages.roles import Role
from gateway.outbox.outbox import Outbox
from gateway.questions.open_questions import CHANGED, GONE
from gateway.questions.places import QUESTION_SIGN, make_answer_buttons
from gateway.questions.shown import ShownQuestion, ShownQuestions
from gateway.questions.text import to_markdown
from gateway.records import records, subjects
from gateway.records.records import ActivityRecord
from gateway.records.stores import make_value_put, read_store

STORE = "gateway/proposals"  # no hook has such a name: a folder's name contains no slash
KIND = "proposal"  # starts the ids of replies that show one
DESK = "desk"  # the kind of a question of a program on the desk, and its platform
TOOL = "change_gateway"  # the tool that a proposal is a call of; no agent has it
KEPT_SECONDS = 86_400.0
ANSWERED = "proposals.answer"  # in the activity
NOT_HERE = (
    "An owner answers this in a direct chat with me on a network, or where the gateway runs: hermes-gateway approvals."
)
NOT_YOURS = "Only an owner answers this."

log = logging.getLogger(__name__)

State: TypeAlias = Literal["open", "allowed", "done", "refused", "withdrawn", "late", "failed"]


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal, without its secrets. `mark`: of the question that is open now, as its buttons have it.

    `run`: the process that makes the change, or that waits for the answer at the desk; `begun`: when this person
    proposed something of late.
    """

    id: str
    kind: str
    name: str
    by: str
    place: str
    node: str
    run: str
    at: float
    until: float
    state: State = "open"
    mark: str = ""
    shown: tuple[LiteralText, ...] = ()
    digest: str = ""
    places: tuple[str, ...] = ()
    answered_by: str = ""
    result: str = ""
    begun: tuple[float, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.state == "open" and bool(self.mark) and time.time() < self.until

    @property
    def session_key(self) -> str:
        """The key of the replies that show it; no conversation has it."""
        return f"proposal:{self.id}"


class ProposalAnswer(NamedTuple):
    """The answer to a command that meant a proposal, and its record in the activity."""

    text: str
    activity: ActivityRecord | None = None


class KeptProposal(NamedTuple):
    """A proposal, and the sequence of its record."""

    seq: int
    proposal: Proposal


class ProposalJournal(msgspec.Struct, frozen=True):
    """Reads and writes the proposals of all people."""

    engine: Engine

    async def list(self) -> list[KeptProposal]:
        """List the last proposal of each person, newest first."""
        found: dict[str, KeptProposal] = {}
        async for record, kept in read_store(self.engine, STORE):
            found[kept.key] = KeptProposal(record.seq, msgspec.convert(kept.value, Proposal))
        return sorted(found.values(), key=lambda one: one.proposal.at, reverse=True)

    async def read(self, by: str) -> tuple[int, Proposal | None]:
        """Return a person's last proposal, and the sequence of its record; 0 for none."""
        seq, kept = await records.read_last(self.engine, subject_of(by), records.StoredValue)
        return seq, msgspec.convert(kept.value, Proposal) if kept else None

    async def write(self, proposal: Proposal, seq: int) -> KeptProposal:
        """Write a proposal in place of the person's record at `seq`.

        Raises:
            Conflict: another process was faster.
        """
        value = msgspec.to_builtins(proposal)
        (written,) = await self.engine.append(make_value_put(STORE, proposal.by, value, expect=seq, ttl=KEPT_SECONDS))
        await self.engine.purge(subject_of(proposal.by), written - 1)
        return KeptProposal(written, proposal)

    async def find(self, mark: str) -> KeptProposal | None:
        """Return the open proposal whose question has this mark."""
        found = (one for one in await self.list() if mark and one.proposal.mark == mark)
        return next((one for one in found if one.proposal.is_open), None)

    async def answer(self, found: KeptProposal, *, allowed: bool, by: str, digest: str = "") -> None:
        """Write an owner's answer; the caller has checked that it is one.

        Raises:
            SessionError: it is not open any more, or asks for something else than what was shown.
        """
        if digest and digest != found.proposal.digest:
            raise SessionError(CHANGED)
        answered = msgspec.structs.replace(
            found.proposal, state="allowed" if allowed else "refused", answered_by=by, mark=""
        )
        try:
            await self.write(answered, found.seq)
        except Conflict:
            raise SessionError(f"it is not open any more: {GONE}") from None


def subject_of(by: str | None = None) -> str:
    """Return the subject of a person's record, or the pattern of all of them."""
    return subjects.hook_store_subject_of(STORE, by)


def find_fault(message: Message, role: Role) -> str:
    """Return why this message answers no proposal; "" if it does: an owner's, in a direct chat of a network."""
    at = message.address
    is_network = at.platform not in (WEB, TERMINAL, API, INTERNAL) and at.chat_type == "dm"
    is_typed = message.kind in ("text", "button", "command") and not (message.is_job or message.person)
    if not (is_network and is_typed):
        return NOT_HERE
    return "" if role == "owner" else NOT_YOURS


def show_proposal(proposal: Proposal) -> Sequence[LiteralText]:
    """Return the question as an owner's chat shows it."""
    sign = f"{QUESTION_SIGN}{proposal.mark}"
    end = f"Yes or no, this once? A button answers, or /approve {sign} and /deny {sign}. No page can answer it."
    return (*proposal.shown, LiteralText(end))


async def show_proposals(engine: Engine, message: Message, role: Role) -> list[str]:
    """Return the open ones as Markdown, for a chat in which an owner can answer them."""
    found = [] if find_fault(message, role) else await ProposalJournal(engine).list()
    return [to_markdown(show_proposal(one.proposal)) for one in found if one.proposal.is_open]


async def answer_proposal(
    engine: Engine, message: Message, role: Role, mark: str, answer: str
) -> ProposalAnswer | None:
    """Answer the open proposal with this mark; None: it is of none. Its chats are notified of its end.

    Raises:
        SessionError: another answer was faster.
    """
    journal = ProposalJournal(engine)
    found = await journal.find(mark)
    if found is None:
        return None
    is_allowed = answer != "deny"
    on = f"{'allow' if is_allowed else 'deny'} {found.proposal.id}"
    if fault := find_fault(message, role):
        return ProposalAnswer(fault, ActivityRecord(what=ANSWERED, on=on, outcome="refused"))
    if answer in LASTING:
        return ProposalAnswer(f"A proposal is allowed this once only: /approve {QUESTION_SIGN}{mark}")
    await journal.answer(found, allowed=is_allowed, by=message.sender)
    said = "" if message.kind == "button" else "Allowed." if is_allowed else "Refused."
    return ProposalAnswer(said, ActivityRecord(what=ANSWERED, on=on))


def as_approval(proposal: Proposal) -> dict[str, Any]:
    """Return an open proposal in the form in which the terminal lists approvals."""
    is_desk = proposal.kind == DESK
    tool, platform = (proposal.name, DESK) if is_desk else (TOOL, WEB)
    by = proposal.by.split(":")[1] if is_desk else proposal.by  # the program
    shown = [" ".join(filter(None, [one.words, one.text])) for one in proposal.shown]
    return {
        "id": proposal.mark,
        "question": "",
        "session_key": "",
        "platform": platform,
        "chat_id": proposal.place,
        "thread_id": "",
        "user_id": by,
        "user_name": "",
        "until": proposal.until,
        "shown": [msgspec.to_builtins(one) for one in proposal.shown],
        "digest": proposal.digest,
        "tools": [tool],
        "hooks": [],
        "calls": [{"tool": tool, "args": {"call" if is_desk else "proposal": shown}}],
        "who": f"{platform} {by}",
        "can_last": False,
    }


async def send_proposal(outbox: Outbox, proposal: Proposal, owners: Sequence[Address]) -> None:
    """Put the question to the owners. A network that is not connected yet gets it when it is."""
    shown = tuple(show_proposal(proposal))
    for number, at in enumerate(owners):
        buttons = make_answer_buttons(proposal.mark, can_last=False)
        reply = Reply(f"{KIND}:{proposal.mark}:{number}", at, to_markdown(shown), buttons=buttons, literals=shown)
        await outbox.post(reply, proposal.session_key)


async def close_proposal(engine: Engine, outbox: Outbox, ended: Proposal, who: str) -> None:
    """Show the end in the chats that asked."""
    questions, end = ShownQuestions(engine, outbox), describe_end(ended, who)
    pattern = subjects.reply_pattern_of_session(ended.session_key)
    try:
        async with anyio.create_task_group() as tasks:
            async for record, kept in records.read_all(engine, pattern, records.OwedReply):
                tasks.start_soon(questions.close, ShownQuestion(record.seq, kept.reply), end)
    except Exception:  # a chat that still shows it has no effect
        log.exception("the proposal %s is still shown", ended.id)


def describe_end(ended: Proposal, who: str) -> str:
    """Describe the end of a proposal, for the chats that showed it; `who` is the owner who answered, if one did."""
    by = f" by {who}" if who else ""
    words = {
        "done": f"Allowed{by}.",
        "refused": f"Refused{by}.",
        "withdrawn": "It was withdrawn.",
        "late": "No answer came in time.",
        "failed": f"Allowed{by}, and it failed:" if by else "It was not done:",
    }
    return " ".join(filter(None, [words.get(ended.state, ""), ended.result]))

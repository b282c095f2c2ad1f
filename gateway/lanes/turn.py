"""The input and output of a turn: `RunTurn` is one callable from a `LaneTurn` to a `LaneResult`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard

import anyio
import msgspec
from msgspec.structs import replace

from gateway.events import AskedCall
from gateway.hooks.recorder import OwedEvents
from gateway.messages.message import Message, Reply
from gateway.messages.pieces import MessagePiece, find_pieces
from gateway.messages.steps import TurnStatus
from gateway.messages.transcript import Entry, Usage
from gateway.records import records
from gateway.sessions.session import OpenTurn, Session
from gateway.usage.turn_usage import TurnUsage

ANSWER_WAIT = 3600.0


class LaneResult(msgspec.Struct, frozen=True):
    """The outcome of a turn (or a command). One append writes the end, the replies, and the pending events.

    With `questions` (name -> prompt) the turn has not ended: it waits up to `wait` seconds for the answers, then it
    runs again. In this case `entries` are not stored, `replies` are the prompts, `calls` are the tool calls that an
    approval would allow, and `requests` ask the approvers. `changes` are records of the session itself that come before
    the end: a new session, a setting, an undo. `bag` replaces the bag of the session, unless it is None.
    """

    entries: tuple[Entry, ...] = ()
    replies: tuple[Reply, ...] = ()
    status: TurnStatus = "ok"
    bag: Mapping[str, Any] | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    error: str = ""
    questions: Mapping[str, str] = msgspec.field(default_factory=dict)
    calls: Mapping[str, tuple[AskedCall, ...]] = msgspec.field(default_factory=dict)
    wait: float = ANSWER_WAIT
    changes: tuple[records.TurnRecord, ...] = ()
    requests: tuple[records.ApprovalRequest, ...] = ()
    over_budget: bool = False
    pieces: tuple[MessagePiece, ...] = ()  # the parts of the entries, each with its message
    is_corrected: bool = False  # a message was edited while the turn ran, and another turn answers it


class RecordStep(Protocol):
    """Write a finished step of a turn, with its replies in the same append.

    Raises:
        Conflict: this node has lost the claim of the turn, and cancels the work; do nothing more.
    """

    async def __call__(self, step: records.Step, *replies: Reply) -> None: ...


class LaneTurn(msgspec.Struct, frozen=True):
    """One turn, as the work receives it.

    `session` is the state before the turn, and `messages` are the messages to answer. After a crash or a question the
    same turn runs again under the same id: `open` has the finished steps, the questions with their answers (None: no
    answer in time), and the number of tries since the last answer; `resumed` marks a further run. `begins_session`
    marks the first turn of a session. The append of the turn's next record also writes `owed` (its events for durable
    hooks), `usage` (its model calls) and the steps passed to `hold`. `say` sends a reply during the turn: only once for
    each reply id, even if the turn runs again. `show` names a reply that the chat may already display: a turn that ends
    without that reply sends it empty, and so removes it from the chat.

    To write a last reply after an interrupt, run the work in `with turn.scope:` and then check
    `turn.scope.cancelled_caught`; the code after it has `grace` seconds before the lane cancels the turn.
    """

    session: Session
    messages: tuple[Message, ...]
    open: OpenTurn
    resumed: bool
    begins_session: bool
    scope: anyio.CancelScope
    owed: OwedEvents
    usage: TurnUsage
    record: RecordStep
    hold: Callable[[records.Step], None]
    say: Callable[[Reply], Awaitable[None]]
    show: Callable[[Reply], None]

    @property
    def turn_id(self) -> str:
        return self.open.turn_id


def reply_id_of(turn_id: str, part: int = 0) -> str:
    """Return the id of a turn's answer. Each part before a tool call has an id of its own."""
    return f"{turn_id}:reply:{part}" if part else f"{turn_id}:reply"


def count_parts(turn_id: str, steps: Sequence[records.Step]) -> int:
    """Count the answers of the turn's own model that called tools."""
    return sum(isinstance(step, records.LlmStep) and has_own_calls(step, turn_id) for step in steps)


def is_last_answer(step: records.Step, turn_id: str) -> TypeGuard[records.LlmStep]:
    """Return True if the step is the answer that ends the turn."""
    return isinstance(step, records.LlmStep) and step.turn_id == turn_id and not step.entry.tool_calls


def has_own_calls(step: records.LlmStep, turn_id: str) -> bool:
    """Return True if the turn's own model calls tools in this answer, and continues after them."""
    return step.turn_id == turn_id and bool(step.entry.tool_calls)


RunTurn: TypeAlias = Callable[[LaneTurn], Awaitable[LaneResult]]


class TurnStart(msgspec.Struct, frozen=True):
    """A turn that a lane is about to claim, with the session as it will be after the claim.

    If `error` is set, the lane cancels the turn instead, and sends the `apology` to the person.
    """

    turn_id: str
    session: Session
    messages: tuple[Message, ...]
    resumed: bool
    begins_session: bool
    owed: OwedEvents
    error: str = ""
    apology: str = ""


NoteClaim: TypeAlias = Callable[[TurnStart], Awaitable[None]]


async def ignore_claim(_claimed: TurnStart) -> None:
    """Do nothing: this is the `note` of a lane whose turns fire no events."""


def build_partial_entries(messages: Sequence[Message], steps: Sequence[records.Step]) -> tuple[Entry, ...]:
    """Return the transcript entries of an interrupted turn: the person's words, and the finished steps.

    A tool call without a result gets a result "interrupted", since models refuse a transcript with a gap.
    """
    results = {step.call_id: step.entry for step in steps if isinstance(step, records.ToolFinished)}
    entries = [Entry("user", message.text) for message in messages]
    for step in steps:
        if isinstance(step, records.LlmStep) and records.turn_of(step.turn_id) == step.turn_id:
            entries.append(step.entry)
            entries += [
                results.get(call.id)
                or Entry("tool", "interrupted; the outcome is unknown", call_id=call.id, name=call.name, error=True)
                for call in step.entry.tool_calls
            ]
    return tuple(entries)


def build_partial_pieces(messages: Sequence[Message]) -> tuple[MessagePiece, ...]:
    """Find the pieces of messages if each message is one entry."""
    found = ((at, find_pieces([message], message.text)) for at, message in enumerate(messages))
    return tuple(replace(piece, entry=at) for at, pieces in found for piece in pieces)

"""What a lane runs, and what comes of it: `RunTurn` is one callable from a `LaneTurn` to a `LaneResult`."""

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
    """How a turn (or a command) ended, all of it written in one append: the end, the replies, and the events owed.

    With `questions` (name -> prompt) it has not ended: it waits up to `wait` seconds for the answers, then it runs
    again; entries are not kept then, `replies` carry the prompts, `calls` those that an approval lets run, and
    `requests` ask for it where it can be given. `changes` are records of the session's own that come before the end: a
    new session, a setting, an undo. `bag` replaces the session's when it is not None.
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
    pieces: tuple[MessagePiece, ...] = ()  # what of the entries came from which message
    is_corrected: bool = False  # its messages have been edited meanwhile, and are answered by another turn


class RecordStep(Protocol):
    """Writes a finished step of a turn, and in the same append what is to be said with it.

    Raises:
        Conflict: the turn is no longer ours; do nothing more. The turn is cancelled besides.
    """

    async def __call__(self, step: records.Step, *replies: Reply) -> None: ...


class LaneTurn(msgspec.Struct, frozen=True):
    """One turn, as it is given to the work.

    `session` is the state before it, `messages` what it answers. After a crash or a question the same turn runs again
    under the same id: `open` has the steps already done, what people answered (None: nobody did in time) to what they
    were asked, and the number of tries since the last answer; `resumed` says that this is not the first run.
    `begins_session`: it is the first one of its session. The next record of the turn takes along `owed`, its events for
    durable hooks, `usage`, which counts its calls of models, and the steps that were given to `hold`. `say` says
    something in the middle of the turn: once, however often the turn runs (by the reply's id). `show` says as which
    reply something may stand in the chat already: a turn that ends without it owes it all the same, empty, and so takes
    away what was shown.

    Whoever wants a word when the turn is interrupted runs what may be cut in `with turn.scope:` and looks at
    `turn.scope.cancelled_caught` afterwards; the rest has `grace` seconds left before it is cancelled from outside.
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
    """The id of a turn's own answer; what was said before its tools are parts of it, each under an id of its own."""
    return f"{turn_id}:reply:{part}" if part else f"{turn_id}:reply"


def count_parts(turn_id: str, steps: Sequence[records.Step]) -> int:
    """How many answers of the turn's own model went on with tools."""
    return sum(isinstance(step, records.LlmStep) and has_own_calls(step, turn_id) for step in steps)


def is_last_answer(step: records.Step, turn_id: str) -> TypeGuard[records.LlmStep]:
    """Is it an answer of the turn itself, with which that ends?"""
    return isinstance(step, records.LlmStep) and step.turn_id == turn_id and not step.entry.tool_calls


def has_own_calls(step: records.LlmStep, turn_id: str) -> bool:
    """Does the turn's own model want tools with this answer, and say more behind them?"""
    return step.turn_id == turn_id and bool(step.entry.tool_calls)


RunTurn: TypeAlias = Callable[[LaneTurn], Awaitable[LaneResult]]


class TurnStart(msgspec.Struct, frozen=True):
    """A turn that is about to be claimed, with the session as it will be then.

    With an `error` it is given up for that instead, and its person is told the `apology`.
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
    """For lanes whose turns have no events."""


def build_partial_entries(messages: Sequence[Message], steps: Sequence[records.Step]) -> tuple[Entry, ...]:
    """Returns what an interrupted turn leaves in the transcript: the words of the person, and what was finished.

    A tool call without a result gets one that says so: a transcript with a hole is refused by models.
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
    """Each message is an entry of its own there."""
    found = ((at, find_pieces([message], message.text)) for at, message in enumerate(messages))
    return tuple(replace(piece, entry=at) for at, pieces in found for piece in pieces)

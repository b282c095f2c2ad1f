"""The steps of a turn, written down as they finish, so that the turn can continue after a crash.

A turn makes them and knows no journal; `gateway.records.records` makes them records of a session's chain.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.pieces import MessageName
from gateway.messages.transcript import Entry, Usage

VERSION = 1  # the highest version that is read here

TurnStatus: TypeAlias = Literal[
    "ok", "ended", "denied", "interrupted", "failed", "paused", "command", "forgotten", "expired", "shortened"
]


class JournalRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The base of every record: the version needed to read it, and the time by the writer's wall clock.

    Gateways of two versions work side by side. So a kind that is new, or that an older gateway would misread, has the
    new version as its own `v`; all others keep theirs, and a new field that may be ignored needs none.
    """

    v: int = 1
    at: float = 0.0


class TurnRecord(JournalRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all records of a session's chain. The wall clock was `ahead` of the journal's by so many seconds."""

    ahead: float = 0.0


class MessageDeleted(TurnRecord, tag="deleted", frozen=True, kw_only=True):
    """An author deleted a message: from now on, no entry of this chain shows its words."""

    session_key: str
    name: MessageName
    person: str = ""


class OpenTurnRecord(TurnRecord, frozen=True, kw_only=True):
    """The base of all records of one turn until its end."""

    turn_id: str


class LlmStep(OpenTurnRecord, tag="llm", frozen=True, kw_only=True):
    """A model's finished answer. `authors`: the restricted hooks that influenced the turn so far."""

    hop: int
    entry: Entry
    usage: Usage = Usage()
    stop: str = ""  # the model's own reason, in our words
    authors: tuple[str, ...] = ()


class LastAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The step of the answer that ended a turn, without its words: these are in the turn's entries.

    `usage` is set if the turn used more than this step.
    """

    hop: int
    stop: str = ""
    usage: Usage | None = None


class ToolStarted(OpenTurnRecord, tag="tool_started", frozen=True, kw_only=True):
    """A record before a tool runs, so that after a crash the gateway knows that the tool may have run."""

    call_id: str
    name: str
    args: dict[str, Any]
    repeatable: bool = False


class ToolFinished(OpenTurnRecord, tag="tool_finished", frozen=True, kw_only=True):
    """A tool's result after the interceptors; not `judged` while one of them waits for a person's answer."""

    call_id: str
    entry: Entry
    judged: bool = True


Step = LlmStep | ToolStarted | ToolFinished


def turn_of(turn_id: str) -> str:
    """Return the turn of a step: a sub-agent's steps carry the turn's id, followed by the ids of the calls."""
    return turn_id.partition("/")[0]

"""The steps of a turn: what it has done so far, written down as it happens, so that it can go on after a crash.

A turn makes them and knows no journal; `gateway.records.records` counts them among the records of a session's chain.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from gateway.messages.pieces import MessageName
from gateway.messages.transcript import Entry, Usage

VERSION = 1  # the highest that is read here

TurnStatus: TypeAlias = Literal[
    "ok", "ended", "denied", "interrupted", "failed", "paused", "command", "forgotten", "expired", "shortened"
]


class JournalRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every record has: the version that can read it, and when it was written by the writer's wall clock.

    Gateways of two versions work beside each other. So a kind that is new, or that an older one would misread, has the
    new version as its own `v`; all others keep theirs, and a field more that may be passed over needs none.
    """

    v: int = 1
    at: float = 0.0


class TurnRecord(JournalRecord, frozen=True, kw_only=True, omit_defaults=True):
    """What all records of a session's chain are. `ahead`: by so many seconds that clock was ahead of the journal's."""

    ahead: float = 0.0


class MessageDeleted(TurnRecord, tag="deleted", frozen=True, kw_only=True):
    """Its author took a message back: wherever it was taken into this chain, nothing shows its words from now on."""

    session_key: str
    name: MessageName
    person: str = ""


class OpenTurnRecord(TurnRecord, frozen=True, kw_only=True):
    """What is written of one turn until its end."""

    turn_id: str


class LlmStep(OpenTurnRecord, tag="llm", frozen=True, kw_only=True):
    """A model's finished answer. `authors`: the restricted hooks that had a say in the turn by then."""

    hop: int
    entry: Entry
    usage: Usage = Usage()
    stop: str = ""  # the model's own reason, in our words
    authors: tuple[str, ...] = ()


class LastAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The step of the answer with which a turn ended, without its words: these are in the turn's entries.

    `usage` is there where the turn used more than that.
    """

    hop: int
    stop: str = ""
    usage: Usage | None = None


class ToolStarted(OpenTurnRecord, tag="tool_started", frozen=True, kw_only=True):
    """Written before a tool runs, so that after a crash one knows that it may have run."""

    call_id: str
    name: str
    args: dict[str, Any]
    repeatable: bool = False


class ToolFinished(OpenTurnRecord, tag="tool_finished", frozen=True, kw_only=True):
    """A tool's result, as the interceptors left it; not `judged`, while one of them waits for a person's answer."""

    call_id: str
    entry: Entry
    judged: bool = True


Step = LlmStep | ToolStarted | ToolFinished


def turn_of(turn_id: str) -> str:
    """The turn that a step belongs to: a sub-agent's steps carry the turn's id with the ids of the calls behind it."""
    return turn_id.partition("/")[0]

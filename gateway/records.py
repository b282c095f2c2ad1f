"""What the journal holds: versioned records, and the subjects under which they stand.

One chain a session key stands on `gw.turn.<conv>`, each record appended with the sequence of the one before: claims,
steps and ends of turns, and what changes the session itself. Folding the chain from its start (or from its last
`Summary`) gives the session. Inbound messages and replies have chains of their own. A record is one JSON object with
its kind and its version; an older version stays readable for ever, a newer one is refused.
"""

import hashlib
from typing import Any, Literal, TypeVar

import msgspec

from gateway.errors import EngineTooNew
from gateway.messages import Message, Reply
from gateway.transcript import Entry, Usage

VERSION = 1

TURN_SUBJECTS = "gw.turn.*"
IN_SUBJECTS = "gw.in.*"
OUT_SUBJECTS = "gw.out.*"
EVENT_SUBJECTS = "gw.ev.>"


class Kept(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every record has: the version of its shape."""

    v: int = VERSION


class Inbound(Kept, tag="in", frozen=True, kw_only=True):
    """A message, accepted: from here on it is ours to answer."""

    session_key: str
    message: Message


class Claim(Kept, tag="claim", frozen=True, kw_only=True):
    """A node takes the messages after the last end, up to the inbound sequence `on`; `attempt` counts tries."""

    turn_id: str
    by: str
    on: int
    attempt: int = 1


class LlmStep(Kept, tag="llm", frozen=True, kw_only=True):
    """A model's finished answer."""

    turn_id: str
    hop: int
    entry: Entry
    usage: Usage = Usage()


class ToolStarted(Kept, tag="tool_started", frozen=True, kw_only=True):
    """Written before a tool runs, so that after a crash one knows that it may have run."""

    turn_id: str
    call_id: str
    name: str
    args: dict[str, Any]
    repeatable: bool = False


class ToolFinished(Kept, tag="tool_finished", frozen=True, kw_only=True):
    """A tool's result, as the interceptors left it."""

    turn_id: str
    call_id: str
    entry: Entry


class Asked(Kept, tag="asked", frozen=True, kw_only=True):
    """The turn waits for a person: questions by name. Its claim is given up until the answers are there."""

    turn_id: str
    questions: dict[str, str]
    until: float


class Answered(Kept, tag="answered", frozen=True, kw_only=True):
    """A person's answer to one question (None: nobody answered in time)."""

    turn_id: str
    name: str
    answer: Any
    by: str = ""


class Done(Kept, tag="done", frozen=True, kw_only=True):
    """The end of a turn or command: everything up to the inbound sequence `upto` is answered.

    `entries` are what the turn adds to the transcript; `bag` is the session's bag when it changed.
    """

    upto: int
    turn_id: str = ""
    status: Literal["ok", "ended", "denied", "interrupted", "failed", "command", "forgotten", "expired"] = "ok"
    entries: tuple[Entry, ...] = ()
    usage: Usage = Usage()
    error: str = ""
    bag: dict[str, Any] | None = None


class Opened(Kept, tag="opened", frozen=True, kw_only=True):
    """A session begins under this key: the first one, or a new one after a reset; or an old one is resumed."""

    session_id: str
    reason: str = "first"
    previous: str = ""
    platform: str = ""
    user_id: str = ""
    base: str = ""  # the conv of another chain whose first `upto` records this session starts from (a branch)
    upto: int = 0


class Changed(Kept, tag="changed", frozen=True, kw_only=True):
    """A setting of the session (`model`, `title`, ...); None puts the default back."""

    name: str
    value: Any


class Undone(Kept, tag="undone", frozen=True, kw_only=True):
    """The last `turns` turns of the transcript no longer count."""

    turns: int = 1


class Summary(Kept, tag="summary", frozen=True, kw_only=True):
    """The session as it was folded up to the record before; reading may begin here."""

    state: dict[str, Any]


class Outbound(Kept, tag="out", frozen=True, kw_only=True):
    """A reply that is owed; appended together with the end (or the step) that it belongs to."""

    reply: Reply
    session_key: str
    turn_id: str = ""


class Intent(Kept, tag="intent", frozen=True, kw_only=True):
    """Written before the call that sends part `part`: if no `Sent` follows, the outcome is unknown."""

    out: int
    part: int = 0
    attempt: int = 1


class Sent(Kept, tag="sent", frozen=True, kw_only=True):
    """The network has it; `message_ids` are the network's own."""

    out: int
    part: int = 0
    message_ids: tuple[str, ...] = ()
    last: bool = True


class Failed(Kept, tag="failed", frozen=True, kw_only=True):
    """Given up, or (`retry_at`) to be tried again at that time."""

    out: int
    error: str
    attempts: int = 1
    permanent: bool = True
    retry_at: float = 0.0


class Dead(Kept, tag="dead", frozen=True, kw_only=True):
    """What could not be done: a turn, or an event owed to a hook; kept until somebody clears it."""

    what: str
    reason: str
    attempts: int
    subject: str
    seq: int
    data: bytes = b""


class Cursor(Kept, tag="cursor", frozen=True, kw_only=True):
    """How far a network has been read."""

    platform: str
    value: dict[str, Any]


class Emitted(Kept, tag="event", frozen=True, kw_only=True):
    """An event that a durable hook is owed."""

    name: str
    fields: dict[str, Any]


TurnRecord = (
    Claim | LlmStep | ToolStarted | ToolFinished | Asked | Answered | Done | Opened | Changed | Undone | Summary
)
Step = LlmStep | ToolStarted | ToolFinished
SendRecord = Intent | Sent | Failed
AnyRecord = TurnRecord | SendRecord | Inbound | Outbound | Dead | Cursor | Emitted

R = TypeVar("R", bound=Kept)


class _Version(msgspec.Struct):
    v: int = VERSION


_decoder = msgspec.json.Decoder(AnyRecord)
_version = msgspec.json.Decoder(_Version)


def encode(record: Kept) -> bytes:
    return msgspec.json.encode(record)


def decode(data: bytes) -> AnyRecord:
    """The record in these bytes.

    Raises:
        EngineTooNew: a later version of the gateway wrote it.
    """
    if (v := _version.decode(data).v) > VERSION:
        raise EngineTooNew(
            f"the journal holds a record of version {v}; this gateway reads up to {VERSION}: upgrade hermes-gateway"
        )
    record: AnyRecord = _decoder.decode(data)
    return record


def conv(session_key: str) -> str:
    """The token that stands for a session key in subjects: one segment, whatever the key contains."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:24]


def subject(kind: Literal["in", "turn", "out", "sent"], session_key: str) -> str:
    return f"gw.{kind}.{conv(session_key)}"


def event_subject(name: str) -> str:
    """`command:new` -> `gw.ev.command.new`; a pattern's last `*` takes in all that is below."""
    parts = name.split(":")
    return "gw.ev." + ".".join([*parts[:-1], ">" if parts[-1] == "*" else parts[-1]])

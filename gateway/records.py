"""The journal's records, versioned, and the subjects under which they stand.

One chain a session key stands on `gw.turn.<conv>`, each record appended with the sequence of the one before: claims,
steps and ends of turns, and what changes the session itself. Folding the chain from its start gives the session; a
`SessionSnapshot` beside it (on `gw.sum.<conv>`) only shortens the way. Inbound messages stand on `gw.in.<conv>`,
replies on `gw.out.<platform>.<place>.<conv>`: one order a place, one subject a session, so that a session can be
forgotten. Events that durable hooks are owed stand with the conversation that they are of, on `gw.owed.<conv>.<name>`,
in the append of what they tell; those that are of none on `gw.ev.<name>`. A record is one JSON object with its kind and
its version; an older version stays readable for ever, a newer one is refused.
"""

import hashlib
import re
from collections.abc import AsyncIterator
from functools import reduce
from operator import or_
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from gateway.engine.interface import Engine, NewRecord, Record, SettledRecords
from gateway.errors import EngineTooNew, RecordDamage
from gateway.events import AskedCall
from gateway.messages import Address, Message, Reply
from gateway.roles import Role
from gateway.steps import VERSION, OpenTurnRecord, TurnStatus
from gateway.steps import JournalRecord as JournalRecord
from gateway.steps import LlmStep as LlmStep
from gateway.steps import Step as Step
from gateway.steps import ToolFinished as ToolFinished
from gateway.steps import ToolStarted as ToolStarted
from gateway.steps import TurnRecord as TurnRecord
from gateway.steps import turn_of as turn_of
from gateway.transcript import Entry, Usage

RecordT = TypeVar("RecordT", bound=JournalRecord)
SessionSubject: TypeAlias = Literal["in", "turn", "bell", "sum", "dead.turns"]

TURN_SUBJECTS = "gw.turn.*"
IN_SUBJECTS = "gw.in.*"
WAKEUP_SUBJECTS = "gw.bell.*"
OUT_SUBJECTS = "gw.out.>"
EVENT_SUBJECTS = "gw.ev.>"
OWED_EVENT_SUBJECTS = "gw.owed.>"
RETRY_SUBJECTS = "gw.redo.*"
DEAD_SUBJECTS = "gw.dead.>"
DEAD_TURN_SUBJECTS = "gw.dead.turns.*"
HOOK_STORE_SUBJECTS = "gw.keep.*.*"
ACCESS_SUBJECT = "gw.access"
CONTROL_SUBJECTS = "rt.ctl.*"
APPROVAL_SUBJECTS = "gw.ask.*.*"

DAY = 86400.0
TRAFFIC_TTL = 14 * DAY  # messages in, replies out and how they were sent, from when they are settled
NEWEST = (1 << 63) - 1  # no sequence is higher
EVENT_TTL = 7 * DAY
PAGE = 500  # records that are read at once


class InboundMessage(JournalRecord, tag="in", frozen=True, kw_only=True):
    """A message, accepted: from here on it is ours to answer."""

    session_key: str
    message: Message


class LaneWakeup(JournalRecord, tag="bell", frozen=True, kw_only=True):
    """Something other than a message happened that a session's lane must look at: an answer came."""

    session_key: str


class Claim(OpenTurnRecord, tag="claim", frozen=True, kw_only=True):
    """A node takes the messages after the last end, up to the inbound sequence `on`; `attempt` counts tries.

    `deaths`: how often the process had died of this turn until then, as far as the marks of its steps tell.
    """

    by: str
    on: int
    attempt: int = 1
    deaths: int = 0


class InterimReply(OpenTurnRecord, tag="said", frozen=True, kw_only=True):
    """A reply was appended in the middle of the turn; when the turn runs again, it is not sent again."""

    reply_id: str


class ClaimReleased(OpenTurnRecord, tag="released", frozen=True, kw_only=True):
    """The claim is given back in good order: by a restart, then who goes on starts no new try, or as `failed`."""

    failed: bool = False


class QuestionsAsked(OpenTurnRecord, tag="asked", frozen=True, kw_only=True):
    """The turn waits for a person: questions by name. Its claim is given up until the answers are there.

    `calls`, by the question's name: those that an approval lets run; a question without any is none.
    """

    questions: dict[str, str]
    until: float
    calls: dict[str, tuple[AskedCall, ...]] = msgspec.field(default_factory=dict)


class QuestionAnswered(OpenTurnRecord, tag="answered", frozen=True, kw_only=True):
    """A person's answer to one question (None: nobody answered in time); `by_name` is how they are called there."""

    name: str
    answer: Any
    by: str = ""
    by_name: str = ""


class ApprovalRequest(JournalRecord, tag="approval", frozen=True, kw_only=True):
    """The question `name` of a turn is an approval, and stands open; the record goes once what was shown is closed.

    `mark` is what the buttons under it carry. Where `is_own` is false, others than the person who asks decide; what
    nobody waits for is not `is_attended`.
    """

    mark: str
    session_key: str
    turn_id: str
    name: str
    address: Address
    message_id: str = ""
    user_id: str = ""
    user_name: str = ""
    is_own: bool = False
    is_attended: bool = True


class TurnEnded(TurnRecord, tag="done", frozen=True, kw_only=True):
    """The end of a turn or command: everything up to the inbound sequence `upto` is answered.

    `entries` are what the turn adds to the transcript; `bag` is the session's bag when it changed. Two are ends of the
    chain as it was: `forgotten`, and `shortened`, behind which all that is to stay is written anew.
    """

    upto: int
    turn_id: str = ""
    status: TurnStatus = "ok"
    entries: tuple[Entry, ...] = ()
    usage: Usage = Usage()
    error: str = ""
    bag: dict[str, Any] | None = None


class InitialState(msgspec.Struct, frozen=True, kw_only=True):
    """What a session brings along when it does not begin empty: resumed, branched or compressed."""

    entries: tuple[Entry, ...] = ()
    turns: tuple[int, ...] = ()  # how many entries each turn added
    bag: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    usage: Usage = Usage()


class SessionOpened(TurnRecord, tag="opened", frozen=True, kw_only=True):
    """A session begins under this key: the first one, or a new one after a reset; or an old one is resumed.

    It stands for itself: what it starts with is in `carried`, never behind a reference that could be forgotten.
    """

    session_id: str
    session_key: str = ""
    reason: str = "first"
    previous: str = ""
    platform: str = ""
    user_id: str = ""
    origin: str = ""  # the session that `carried` was taken from
    began: float = 0.0  # where it is older than this record
    carried: InitialState | None = None


class SettingChanged(TurnRecord, tag="changed", frozen=True, kw_only=True):
    """A setting of the session (`model`, `title`, ...); None puts the default back."""

    name: str
    value: Any


class TurnsUndone(TurnRecord, tag="undone", frozen=True, kw_only=True):
    """The last `turns` turns of the transcript no longer count."""

    turns: int = 1


class SessionSnapshot(JournalRecord, tag="summary", frozen=True, kw_only=True):
    """The session as it was folded up to the sequence `upto`: reading may go on behind it. Always dispensable.

    `shape` is that of the state; a reader that has another one passes the summary over.
    """

    upto: int
    shape: int
    state: msgspec.Raw


class OwedReply(JournalRecord, tag="out", frozen=True, kw_only=True):
    """A reply that is owed; appended together with the end (or the step) that it belongs to."""

    reply: Reply
    session_key: str
    turn_id: str = ""
    cause: tuple[str, int] | None = None  # as of the message that it answers


class SendRecord(JournalRecord, frozen=True, kw_only=True):
    """What all records of a send journal are: about part `part` of the reply with the sequence `out`.

    `out` is 0 for a stream, whose reply is not written yet. The last record of a place's send journal is enough to go
    on: everything below `out` is settled, and `message_ids` has the network's own ids of each part so far.
    """

    out: int
    reply_id: str = ""
    part: int = 0
    message_ids: tuple[tuple[str, ...], ...] = ()


class SendIntent(SendRecord, tag="intent", frozen=True, kw_only=True):
    """Written before the call that sends a part: if no `SendSucceeded` follows, the outcome is unknown."""

    attempt: int = 1


class SendSucceeded(SendRecord, tag="sent", frozen=True, kw_only=True):
    """The network has the part, and with `last` the whole reply."""

    attempts: int = 1

    last: bool = True


class SendFailed(SendRecord, tag="failed", frozen=True, kw_only=True):
    """Given up, or (`permanent` false) to be tried again at `retry_at`. `strikes`: replies refused in a row."""

    error: str
    attempts: int = 1

    permanent: bool = True
    retry_at: float = 0.0
    strikes: int = 0


class DeadLetterRecord(JournalRecord, tag="dead", frozen=True, kw_only=True):
    """What could not be done: a turn, or an event owed to a hook; kept until somebody clears it."""

    what: str
    reason: str
    attempts: int
    subject: str
    seq: int
    data: bytes = b""


class CursorRecord(JournalRecord, tag="cursor", frozen=True, kw_only=True):
    """How far a network has been read."""

    platform: str
    value: dict[str, Any]


class PairingUser(msgspec.Struct, frozen=True):
    """A person who asked to be let in, or was, with their role; `mark` tells the code that they were given.

    Who asks has a number, which nobody had before or gets after them (0: asked before there were any), and is `told`
    their code, unless that could not be sent.
    """

    platform: str
    user_id: str
    user_name: str = ""
    chat_id: str = ""
    at: float = 0.0
    mark: str = ""
    role: Role = "user"
    number: int = 0
    told: bool = True


class PairingState(JournalRecord, tag="paired", frozen=True, kw_only=True):
    """Who was let in by a code, and who has asked; the last one counts.

    owners: who is the owner where no rule says it. wrong: when somebody tried codes that nobody has. numbered: the last
    number that was given to anybody who asked.
    """

    people: tuple[PairingUser, ...] = ()
    asking: tuple[PairingUser, ...] = ()
    owners: tuple[PairingUser, ...] = ()
    wrong: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    numbered: int = 0


class StoredValue(JournalRecord, tag="stored", frozen=True, kw_only=True):
    """What a hook keeps under a key; the last one counts."""

    hook: str
    key: str
    value: Any


class EmittedEvent(JournalRecord, tag="event", frozen=True, kw_only=True):
    """An event that a durable hook is owed."""

    name: str
    fields: dict[str, Any]
    depth: int = 0  # how many events came before it, each caused by a hook


def _find_kinds(record: type[JournalRecord]) -> tuple[type[JournalRecord], ...]:
    """The kinds of record that there are: those that no other is made of."""
    below = record.__subclasses__()
    return tuple(kind for one in below for kind in _find_kinds(one)) if below else (record,)


RECORD_KINDS = _find_kinds(JournalRecord)


class _RecordVersion(msgspec.Struct):
    v: int = VERSION


_decoder: msgspec.json.Decoder[JournalRecord] = msgspec.json.Decoder(reduce(or_, RECORD_KINDS))
_version_decoder = msgspec.json.Decoder(_RecordVersion)


def encode(record: JournalRecord) -> bytes:
    return msgspec.json.encode(record)


def decode(data: bytes) -> JournalRecord:
    """Reads the record in these bytes.

    Raises:
        EngineTooNew: a later version of the gateway wrote it.
    """
    if (v := _version_decoder.decode(data).v) > VERSION:
        raise EngineTooNew(
            f"the journal holds a record of version {v}; this gateway reads up to {VERSION}: upgrade hermes-gateway"
        )
    return _decoder.decode(data)


async def read_readable(engine: Engine, pattern: str, after: int, limit: int) -> list[Record]:
    """As the engine reads, but past what is damaged, which the engine's health names."""
    while True:
        try:
            return await engine.read(pattern, after, limit)
        except RecordDamage as damage:
            if damage.before:
                return damage.before
            after = damage.seq


async def read_all(
    engine: Engine, pattern: str, kind: type[RecordT], after: int = 0
) -> AsyncIterator[tuple[Record, RecordT]]:
    """Every record of this kind, in order, with what it holds."""
    while page := await read_readable(engine, pattern, after, PAGE):
        for found in page:
            if isinstance(kept := decode(found.data), kind):
                yield found, kept
        after = page[-1].seq


async def read_events(engine: Engine, after: int = 0) -> AsyncIterator[tuple[Record, EmittedEvent]]:
    """Every event that durable hooks are owed or were, in order: those of conversations, and all others."""
    while True:
        pages = [await engine.read(pattern, after, PAGE) for pattern in (EVENT_SUBJECTS, OWED_EVENT_SUBJECTS)]
        upto = min((page[-1].seq for page in pages if len(page) == PAGE), default=0)  # all is known up to there
        found = [record for page in pages for record in page if not upto or record.seq <= upto]
        if not found:
            return
        for record in sorted(found, key=lambda record: record.seq):
            if isinstance(kept := decode(record.data), EmittedEvent):
                yield record, kept
            after = record.seq


async def read_last(engine: Engine, subject: str, kind: type[RecordT]) -> tuple[int, RecordT | None]:
    """The last record, if it is of this kind, and its sequence; 0 where there is none."""
    last = await engine.last(subject)
    kept = decode(last.data) if last else None
    return last.seq if last else 0, kept if isinstance(kept, kind) else None


def token_of(text: str) -> str:
    """One segment of a subject that stands for a text, whatever the text contains."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def session_subject_of(kind: SessionSubject, session_key: str) -> str:
    return session_subject_of_token(kind, token_of(session_key))


def session_subject_of_token(kind: SessionSubject, token: str) -> str:
    """Does the same where only the token is known: a subject has the token in it, and no longer the key."""
    return f"gw.{kind}.{token}"


def token_of_subject(subject: str) -> str:
    """The session token that a subject of a session's records, or of its replies, ends with."""
    return subject.rpartition(".")[2]


def platform_token_of(platform: str) -> str:
    return platform if re.fullmatch(r"[a-z0-9_-]+", platform) else token_of(platform)


def place_of(address: Address) -> str:
    """`<platform>.<token>`: where replies have one order."""
    at = f"{address.chat_id}\0{address.thread_id}"
    return f"{platform_token_of(address.platform)}.{token_of(at)}"


def reply_subject_of(address: Address, session_key: str) -> str:
    return f"gw.out.{place_of(address)}.{token_of(session_key)}"


def make_reply_put(
    reply: Reply, session_key: str, turn_id: str, at: float, cause: tuple[str, int] | None = None
) -> NewRecord:
    """The append that owes somebody a reply, without a limit: it has one when it is sent or given up."""
    outbound = OwedReply(reply=reply, session_key=session_key, turn_id=turn_id, cause=cause, at=at)
    return NewRecord(reply_subject_of(reply.address, session_key), encode(outbound))


def settle_turn(session_key: str, upto: int) -> tuple[SettledRecords, ...]:
    """What the end of a turn settles: the messages up to there, and what woke its lane."""
    messages = SettledRecords(session_subject_of("in", session_key), upto, TRAFFIC_TTL)
    return messages, SettledRecords(session_subject_of("bell", session_key), NEWEST, TRAFFIC_TTL)


def make_event_put(event: EmittedEvent, msg_id: str | None = None) -> NewRecord:
    """The append that owes durable hooks an event."""
    return NewRecord(event_subject_of(event.name), encode(event), msg_id=msg_id)


def owed_event_subject_of(name: str, session_key: str) -> str:
    """Where an event of a conversation stands: under the conversation, like the records that it is appended with."""
    return f"gw.owed.{token_of(session_key)}.{_event_path_of(name)}"


def owed_event_pattern_of(name: str) -> str:
    """The pattern of what conversations have of an event, or of all that a pattern of events meets."""
    return f"gw.owed.*.{_event_path_of(name)}"


def owed_event_pattern_of_token(token: str) -> str:
    """The pattern of the events that belong to the session key with this token."""
    return f"gw.owed.{token}.>"


def make_owed_event_put(name: str, data: bytes, session_key: str) -> NewRecord:
    """The append that owes durable hooks an event of a conversation, of which these are the bytes."""
    return NewRecord(owed_event_subject_of(name, session_key), data)


def place_of_reply_subject(subject: str) -> str:
    """The place that a reply goes to, from the subject that it stands on."""
    return subject.removeprefix("gw.out.").rpartition(".")[0]


def reply_pattern_of_session(session_key: str) -> str:
    """The pattern of all replies that belong to a session key."""
    return reply_pattern_of_token(token_of(session_key))


def reply_pattern_of_token(token: str) -> str:
    """The pattern of all replies that belong to the session key with this token."""
    return f"gw.out.*.*.{token}"


def reply_pattern_of_place(where: str) -> str:
    """The pattern of all replies that go to a place."""
    return f"gw.out.{where}.*"


def reply_pattern_of_platform(platform: str) -> str:
    return f"gw.out.{platform_token_of(platform)}.>"


def send_subject_of(where: str, stream: str = "") -> str:
    """The send journal of a place, or of one streamed reply in it."""
    return f"gw.sent.{where}.{token_of(stream)}" if stream else f"gw.sent.{where}"


def delta_subject_of(session_key: str) -> str:
    """Live only: pieces of an answer while the model writes it."""
    return f"rt.delta.{token_of(session_key)}"


def control_subject_of(session_key: str) -> str:
    """Live only: whichever node runs the session's turn shall stop it; the message is the session's key."""
    return f"rt.ctl.{token_of(session_key)}"


def approval_subject_of(mark: str, session_key: str = "") -> str:
    """Returns where the request of an approval stands; without a session, the pattern of the one with this mark."""
    return f"gw.ask.{mark}.{token_of(session_key) if session_key else '*'}"


def approval_pattern_of_token(token: str) -> str:
    """The pattern of the requests that belong to the session key with this token."""
    return f"gw.ask.*.{token}"


def event_subject_of(name: str) -> str:
    """`command:new` -> `gw.ev.command.new`; a pattern's last `*` takes in all that is below."""
    return f"gw.ev.{_event_path_of(name)}"


def _event_path_of(name: str) -> str:
    parts = name.split(":")
    return ".".join([*parts[:-1], ">" if parts[-1] == "*" else parts[-1]])


def hook_store_subject_of(hook: str, key: str | None = None) -> str:
    """Returns where a hook keeps a value; without a key, the pattern of its whole store."""
    return f"gw.keep.{token_of(hook)}.{'*' if key is None else token_of(key)}"


def schedule_subject_of(hook: str) -> str:
    """Returns where it is kept when a hook's schedule was last due."""
    return f"gw.schedule.{token_of(hook)}"


def dead_letter_subject_of(hook_token: str, seq: int | None = None) -> str:
    """Returns where an event is kept that a durable hook could not be given; without a sequence, the pattern of all."""
    return f"gw.dead.{hook_token}.{'*' if seq is None else seq}"


def retry_subject_of(hook_token: str) -> str:
    """Returns where a dead letter is put that is tried again: this hook's consumer alone reads it."""
    return f"gw.redo.{hook_token}"


def cursor_subject_of(reader: str, bot: str = "") -> str:
    """Returns where it is kept how far a bot has read its network, or a follower the journal."""
    subject = f"gw.cur.{platform_token_of(reader)}"
    return f"{subject}.{token_of(bot)}" if bot else subject

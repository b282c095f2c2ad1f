"""The journal's records, versioned.

One chain a session key stands on `gw.turn.<conv>`, each record appended with the sequence of the one before: claims,
steps and ends of turns, and what changes the session itself. Folding the chain from its start gives the session; a
`SessionSnapshot` beside it (on `gw.sum.<conv>`) only shortens the way. An event that a durable hook is owed stands in
the append of what it tells. A record is one JSON object with its kind and its version; an older version stays readable
for ever, a newer one is refused.
"""

from collections.abc import AsyncIterator
from functools import reduce
from operator import or_
from typing import Any, Literal, TypeVar

import msgspec

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import EngineTooNew, RecordDamage
from gateway.events import AskedCall
from gateway.messages.message import Address, Message, Reply
from gateway.messages.pieces import MessagePiece
from gateway.messages.steps import VERSION, OpenTurnRecord, TurnStatus
from gateway.messages.steps import JournalRecord as JournalRecord
from gateway.messages.steps import LastAnswer as LastAnswer
from gateway.messages.steps import LlmStep as LlmStep
from gateway.messages.steps import MessageDeleted as MessageDeleted
from gateway.messages.steps import Step as Step
from gateway.messages.steps import ToolFinished as ToolFinished
from gateway.messages.steps import ToolStarted as ToolStarted
from gateway.messages.steps import TurnRecord as TurnRecord
from gateway.messages.steps import turn_of as turn_of
from gateway.messages.transcript import Entry, Usage
from gateway.records import subjects
from gateway.records.access import Login as Login
from gateway.records.access import LoginLink as LoginLink
from gateway.records.access import LoginState as LoginState
from gateway.records.access import PairingInvitation as PairingInvitation
from gateway.records.access import PairingState as PairingState
from gateway.records.access import PairingUser as PairingUser
from gateway.records.access import ProgramKey as ProgramKey
from gateway.records.access import ProgramKeyState as ProgramKeyState
from gateway.records.hooks import EmittedEvent as EmittedEvent
from gateway.records.hooks import HookDecisionState as HookDecisionState
from gateway.records.hooks import HookFolder as HookFolder
from gateway.records.hooks import HookGuard as HookGuard
from gateway.records.hooks import NodeHooks as NodeHooks
from gateway.records.hooks import OwedHook as OwedHook
from gateway.records.hooks import StoredValue as StoredValue
from gateway.records.voice import AudioTranscription as AudioTranscription
from gateway.records.voice import HeardMessage as HeardMessage
from gateway.records.voice import HeardRemoval as HeardRemoval
from gateway.records.voice import VoiceAnswer as VoiceAnswer

RecordT = TypeVar("RecordT", bound=JournalRecord)


DAY = 86400.0
TRAFFIC_TTL = 14 * DAY  # messages in, replies out and how they were sent, from when they are settled
NEWEST = (1 << 63) - 1  # no sequence is higher
SENT_TTL = 21 * DAY  # how the last reply of a place was sent: longer than the reply, which would be sent again
EVENT_TTL = 7 * DAY
PAGE_TTL = 90 * DAY  # what the page's chat shows
VOICE_MARK = ":voice"  # the end of the id of a reply that is another one's text, spoken
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

    `deaths`: how often the process had died of this turn until then, as far as the marks of its steps tell. `edits`:
    what it has taken into those messages, wherever that stands. `address`: where the last one came from, if the session
    did not know that.
    """

    by: str
    on: int
    attempt: int = 1
    deaths: int = 0
    edits: tuple[int, ...] = ()
    address: Address | None = None


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


class DecisionRecord(OpenTurnRecord, tag="decided", frozen=True, kw_only=True):
    """What a hook made of an event of the turn: denied, ended, tried again, changed, or asked; and its words for it."""

    event_id: str
    event: str
    hook: str
    decision: str
    reason: str = ""
    call_id: str = ""
    hop: int = 0


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

    `entries` are what the turn adds to the transcript, `people` those whose messages it answers, `pieces` what of the
    entries came from which message (older versions did not write these two); `bag` is the session's bag when it
    changed. `over_budget`: it went no further for that. `answer` is there where no record of its own has it.

    Two are ends of the chain as it was: `forgotten`, and `shortened`, behind which all that is to stay is written anew.
    `is_partial`: what is forgotten is some turns of it, and its messages and replies stay; `edits`: of these, those
    behind `upto` that turns have taken.
    """

    upto: int
    turn_id: str = ""
    status: TurnStatus = "ok"
    entries: tuple[Entry, ...] = ()
    people: tuple[str, ...] = ()
    pieces: tuple[MessagePiece, ...] = ()
    usage: Usage = Usage()
    error: str = ""
    bag: dict[str, Any] | None = None
    is_partial: bool = False
    over_budget: bool = False
    edits: tuple[int, ...] = ()
    answer: LastAnswer | None = None


class InitialState(msgspec.Struct, frozen=True, kw_only=True):
    """What a session brings along when it does not begin empty: resumed, branched or compressed."""

    entries: tuple[Entry, ...] = ()
    turns: tuple[int, ...] = ()  # how many entries each turn added
    speakers: tuple[tuple[str, ...], ...] = ()  # whose messages each turn answered
    pieces: tuple[tuple[MessagePiece, ...], ...] = ()  # what of each turn came from which message
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
    address: Address | None = None  # where its last message came from, where it is older than this record
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
    person: str = ""  # whom it answers, as `telegram:1002`, where it belongs to a turn


class ShownMessage(JournalRecord, tag="page", frozen=True, kw_only=True):
    """What the page's chat shows: what a person wrote, or a reply, of which the last one of an id counts."""

    message: Message | None = None
    reply: Reply | None = None


class SendRecord(JournalRecord, frozen=True, kw_only=True):
    """What all records of a send journal are: about part `part` of the reply with the sequence `out`.

    `out` is 0 for a stream, whose reply is not written yet. The last record of a place's send journal is enough to go
    on: everything below `out` is settled, and `message_ids` has the network's own ids of each part so far. `settled`
    stands in a journal of 0.1.0 that had several shards; who finds it does not go on.
    """

    out: int
    reply_id: str = ""
    part: int = 0
    message_ids: tuple[tuple[str, ...], ...] = ()
    settled: list[int] | msgspec.UnsetType = msgspec.UNSET


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


class PendingUpdate(JournalRecord, tag="update", frozen=True, kw_only=True):
    """What a network called us with, as it wrote it: acknowledged, and not read yet. `person` wrote it, if anybody."""

    platform: str
    update: dict[str, Any]
    person: str = ""


class ChatRuleRecord(JournalRecord, tag="chat", frozen=True, kw_only=True):
    """What an admin set in a chat or thread, by rule; the last one counts. `person`: whose direct chat it is."""

    chat: str
    values: dict[str, str]
    person: str = ""


class ActivityRecord(JournalRecord, tag="activity", frozen=True, kw_only=True):
    """Somebody steered the gateway by a verb or command, looked into a conversation, or was refused it. It stays."""

    what: str
    on: str = ""
    outcome: Literal["done", "refused"] = "done"
    who: str = ""
    place: str = ""


class ProgramCall(JournalRecord, tag="call", frozen=True, kw_only=True):
    """A program called the agent of a key; it stands right behind the message that it became, in the same append.

    `digest` is that of what was sent, so that the same call is known when it comes again. Without a `user` the session
    is this call's own, and goes with it. What the program does not want `stored` is not handed out by the call's id.
    """

    id: str
    key: str
    agent: str
    session_key: str
    digest: str
    user: str = ""
    stored: bool = True


class ShownReply(JournalRecord, tag="shown", frozen=True, kw_only=True):
    """The text of a reply as the hooks left it, for a program that is given it as often as it asks."""

    reply_id: str
    text: str


class UsageRow(msgspec.Struct, frozen=True):
    """What calls of one model used for a person; a hook that caused them, and the session, where there is one."""

    person: str
    usage: Usage
    hook: str = ""
    session_id: str = ""


class RecordedCall(JournalRecord, tag="counted", frozen=True, kw_only=True):
    """One call of a model, as part of the sums of its day; with it somebody was warned of a budget (`warned`)."""

    day: str
    row: UsageRow
    warned: tuple[str, ...] = ()
    id: str = ""  # tells whoever counted it that it is theirs


class DayUsage(JournalRecord, tag="day", frozen=True, kw_only=True):
    """The sums of a day, of all calls that were folded into them; the last record of a day counts. It stays."""

    day: str
    rows: tuple[UsageRow, ...]
    warned: tuple[str, ...] = ()


class UsageCursor(JournalRecord, tag="folded", frozen=True, kw_only=True):
    """The sums hold all calls up to this sequence."""

    upto: int


class PseudonymSalt(JournalRecord, tag="salt", frozen=True, kw_only=True):
    """From what the pseudonyms of those who are forgotten are made; the first one counts for ever."""

    salt: str


class PersonForgotten(JournalRecord, tag="forgotten", frozen=True, kw_only=True):
    """Nothing is here any more of whoever has this pseudonym."""

    pseudonym: str


class MemoryJournal(JournalRecord, tag="memory", frozen=True, kw_only=True):
    """How this journal is called by those who have its notes as files; the first one counts for ever."""

    id: str


class MemoryNote(JournalRecord, tag="note", frozen=True, kw_only=True):
    """Somebody had the agent remember this; `memory` is a digest of who."""

    memory: str
    text: str


class NotesForgotten(JournalRecord, tag="unremembered", frozen=True, kw_only=True):
    """What this memory held before is to be forgotten, wherever it lies."""

    memory: str


class FileRemoval(JournalRecord, tag="removed", frozen=True, kw_only=True):
    """Of these files of conversations nothing is to lie anywhere, nor of what was made of them; each is a digest."""

    files: tuple[str, ...]


class FolderFile(JournalRecord, tag="file", frozen=True, kw_only=True):
    """What lies in a folder that all gateways have, under a path below it; the last one counts.

    Without a SHA-256 it was removed. `stored` is what it is called among those that are kept of the folder, `changed`
    when it was changed, by the clock of whoever did it.
    """

    folder: str
    path: str
    stored: str = ""
    sha256: str = ""
    is_executable: bool = False
    changed: float = 0.0


def _find_kinds(record: type[JournalRecord]) -> tuple[type[JournalRecord], ...]:
    """The kinds of record that there are: those that no other is made of."""
    below = record.__subclasses__()
    return tuple(kind for one in below for kind in _find_kinds(one)) if below else (record,)


RECORD_KINDS = _find_kinds(JournalRecord)


class _RecordVersion(msgspec.Struct):
    v: int = 1


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


def decode_readable(data: bytes) -> JournalRecord | None:
    """The same for who listens or shows; None: a later version of the gateway wrote it, and others see to it."""
    try:
        return decode(data)
    except EngineTooNew:
        return None


async def read_readable(engine: Engine, pattern: str, after: int, limit: int, *, fresh: bool = True) -> list[Record]:
    """As the engine reads, but past what is damaged, which the engine's health names."""
    while True:
        try:
            return await engine.read(pattern, after, limit, fresh=fresh)
        except RecordDamage as damage:
            if damage.before:
                return damage.before
            after = damage.seq


async def read_all(
    engine: Engine, pattern: str, kind: type[RecordT], after: int = 0, *, fresh: bool = True
) -> AsyncIterator[tuple[Record, RecordT]]:
    """Every record of this kind, in order, with what it holds."""
    while page := await read_readable(engine, pattern, after, PAGE, fresh=fresh):
        for found in page:
            if isinstance(kept := decode(found.data), kind):
                yield found, kept
        after = page[-1].seq


async def read_events(engine: Engine) -> AsyncIterator[tuple[Record, EmittedEvent]]:
    """Every event that durable hooks are owed or were, in order: those of conversations, and all others."""
    patterns = (subjects.EVENT_SUBJECTS, subjects.OWED_EVENT_SUBJECTS)
    kinds = [read_all(engine, pattern, EmittedEvent) for pattern in patterns]
    heads = [await anext(kind, None) for kind in kinds]
    while found := [head for head in heads if head]:
        first = min(found, key=lambda head: head[0].seq)
        yield first
        at = heads.index(first)
        heads[at] = await anext(kinds[at], None)


async def read_last(engine: Engine, subject: str, kind: type[RecordT]) -> tuple[int, RecordT | None]:
    """The last record, if it is of this kind, and its sequence; 0 where there is none."""
    last = await engine.last(subject)
    kept = decode(last.data) if last else None
    return last.seq if last else 0, kept if isinstance(kept, kind) else None


async def replace_last(engine: Engine, subject: str, record: JournalRecord, seq: int) -> int:
    """Make it the only record of its subject, whose last one was `seq`; returns its own.

    Raises:
        Conflict: somebody else was faster.
    """
    (written,) = await engine.append(NewRecord(subject, encode(record), expect=seq))
    await engine.purge(subject, written - 1)
    return written


def make_reply_put(
    reply: Reply, session_key: str, turn_id: str, at: float, cause: tuple[str, int] | None = None, person: str = ""
) -> NewRecord:
    """The append that owes somebody a reply, without a limit: it has one when it is sent or given up."""
    outbound = OwedReply(reply=reply, session_key=session_key, turn_id=turn_id, cause=cause, at=at, person=person)
    return put_reply(outbound)


def put_reply(outbound: OwedReply, *, has_arrived: bool = False) -> NewRecord:
    """The append of a reply; one that `has_arrived` with it is not sent."""
    subject = subjects.reply_subject_of(outbound.reply.address, outbound.session_key, has_arrived=has_arrived)
    return NewRecord(subject, encode(outbound), ttl=TRAFFIC_TTL if has_arrived else None)


def make_event_put(event: EmittedEvent, msg_id: str | None = None) -> NewRecord:
    """The append that owes durable hooks an event."""
    return NewRecord(subjects.event_subject_of(event.name), encode(event), msg_id=msg_id)


def make_owed_event_put(name: str, data: bytes, session_key: str) -> NewRecord:
    """The append that owes durable hooks an event of a conversation, of which these are the bytes."""
    return NewRecord(subjects.owed_event_subject_of(name, session_key), data)

"""The journal's records, versioned.

`gw.turn.<conv>` holds one chain for each session key: claims, steps and ends of turns, and changes to the session
itself, each record appended with the sequence of the one before. Folding the chain from its start gives the session; a
`SessionSnapshot` (on `gw.sum.<conv>`) is only a shortcut. The pending event of a durable hook is in the same append as
the fact. A record is one JSON object with its kind and its version; an older version stays readable for ever, a newer
one is refused.
"""

from collections.abc import AsyncIterator, Callable
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
from gateway.records.access import KnownName as KnownName
from gateway.records.access import Login as Login
from gateway.records.access import LoginLink as LoginLink
from gateway.records.access import LoginState as LoginState
from gateway.records.access import PairingInvitation as PairingInvitation
from gateway.records.access import PairingState as PairingState
from gateway.records.access import PairingUser as PairingUser
from gateway.records.access import ProgramKey as ProgramKey
from gateway.records.access import ProgramKeyState as ProgramKeyState
from gateway.records.figures import FigureDay as FigureDay
from gateway.records.figures import HalfHour as HalfHour
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
TRAFFIC_TTL = 14 * DAY  # messages in, replies out and their delivery, from when they are settled
NEWEST = (1 << 63) - 1  # no sequence is higher
SENT_TTL = 21 * DAY  # the delivery of a place's last reply: longer than the reply, which would be sent again
EVENT_TTL = 7 * DAY
PAGE_TTL = 90 * DAY  # messages in the page's chat
VOICE_MARK = ":voice"  # the end of the id of a spoken reply, after the id of the reply with its text
PAGE = 500  # records in one read


class InboundMessage(JournalRecord, tag="in", frozen=True, kw_only=True):
    """An accepted message: from here on the gateway must answer it."""

    session_key: str
    message: Message


class LaneWakeup(JournalRecord, tag="bell", frozen=True, kw_only=True):
    """A wakeup of a session's lane for anything but a message: an answer arrived."""

    session_key: str


class Claim(OpenTurnRecord, tag="claim", frozen=True, kw_only=True):
    """A node takes the messages after the last end, up to the inbound sequence `on`; `attempt` counts tries.

    `deaths`: how often the process had died in this turn, by the marks of its steps. `edits`: the edits that the
    messages contain, wherever they are. `address`: the source of the last message, if the session did not know it.
    """

    by: str
    on: int
    attempt: int = 1
    deaths: int = 0
    edits: tuple[int, ...] = ()
    address: Address | None = None


class InterimReply(OpenTurnRecord, tag="said", frozen=True, kw_only=True):
    """A reply was appended during the turn; when the turn runs again, the reply is not sent again."""

    reply_id: str


class ClaimReleased(OpenTurnRecord, tag="released", frozen=True, kw_only=True):
    """The claim is returned in good order: by a restart, and then the next run counts no new try, or as `failed`."""

    failed: bool = False


class QuestionsAsked(OpenTurnRecord, tag="asked", frozen=True, kw_only=True):
    """The turn waits for a person: questions by name. Its claim ends until the answers arrive.

    `calls`, by the question's name: the tool calls that an approval allows; a question without any is not an approval.
    """

    questions: dict[str, str]
    until: float
    calls: dict[str, tuple[AskedCall, ...]] = msgspec.field(default_factory=dict)


class QuestionAnswered(OpenTurnRecord, tag="answered", frozen=True, kw_only=True):
    """A person's answer to one question (None: no answer in time); `by_name` is the person's name there."""

    name: str
    answer: Any
    by: str = ""
    by_name: str = ""


class DecisionRecord(OpenTurnRecord, tag="decided", frozen=True, kw_only=True):
    """A hook's decision about an event of the turn: denied, ended, retried, changed, or asked; with its reason."""

    event_id: str
    event: str
    hook: str
    decision: str
    reason: str = ""
    call_id: str = ""
    hop: int = 0


class ApprovalRequest(JournalRecord, tag="approval", frozen=True, kw_only=True):
    """The question `name` of a turn is an open approval; the record goes once its message in the chat is closed.

    `mark` is the value of its buttons. `is_own` is False if other people than the one who asks decide; `is_attended` is
    False if no person waits for the result.
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

    `entries` are what the turn adds to the transcript, `people` the authors of the messages it answers, `pieces` map
    the entries to messages (older versions did not write these two); `bag` is the session's bag if it changed.
    `over_budget`: the budget stopped the turn. `answer` is set if no record of its own has it.

    Two statuses end the chain as it was: `forgotten`, and `shortened`, after which everything that stays is written
    again. `is_partial`: only some turns are forgotten, and the session's messages and replies stay; `edits`: the edits
    behind `upto` that those turns contain.
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
    """The state that a session starts with, if it is resumed, branched or compressed."""

    entries: tuple[Entry, ...] = ()
    turns: tuple[int, ...] = ()  # the number of entries of each turn
    speakers: tuple[tuple[str, ...], ...] = ()  # the authors of the messages that each turn answered
    pieces: tuple[tuple[MessagePiece, ...], ...] = ()  # the pieces of each turn by message
    bag: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    usage: Usage = Usage()


class SessionOpened(TurnRecord, tag="opened", frozen=True, kw_only=True):
    """A session starts under this key: the first one, a new one after a reset, or an old one that is resumed.

    The record is complete: `carried` holds the state it starts with, never a reference that could be forgotten.
    """

    session_id: str
    session_key: str = ""
    reason: str = "first"
    previous: str = ""
    platform: str = ""
    user_id: str = ""
    address: Address | None = None  # the source of its last message, if older than this record
    origin: str = ""  # the session of `carried`
    began: float = 0.0  # the session's start, if older than this record
    carried: InitialState | None = None


class SettingChanged(TurnRecord, tag="changed", frozen=True, kw_only=True):
    """A setting of the session (`model`, `title`, ...); None restores the default."""

    name: str
    value: Any


class TurnsUndone(TurnRecord, tag="undone", frozen=True, kw_only=True):
    """The last `turns` turns of the transcript no longer count."""

    turns: int = 1


class SessionSnapshot(JournalRecord, tag="summary", frozen=True, kw_only=True):
    """The session as folded up to the sequence `upto`, a start for further reading. Always dispensable.

    `shape` is the version of the state; a reader with another one ignores the snapshot.
    """

    upto: int
    shape: int
    state: msgspec.Raw


class OwedReply(JournalRecord, tag="out", frozen=True, kw_only=True):
    """A pending reply, appended together with the end (or the step) that it belongs to."""

    reply: Reply
    session_key: str
    turn_id: str = ""
    cause: tuple[str, int] | None = None  # the cause of the message that it answers
    person: str = ""  # the person it answers, as `telegram:1002`, if it belongs to a turn


class ShownMessage(JournalRecord, tag="page", frozen=True, kw_only=True):
    """A message or a reply in the page's chat; the last record of an id counts."""

    message: Message | None = None
    reply: Reply | None = None


class SendRecord(JournalRecord, frozen=True, kw_only=True):
    """The base of all records of a send journal: part `part` of the reply with the sequence `out`.

    `out` is 0 for a stream, whose reply is not written yet. The last record of a place's send journal is enough to
    continue: everything below `out` is settled, and `message_ids` has the network's own ids of each part so far.
    `settled` occurs in a journal of 0.1.0 with several shards; a reader that finds it stops.
    """

    out: int
    reply_id: str = ""
    part: int = 0
    message_ids: tuple[tuple[str, ...], ...] = ()
    settled: list[int] | msgspec.UnsetType = msgspec.UNSET


class SendIntent(SendRecord, tag="intent", frozen=True, kw_only=True):
    """A record before the call that sends a part: if no `SendSucceeded` follows, the outcome is unknown."""

    attempt: int = 1


class SendSucceeded(SendRecord, tag="sent", frozen=True, kw_only=True):
    """The network has the part, and with `last` the whole reply."""

    attempts: int = 1

    last: bool = True


class SendFailed(SendRecord, tag="failed", frozen=True, kw_only=True):
    """A part failed for good, or (`permanent` False) will be retried at `retry_at`.

    `strikes`: failed replies in a row.
    """

    error: str
    attempts: int = 1

    permanent: bool = True
    retry_at: float = 0.0
    strikes: int = 0


class DeadLetterRecord(JournalRecord, tag="dead", frozen=True, kw_only=True):
    """A dead letter: a turn, or a hook's event, that failed for good; kept until a person clears it."""

    what: str
    reason: str
    attempts: int
    subject: str
    seq: int
    data: bytes = b""


class CursorRecord(JournalRecord, tag="cursor", frozen=True, kw_only=True):
    """The position up to which a network has been read."""

    platform: str
    value: dict[str, Any]


class PendingUpdate(JournalRecord, tag="update", frozen=True, kw_only=True):
    """A network's webhook call as received: confirmed, and not processed yet. `person` wrote it, if a person did."""

    platform: str
    update: dict[str, Any]
    person: str = ""


class ChatRuleRecord(JournalRecord, tag="chat", frozen=True, kw_only=True):
    """An admin's settings for a chat or thread, by rule; the last record counts.

    `person`: the person of a direct chat.
    """

    chat: str
    values: dict[str, str]
    person: str = ""


class ActivityRecord(JournalRecord, tag="activity", frozen=True, kw_only=True):
    """An entry of the activity log: a verb or command, a look into a conversation, or a denial. It is never removed."""

    what: str
    on: str = ""
    outcome: Literal["done", "refused"] = "done"
    who: str = ""
    place: str = ""


class ProgramCall(JournalRecord, tag="call", frozen=True, kw_only=True):
    """A program's call of a key's agent, in the same append as its message and right after it.

    `digest` is the hash of the request, to recognize the same call again. Without a `user` the session belongs to this
    call, and is removed with it. A call that is not `stored` cannot be read later by its id.
    """

    id: str
    key: str
    agent: str
    session_key: str
    digest: str
    user: str = ""
    stored: bool = True


class ShownReply(JournalRecord, tag="shown", frozen=True, kw_only=True):
    """The text of a reply after the hooks, for a program that may read it several times."""

    reply_id: str
    text: str


class UsageRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The usage of one model by a person; with the hook that caused it, and the session, if any."""

    person: str
    usage: Usage
    hook: str = ""
    session_id: str = ""


class RecordedCall(JournalRecord, tag="counted", frozen=True, kw_only=True):
    """One model call, as part of the sums of its day; `warned` names the people who got a budget warning with it."""

    day: str
    row: UsageRow
    warned: tuple[str, ...] = ()
    id: str = ""  # tells its writer that it is theirs


class DayUsage(JournalRecord, tag="day", frozen=True, kw_only=True):
    """The sums of a day, of all calls folded into them; the last record of a day counts. It is never removed."""

    day: str
    rows: tuple[UsageRow, ...]
    warned: tuple[str, ...] = ()


class UsageCursor(JournalRecord, tag="folded", frozen=True, kw_only=True):
    """The sums contain all calls up to this sequence."""

    upto: int


class PseudonymSalt(JournalRecord, tag="salt", frozen=True, kw_only=True):
    """The salt of the pseudonyms of forgotten people; the first record counts for ever."""

    salt: str


class PersonForgotten(JournalRecord, tag="forgotten", frozen=True, kw_only=True):
    """The person with this pseudonym was forgotten."""

    pseudonym: str


class MemoryJournal(JournalRecord, tag="memory", frozen=True, kw_only=True):
    """The id of this journal for gateways that have its notes as files; the first record counts for ever."""

    id: str


class MemoryNote(JournalRecord, tag="note", frozen=True, kw_only=True):
    """A note that a person asked the agent to remember; `memory` is a digest of the person."""

    memory: str
    text: str


class NotesForgotten(JournalRecord, tag="unremembered", frozen=True, kw_only=True):
    """The earlier notes of this memory must be forgotten on every gateway."""

    memory: str


class FileRemoval(JournalRecord, tag="removed", frozen=True, kw_only=True):
    """These files of conversations, and everything made of them, must be removed everywhere; each name is a digest."""

    files: tuple[str, ...]


class FolderFile(JournalRecord, tag="file", frozen=True, kw_only=True):
    """A file of a folder that all gateways share, at a path below it; the last record counts.

    Without a SHA-256 the file was removed. `stored` is its key in the file store, `changed` the time of the change, by
    the clock of the gateway that made it.
    """

    folder: str
    path: str
    stored: str = ""
    sha256: str = ""
    is_executable: bool = False
    changed: float = 0.0


def _find_kinds(record: type[JournalRecord]) -> tuple[type[JournalRecord], ...]:
    """Return the kinds of record, without those that are only a base."""
    below = record.__subclasses__()
    return tuple(kind for one in below for kind in _find_kinds(one)) if below else (record,)


RECORD_KINDS = _find_kinds(JournalRecord)


class _RecordVersion(msgspec.Struct):
    v: int = 1


_decoder: msgspec.json.Decoder[JournalRecord] = msgspec.json.Decoder(reduce(or_, RECORD_KINDS))
_version_decoder = msgspec.json.Decoder(_RecordVersion)


encode: Callable[[JournalRecord], bytes] = msgspec.json.Encoder().encode


def decode(data: bytes) -> JournalRecord:
    """Decode a record.

    Raises:
        EngineTooNew: a later version of the gateway wrote it.
    """
    if (v := _version_decoder.decode(data).v) > VERSION:
        raise EngineTooNew(
            f"the journal holds a record of version {v}; this gateway reads up to {VERSION}: upgrade hermes-gateway"
        )
    return _decoder.decode(data)


def decode_readable(data: bytes) -> JournalRecord | None:
    """Decode a record for a reader that may skip it; None if a later version of the gateway wrote it."""
    try:
        return decode(data)
    except EngineTooNew:
        return None


async def read_readable(engine: Engine, pattern: str, after: int, limit: int, *, fresh: bool = True) -> list[Record]:
    """Read as the engine does, but skip damaged records; the engine's health lists those."""
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
    """Yield every record of this kind, in order, decoded."""
    while page := await read_readable(engine, pattern, after, PAGE, fresh=fresh):
        for found in page:
            if isinstance(kept := decode(found.data), kind):
                yield found, kept
        after = page[-1].seq


async def read_last_records(engine: Engine, pattern: str, before: int, most: int) -> list[Record]:
    """Return the last records that match before a sequence, at most so many, the oldest first."""
    found, reach = list[Record](), most
    while before > 1 and len(found) < most:
        at = after = max(0, before - 1 - reach)
        older = list[Record]()
        while at < before - 1 and (page := await read_readable(engine, pattern, at, PAGE)):
            older += page
            at = page[-1].seq
        found = [one for one in older if one.seq < before] + found
        before, reach = after + 1, reach * 4
    return found[-most:]


async def read_answer(engine: Engine, session_key: str, turn_id: str, after: int, at: Address) -> str:
    """Return the texts of a turn's replies there, without its questions: an end and its replies are one append."""
    found = read_all(engine, subjects.reply_pattern_of_session(session_key), OwedReply, after)
    replies = [one.reply async for _, one in found if one.turn_id == turn_id]
    return "\n\n".join(reply.text for reply in replies if not reply.buttons and reply.address == at)


async def purge_record(engine: Engine, record: Record) -> int:
    """Remove this record alone; return 0 if it was gone."""
    return await engine.purge(record.subject, record.seq, after=record.seq - 1)


async def read_events(engine: Engine) -> AsyncIterator[tuple[Record, EmittedEvent]]:
    """Yield every event for durable hooks, pending or not, in order: those of conversations, and all others."""
    patterns = (subjects.EVENT_SUBJECTS, subjects.OWED_EVENT_SUBJECTS)
    kinds = [read_all(engine, pattern, EmittedEvent) for pattern in patterns]
    heads = [await anext(kind, None) for kind in kinds]
    while found := [head for head in heads if head]:
        first = min(found, key=lambda head: head[0].seq)
        yield first
        at = heads.index(first)
        heads[at] = await anext(kinds[at], None)


async def read_last(engine: Engine, subject: str, kind: type[RecordT]) -> tuple[int, RecordT | None]:
    """Return the last record's sequence (0 if none) and its value, if it is of this kind."""
    last = await engine.last(subject)
    kept = decode(last.data) if last else None
    return last.seq if last else 0, kept if isinstance(kept, kind) else None


async def replace_last(engine: Engine, subject: str, record: JournalRecord, seq: int) -> int:
    """Write the only record of a subject, whose last one was `seq`; return the new sequence.

    Raises:
        Conflict: another process was faster.
    """
    (written,) = await engine.append(NewRecord(subject, encode(record), expect=seq))
    await engine.purge(subject, written - 1)
    return written


def make_reply_put(
    reply: Reply, session_key: str, turn_id: str, at: float, cause: tuple[str, int] | None = None, person: str = ""
) -> NewRecord:
    """Make a pending reply, without an expiry: it gets one when it is sent or cancelled."""
    outbound = OwedReply(reply=reply, session_key=session_key, turn_id=turn_id, cause=cause, at=at, person=person)
    return put_reply(outbound)


def put_reply(outbound: OwedReply, *, has_arrived: bool = False) -> NewRecord:
    """Make the append of a reply; one that `has_arrived` is not sent."""
    subject = subjects.reply_subject_of(outbound.reply.address, outbound.session_key, has_arrived=has_arrived)
    return NewRecord(subject, encode(outbound), ttl=TRAFFIC_TTL if has_arrived else None)


def make_event_put(event: EmittedEvent, msg_id: str | None = None) -> NewRecord:
    """Make the append of an event for durable hooks."""
    return NewRecord(subjects.event_subject_of(event.name), encode(event), msg_id=msg_id)


def make_owed_event_put(name: str, data: bytes, session_key: str) -> NewRecord:
    """Make the append of a conversation's event for durable hooks, of its encoded bytes."""
    return NewRecord(subjects.owed_event_subject_of(name, session_key), data)

"""A session: the fold of its chain of records.

The chain is the truth, and the session is its fold. `apply_record` is a pure function of a state and one record: the
same records always give the same session. A claim is a record by which a node takes a turn; while its claim is the last
in the chain, only this node may run the turn. The start of another session, or the turn's end, ends the claim.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from gateway.events import AskedCall
from gateway.messages.message import Address
from gateway.messages.pieces import MessageName, MessagePiece, delete_pieces
from gateway.messages.transcript import SUMMARY_KEY, Entry, Usage
from gateway.records import records

STATE_VERSION = 7  # the version of a stored session; increase it when fields or their meaning change
PREVIOUS_KEPT = 200
DECISIONS_KEPT = 1000
SENDING = "message:sending"  # the event at which hooks may still decide when the turn is over
FIRST_WORDS, READ_FOR_THEM = 60, 400  # characters
ENTRY_WEIGHT = 200  # approximate weight of an entry beside its text


class OpenTurn(msgspec.Struct, frozen=True):
    """A turn without an end: running, waiting for answers, or left by a crash.

    The turn answers the messages up to the inbound sequence `on`, with their `edits`. `by` is the node that runs the
    turn ("": no node), `claimed` is the sequence of its last claim, and `first` of its first claim. `attempt` counts
    the tries, `failures` the tries that ended with an error, and `deaths` the tries in whose code the process died.
    `questions` are the open questions, `asked` are all questions, and `calls` are the tool calls for which they ask
    approval.
    """

    turn_id: str
    on: int
    first: int
    claimed: int
    by: str = ""
    attempt: int = 1
    failures: int = 0
    deaths: int = 0
    steps: tuple[records.Step, ...] = ()
    said: tuple[str, ...] = ()
    questions: Mapping[str, str] = msgspec.field(default_factory=dict)
    asked: Mapping[str, str] = msgspec.field(default_factory=dict)
    calls: Mapping[str, tuple[AskedCall, ...]] = msgspec.field(default_factory=dict)
    answers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    until: float = 0.0
    pauses: int = 0  # how often the turn has waited for answers
    decisions: tuple[records.DecisionRecord, ...] = ()
    edits: tuple[int, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """True if the turn needs an answer before it can continue."""
        return not self.by and bool(self.questions)

    def asks(self, name: str, digest: str = "") -> bool:
        """Return True if the question `name` is open and has this digest, or any if `digest` is ""."""
        return name in self.questions and digest in ("", self.digest_of(name))

    def digest_of(self, name: str) -> str:
        """Return a digest of a question and the tool calls that its approval allows."""
        calls = [[call.digest, *call.changed_by] for call in self.calls.get(name, ())]
        asked = json.dumps([self.turn_id, name, self.questions[name], calls])
        return hashlib.sha256(asked.encode()).hexdigest()


class SessionDecision(msgspec.Struct, frozen=True):
    """A hook's decision, before or at the entry with the number `entry`."""

    entry: int
    hook: str
    event: str
    decision: str
    reason: str


class Session(msgspec.Struct, frozen=True):
    """One conversation under one key, frozen as of the sequence `seq` of its chain (0: the chain has no records)."""

    key: str
    seq: int = 0
    records: int = 0
    session_id: str = ""
    reason: str = ""
    opened: int = 0  # the sequence of the record that started the session
    began: float = 0.0
    previous: tuple[str, ...] = ()
    platform: str = ""
    user_id: str = ""
    address: Address | None = None  # the source of the session's last message
    upto: int = 0
    edits: tuple[int, ...] = ()  # edits behind `upto` that turns contain
    entries: tuple[Entry, ...] = ()
    turns: tuple[int, ...] = ()  # the number of entries of each turn
    speakers: tuple[tuple[str, ...], ...] = ()  # the authors of the messages that each turn answered; (): not recorded
    pieces: tuple[tuple[MessagePiece, ...], ...] = ()  # the pieces of each turn by message; (): not recorded
    bag: Mapping[str, Any] = msgspec.field(default_factory=dict)
    settings: Mapping[str, Any] = msgspec.field(default_factory=dict)
    usage: Usage = msgspec.field(default_factory=Usage)
    turn: OpenTurn | None = None
    last_active: float = 0.0
    ahead: float = 0.0  # by how many seconds the wall clock was ahead of the journal's at `last_active`
    weight: int = 0
    decisions: tuple[SessionDecision, ...] = ()  # the last decisions of hooks
    deleted: tuple[MessageName, ...] = ()  # messages deleted by their authors, anywhere in the chain

    @property
    def title(self) -> str:
        return str(self.settings.get("title") or "")

    @property
    def first_words(self) -> str:
        """The label of a session without a title."""
        return cut_words(next((entry.content for entry in self.entries if entry.role == "user"), ""))

    @property
    def model(self) -> str:
        return str(self.settings.get("model") or "")

    @property
    def replaced_id(self) -> str:
        """The id of the session that this session replaced; "" for the first session of its key."""
        return self.previous[-1] if self.previous else ""

    @property
    def is_waiting(self) -> bool:
        return self.turn is not None and self.turn.is_waiting


def apply_record(state: Session, kept: records.JournalRecord, seq: int, ts: float = 0.0) -> Session:
    """Return the state after a decoded record. A record of a kind that chains do not have changes only the position."""
    moved = replace(state, seq=seq, records=state.records + 1)
    change = CHANGES.get(type(kept))
    if change is None:
        return moved
    at, ahead = kept.at or ts, getattr(kept, "ahead", 0.0)
    after = change(moved, kept, at)
    return replace(after, ahead=ahead) if after.last_active == at and after.ahead != ahead else after


def cut_words(text: str) -> str:
    """Return the start of a text, on one line."""
    return " ".join(text[:READ_FOR_THEM].split())[:FIRST_WORDS]


def estimate_weight(entries: tuple[Entry, ...]) -> int:
    return sum(len(entry.content) + ENTRY_WEIGHT for entry in entries)


def _apply_opened(state: Session, kept: records.SessionOpened, at: float) -> Session:
    start = kept.carried or records.InitialState()
    previous = tuple(old for old in (*state.previous, state.session_id) if old and old != kept.session_id)
    return replace(
        state,
        session_id=kept.session_id,
        reason=kept.reason,
        opened=state.seq,
        began=kept.began or at,
        previous=previous[-PREVIOUS_KEPT:],
        platform=kept.platform or state.platform,
        user_id=kept.user_id or state.user_id,
        address=kept.address or state.address,
        turn=None,
        last_active=at,
        weight=estimate_weight(start.entries),
        decisions=(),
        **asdict(start) | {name: getattr(start, name) or ((),) * len(start.turns) for name in ("speakers", "pieces")},
    )


def _apply_claim(state: Session, kept: records.Claim, at: float) -> Session:
    if state.turn and state.turn.turn_id == kept.turn_id:
        turn = replace(state.turn, on=kept.on, claimed=state.seq, questions={})
    else:
        turn = OpenTurn(kept.turn_id, kept.on, state.seq, state.seq)
    turn = replace(turn, by=kept.by, attempt=kept.attempt, deaths=kept.deaths, edits=kept.edits)
    return replace(state, turn=turn, address=kept.address or state.address, last_active=at)


def _change_turn(change: Callable[[OpenTurn, Any], OpenTurn]) -> Callable[[Session, Any, float], Session]:
    """Make the function that applies a record to the turn it names; if that turn is not open, the state stays."""

    def apply(state: Session, kept: Any, _at: float) -> Session:
        turn = state.turn
        if turn is None or turn.turn_id != records.turn_of(kept.turn_id):
            return state
        return replace(state, turn=change(turn, kept))

    return apply


def _wait_for_answers(turn: OpenTurn, kept: records.QuestionsAsked) -> OpenTurn:
    answers = {name: answer for name, answer in turn.answers.items() if name not in kept.questions}
    asked, calls = {**turn.asked, **kept.questions}, {**turn.calls, **kept.calls}
    counts_anew = replace(turn, by="", attempt=0, failures=0, deaths=0)
    waiting = replace(counts_anew, questions=kept.questions, asked=asked, calls=calls)
    return replace(waiting, answers=answers, until=kept.until, pauses=turn.pauses + 1)


def _release_claim(turn: OpenTurn, kept: records.ClaimReleased) -> OpenTurn:
    if kept.failed:
        return replace(turn, by="", failures=turn.failures + 1)
    return replace(turn, by="", attempt=turn.attempt - 1)


def _apply_answered(state: Session, kept: records.QuestionAnswered, at: float) -> Session:
    turn = state.turn
    if turn is None or turn.turn_id != kept.turn_id or kept.name not in turn.questions:
        return state
    questions = {name: prompt for name, prompt in turn.questions.items() if name != kept.name}
    answered = replace(turn, questions=questions, answers={**turn.answers, kept.name: kept.answer})
    return replace(state, turn=answered, last_active=at)


def _apply_done(state: Session, kept: records.TurnEnded, at: float) -> Session:
    upto = max(state.upto, kept.upto)
    if kept.status in ("forgotten", "shortened"):
        state = Session(state.key, seq=state.seq, records=state.records, upto=upto, last_active=at)
        return replace(state, edits=kept.edits)
    taken = state.turn.edits if state.turn and state.turn.on <= upto else ()  # otherwise the turn starts again
    entries, pieces = kept.entries, kept.pieces
    if state.deleted:  # a message may have been deleted while the turn ran
        entries, pieces = delete_pieces(entries, pieces, state.deleted)
    return replace(
        state,
        upto=upto,
        edits=tuple(seq for seq in (*state.edits, *taken) if seq > upto),
        entries=state.entries + entries,
        turns=(*state.turns, len(kept.entries)) if kept.entries else state.turns,
        pieces=(*state.pieces, pieces) if kept.entries else state.pieces,
        speakers=(*state.speakers, kept.people) if kept.entries else state.speakers,
        bag=state.bag if kept.bag is None else kept.bag,
        usage=state.usage + kept.usage,
        turn=None,
        last_active=at,
        weight=state.weight + estimate_weight(entries),
        decisions=(*state.decisions, *_place_decisions(state, kept.entries))[-DECISIONS_KEPT:],
    )


def _place_decisions(state: Session, entries: tuple[Entry, ...]) -> Iterator[SessionDecision]:
    """Yield each decision with its entry: the result of its call, the answer of its hop, or the entry before."""
    answers = [at for at, entry in enumerate(entries) if entry.role == "assistant"]
    results = {entry.call_id: at for at, entry in enumerate(entries) if entry.role == "tool"}
    at = 0
    for one in state.turn.decisions if state.turn else ():
        if one.event == "agent:end":
            at = max(len(entries) - 1, 0)
        elif one.call_id in results:
            at = results[one.call_id]
        elif 0 < one.hop <= len(answers):
            at = answers[one.hop - 1]
        yield SessionDecision(len(state.entries) + at, one.hook, one.event, one.decision, one.reason)


def _add_decision(state: Session, kept: records.DecisionRecord, _at: float) -> Session:
    """Add a decision to its turn; if the turn has ended, place a decision about a reply after all entries so far."""
    turn = state.turn
    if turn is not None and turn.turn_id == records.turn_of(kept.turn_id):
        return replace(state, turn=replace(turn, decisions=(*turn.decisions, kept)))
    late = SessionDecision(len(state.entries), kept.hook, kept.event, kept.decision, kept.reason)
    if kept.event != SENDING or late in state.decisions:
        return state
    return replace(state, decisions=(*state.decisions, late)[-DECISIONS_KEPT:])


def _apply_changed(state: Session, kept: records.SettingChanged, _at: float) -> Session:
    settings = {name: value for name, value in state.settings.items() if name != kept.name}
    return replace(state, settings=settings if kept.value is None else {**settings, kept.name: kept.value})


def _apply_undone(state: Session, kept: records.TurnsUndone, at: float) -> Session:
    rest = state.turns[: max(0, len(state.turns) - kept.turns)]
    entries = state.entries[: sum(rest)]
    decisions = tuple(one for one in state.decisions if one.entry < len(entries))
    changed = {"turns": rest, "speakers": state.speakers[: len(rest)], "entries": entries, "decisions": decisions}
    changed["pieces"] = state.pieces[: len(rest)]
    return replace(state, **changed, last_active=at, weight=estimate_weight(entries))


def _apply_deleted(state: Session, kept: records.MessageDeleted, _at: float) -> Session:
    after = delete_words(state, (kept.name,))
    return replace(after, deleted=(*(one for one in state.deleted if one != kept.name), kept.name))


def delete_words(session: Session, gone: Collection[MessageName]) -> Session:
    """Return the session without the texts of these messages, and without a summary that may quote them."""
    entries, pieces, first, last = list[Entry](), [], 0, -1
    for size, found in zip(session.turns, session.pieces, strict=True):
        turn = session.entries[first : first + size]
        if any(one.name in gone for one in found):
            turn, found = delete_pieces(turn, found, gone)
            last = first if last < 0 else last
        entries += turn
        pieces.append(found)
        first += size
    if last < 0:
        return session
    bag, known = session.bag, session.bag.get(SUMMARY_KEY)
    if isinstance(known, Mapping) and known.get("upto", 0) > last:
        bag = {name: value for name, value in bag.items() if name != SUMMARY_KEY}
    kept = tuple(entries)
    return replace(session, entries=kept, pieces=tuple(pieces), bag=bag, weight=estimate_weight(kept))


def find_words(session: Session, name: MessageName, by: str) -> str:
    """Return the text of a message in the conversation; "" if the conversation does not have the message."""
    first = len(session.entries)
    for size, pieces in zip(reversed(session.turns), reversed(session.pieces), strict=True):
        first -= size
        for piece in pieces:
            if piece.name == name and piece.by == by and 0 <= piece.entry < size:
                content = session.entries[first + piece.entry].content
                begin, end = piece.spans[0] if piece.spans else (0, len(content))
                return content[begin:end]
    return ""


_add_step = _change_turn(lambda turn, kept: replace(turn, steps=(*turn.steps, kept)))

CHANGES: Mapping[type, Callable[[Session, Any, float], Session]] = {
    records.SessionOpened: _apply_opened,
    records.Claim: _apply_claim,
    records.LlmStep: _add_step,
    records.ToolStarted: _add_step,
    records.ToolFinished: _add_step,
    records.DecisionRecord: _add_decision,
    records.InterimReply: _change_turn(lambda turn, kept: replace(turn, said=(*turn.said, kept.reply_id))),
    records.ClaimReleased: _change_turn(_release_claim),
    records.QuestionsAsked: _change_turn(_wait_for_answers),
    records.QuestionAnswered: _apply_answered,
    records.TurnEnded: _apply_done,
    records.MessageDeleted: _apply_deleted,
    records.SettingChanged: _apply_changed,
    records.TurnsUndone: _apply_undone,
}

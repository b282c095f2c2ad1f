"""Calls of programs: written to the journal first, answered by a turn, and found again by their ids.

A call is a message of the platform `api`, from `KEY:USER` or, without a user, from `KEY`; its answer is the turn's
replies after the hooks. With a user it belongs to the session `api:KEY:USER`; without one to a session of its own,
which starts with the program's history, and is forgotten a day later.

The message, the call and the history are one append. So a call that is repeated under its id, even after a crash, finds
itself in the journal, and gets the same answer.
"""

import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol, TypeAlias

import anyio
import msgspec
from msgspec.structs import replace

from gateway.access.access_control import API
from gateway.engine.failure_watch import FailureWatch
from gateway.engine.interface import Engine, NewRecord, Record, Tail
from gateway.errors import Conflict, Duplicate, EngineError, GatewayError
from gateway.messages.message import Address, Message, Receipt, Reply
from gateway.messages.transcript import Entry, Usage
from gateway.outbox.interface import JournalTransport
from gateway.outbox.send_journal import read_position
from gateway.records import records, subjects
from gateway.records.records import ProgramCall, ProgramKey
from gateway.sessions.removal import forget_sessions
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.sessions.transitions import begin_session
from gateway.web.openai.error import CallRefusal, refuse_field

log = logging.getLogger(__name__)

KEPT_SECONDS = records.DAY
SWEEP_PAUSE = 600.0
SOON = "5"  # seconds
STOPPING = "the gateway stops; call again under the same Idempotency-Key"
TOO_FAST = "too many calls in a minute: access.rate"
FAILED = ("failed", "expired", "forgotten", "shortened")
REUSED = "this Idempotency-Key was used for another call"

Interrupt: TypeAlias = Callable[[str], Awaitable[Any]]


class ReceiveCall(Protocol):
    """The way in for a message, with records for the same append."""

    async def __call__(self, message: Message, *extra: NewRecord) -> Receipt: ...


class NewCall(NamedTuple):
    """A program's request. `is_named`: the program chose the id, and so may repeat the call."""

    id: str
    key: ProgramKey
    text: str
    digest: str
    history: tuple[Entry, ...] = ()
    user: str = ""
    stored: bool = True
    is_named: bool = False


class CallAnswer(NamedTuple):
    """The answer; `status` is the turn's."""

    text: str
    status: str = "command"
    usage: Usage = Usage()
    is_withheld: bool = False
    is_over_budget: bool = False  # before the model was called at all

    @property
    def is_failed(self) -> bool:
        """True if the agent gave no answer."""
        return self.status in FAILED


class CallTransport(JournalTransport):
    """The sending end of the platform: it stores a reply after the hooks, for as long as a program may ask for it.

    A reply that is sent again, because its outcome is unknown, stays the same.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(API)
        self._engine = engine

    def list_shown(self, _reply: Reply) -> None:
        """Do nothing: the watcher of a call checks how far its answer was sent."""

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        subject = subjects.session_subject_of("shown", key_of_place(reply.address))
        kept = records.encode(records.ShownReply(reply_id=reply.id, text=reply.text))
        try:
            await self._engine.append(NewRecord(subject, kept, msg_id=f"shown:{reply.id}", ttl=records.TRAFFIC_TTL))
        except Duplicate:
            log.debug("reply %s was delivered before", reply.id)
        return (reply.id,)


class ProgramCalls:
    """The calls of programs: it starts new ones, and finds earlier ones."""

    def __init__(self, engine: Engine, sessions: SessionRepository, receive: ReceiveCall, interrupt: Interrupt) -> None:
        self._engine = engine
        self._sessions = sessions
        self._receive = receive
        self._interrupt = interrupt
        self._failure = FailureWatch(engine)

    async def begin(self, asked: NewCall) -> "AnswerWatcher":
        """Write the call to the journal, or return the earlier one with its id.

        Raises:
            CallRefusal: the call was not accepted.
            GatewayError: the journal takes no appends.
        """
        if asked.is_named and (before := await self._find_same(asked)):
            return before
        call = ProgramCall(
            id=asked.id,
            key=asked.key.name,
            agent=asked.key.agent,
            session_key=session_key_of_call(asked.key.name, asked.user, asked.id),
            digest=asked.digest,
            user=asked.user,
            stored=asked.stored,
            at=self._sessions.now(),
        )
        watcher = AnswerWatcher(self._engine, call, await self._listen(call))
        message = self._make_message(asked, call)
        try:
            with self._failure.watching():
                receipt = await self._receive(message, *self._make_records(asked, call, message))
        except Conflict:
            if before := await self._find_same(asked):
                return before
            raise
        match receipt.decision:
            case "too_fast":
                raise CallRefusal(HTTPStatus.TOO_MANY_REQUESTS, TOO_FAST, Retry_After=SOON)
            case "stranger" | "forbidden":
                raise CallRefusal(HTTPStatus.UNAUTHORIZED, "this key may not speak to the agent any more")
        watcher.seq = receipt.seq
        watcher.settled = receipt.settled
        return watcher

    async def find(self, key: ProgramKey, call_id: str) -> "AnswerWatcher | None":
        """Find the call of this key with this id."""
        for pattern in subjects.call_patterns_of(key.name, call_id):
            async for record, call in records.read_all(self._engine, pattern, ProgramCall):
                return AnswerWatcher(self._engine, call, await self._listen(call), seq=record.seq - 1)
        return None

    async def find_stored(self, key: ProgramKey, call_id: str) -> "AnswerWatcher":
        """Find a call; raises CallRefusal if it is unknown, or if the program did not want it stored."""
        found = await self.find(key, call_id)
        if found is None or not found.call.stored:
            raise CallRefusal(HTTPStatus.NOT_FOUND, f"response {call_id[:60]!r} not found", code="not_found")
        return found

    async def read_history(self, key: ProgramKey, call_id: str, user: str) -> tuple[Entry, ...]:
        """Return the history up to the answer of this call. With a user, the session has it already.

        Raises:
            CallRefusal: the call was not found, has no answer yet, or belongs to another user.
        """
        before = await self.find(key, call_id)
        if before is None or not before.call.stored or before.call.user != user:
            what = f"previous_response_id: response {call_id[:60]!r} not found"
            code = "previous_response_not_found"
            raise CallRefusal(HTTPStatus.NOT_FOUND, what, param="previous_response_id", code=code)
        if await before.find_answer() is None:
            raise refuse_field("previous_response_id", "this one has no answer yet")
        return (await self._sessions.open(before.call.session_key)).entries

    async def forget(self, call: ProgramCall) -> None:
        """Forget a call, as `forget_call` does."""
        await forget_call(self._engine, self._sessions, call)

    async def stop(self, watcher: "AnswerWatcher") -> None:
        """Stop a call that no caller wants; if it has not started and its session is its own, forget it."""
        key = watcher.call.session_key
        if await self._interrupt(key) == "nothing" and not watcher.call.user and not await watcher.has_ended():
            await self.forget(watcher.call)
            await self._interrupt(key)  # it may have started just now

    async def sweep(self) -> None:
        """Forget calls of more than a day ago, until cancelled."""
        while True:
            try:
                if not self._engine.clock.is_held:  # otherwise the host's clock was set, and no record is old
                    await self.sweep_once(self._engine.clock.read() - KEPT_SECONDS)
            except EngineError as error:
                log.info("calls of programs are not tended now: %s", error)
            await anyio.sleep(SWEEP_PAUSE)

    async def sweep_once(self, before: float) -> int:
        """Forget older calls, and return their number."""
        gone = 0
        async for record, call in records.read_all(self._engine, subjects.CALL_SUBJECTS, ProgramCall):
            if record.ts < before:
                await self.forget(call)
                gone += 1
        return gone

    async def _find_same(self, asked: NewCall) -> "AnswerWatcher | None":
        before = await self.find(asked.key, asked.id)
        if before and before.call.digest != asked.digest:
            raise CallRefusal(HTTPStatus.UNPROCESSABLE_ENTITY, REUSED, code="idempotency_key_reused")
        return before

    async def _listen(self, call: ProgramCall) -> Tail:
        return await self._engine.tail(
            subjects.session_subject_of("turn", call.session_key),
            subjects.delta_subject_of(call.session_key),
            subjects.send_subject_of(subjects.place_of(address_of_call(call))),
        )

    def _make_message(self, asked: NewCall, call: ProgramCall) -> Message:
        return Message(
            uuid.uuid4().hex,
            address_of_call(call),
            person_of_call(call),
            asked.text,
            asked.user or asked.key.name,
            kind="call",
            session=call.session_key,
            sent_at=self._engine.clock.latest(),
        )

    def _make_records(self, asked: NewCall, call: ProgramCall, message: Message) -> list[NewRecord]:
        """Make the call's records. The call comes first: `find` takes the record before it for its message."""
        subject = subjects.call_subject_of(asked.key.name, asked.id, call.session_key)
        made = [NewRecord(subject, records.encode(call), expect=0)]
        if not asked.user:
            begun = begin_session(Session(call.session_key), call.at, "call", message=message)
            carried = records.InitialState(entries=asked.history)
            opened = replace(begun, carried=carried, at=call.at, ahead=self._sessions.ahead())
            turns = subjects.session_subject_of("turn", call.session_key)
            made.append(NewRecord(turns, records.encode(opened), expect=0))
        return made


class AnswerWatcher:
    """One call from its journal records on: its pieces while it is answered, and the answer."""

    def __init__(self, engine: Engine, call: ProgramCall, heard: Tail, *, seq: int = 0) -> None:
        self.call = call
        self.seq = seq
        self.settled: str | None = None
        self._engine = engine
        self._failure = FailureWatch(engine)
        self._heard = heard
        self._is_new = not seq
        self._turn_id = ""
        self._early: deque[Record] = deque()  # received, and not yet handled

    async def follow(self) -> AsyncGenerator[str | CallAnswer, None]:
        """Yield pieces of the answer as they are written, then the answer. A repeated call gets it in one piece.

        Raises:
            GatewayError: the journal takes no answer, or the gateway stops.
        """
        if self.settled is not None:
            yield self.settled
            yield CallAnswer(self.settled)
            return
        shown, end = ShownText(), await self._find_end()
        while end is None:
            record = await self._hear()
            if self._heard.dropped:  # a slow reader gets the rest at the end
                end = await self._find_end()
            elif record.seq:
                end = self._note(records.decode_readable(record.data), shown)
            elif piece := self._show(msgspec.json.decode(record.data), shown):
                yield piece
        answer = await self._collect(end)
        if not answer.is_failed and (rest := shown.complete(answer.text)):
            yield rest
        yield answer

    async def wait_answer(self) -> CallAnswer:
        """Wait for the answer; raises GatewayError."""
        async with aclosing(self.follow()) as told:
            pieces = [piece async for piece in told]
        assert isinstance(pieces[-1], CallAnswer)
        return pieces[-1]

    async def wait_begun(self) -> None:
        """Wait until the answer starts, or the turn ends. Records that arrive meanwhile are kept for `follow`.

        Raises:
            GatewayError: the gateway stops.
        """
        turn_id = ""
        while self.settled is None and not self._heard.dropped and not await self.has_ended():
            record = await self._hear_next()
            self._early.append(record)
            if not record.seq:
                if msgspec.json.decode(record.data)["turn_id"] == turn_id:
                    return
                continue
            match records.decode_readable(record.data):
                case records.Claim(on=on) as claim if on == self.seq:
                    turn_id = claim.turn_id
                case records.LlmStep() as step if step.turn_id == turn_id:
                    return

    async def has_ended(self) -> bool:
        return await self._find_end() is not None

    async def find_answer(self) -> CallAnswer | None:
        """Return the answer; None if it does not exist yet."""
        end = await self._find_end()
        return await self._collect(end) if end else None

    def _show(self, delta: dict[str, Any], shown: "ShownText") -> str:
        """Return the text to show of a piece; pieces of the session's other turns have none."""
        return shown.add(delta) if self._is_new and delta["turn_id"] == self._turn_id else ""

    def _note(self, kept: records.JournalRecord | None, shown: "ShownText") -> records.TurnEnded | None:
        """Return the end of the turn, if this record is it."""
        match kept:
            case records.Claim(on=on) if on == self.seq:
                if self._turn_id:  # it is a retry
                    shown.add({"text": "", "void": True})
                self._turn_id = kept.turn_id
            case records.LlmStep() if kept.turn_id == self._turn_id:
                shown.note_step(kept.entry.content)
            case records.TurnEnded(upto=upto) if upto >= self.seq:
                return kept
        return None

    async def _hear(self) -> Record:
        return self._early.popleft() if self._early else await self._hear_next()

    async def _hear_next(self) -> Record:
        with self._failure.watching():
            async for record in self._heard:
                return record
        raise GatewayError(STOPPING)

    async def _find_end(self) -> records.TurnEnded | None:
        where = subjects.session_subject_of("turn", self.call.session_key)
        async for _, kept in records.read_all(self._engine, where, records.TurnEnded, self.seq):
            if kept.upto >= self.seq:
                return kept
        return None

    async def _collect(self, end: records.TurnEnded) -> CallAnswer:
        """Collect the turn's replies, once each is delivered or withheld."""
        key = self.call.session_key
        replies = subjects.reply_pattern_of_session(key)
        found = records.read_all(self._engine, replies, records.OwedReply, self.seq)
        owed = [(record.seq, one.reply.id) async for record, one in found if one.turn_id == end.turn_id]
        place = subjects.place_of(address_of_call(self.call))
        while owed and (await read_position(self._engine, place)).upto < owed[-1][0]:
            await self._hear()
        where = subjects.session_subject_of("shown", key)
        kept = records.read_all(self._engine, where, records.ShownReply, self.seq)
        texts = {one.reply_id: one.text async for _, one in kept}
        said = [texts[reply_id] for _, reply_id in owed if reply_id in texts]
        over = end.over_budget and not end.usage.calls
        withheld = bool(owed) and not said
        return CallAnswer("\n\n".join(said), end.status, end.usage, is_withheld=withheld, is_over_budget=over)


class ShownText(msgspec.Struct, eq=False):
    """The part of an answer that was shown, and the rest.

    A stream can take nothing back. So the model's text before a tool call stays, and so does text that a hook replaces;
    a blank line comes before the next text.
    """

    _shown: str = ""
    _piece: str = ""  # shown since the last break
    _steps: list[str] = []  # complete answers that may not be fully shown
    _is_broken: bool = False

    def add(self, delta: dict[str, Any]) -> str:
        """Return the text to show now."""
        if delta.get("void"):
            self._steps.clear()
            self._break()
        return self._show(str(delta["text"]))

    def note_step(self, text: str) -> None:
        """Note that the model's answer is complete: later text belongs to another one."""
        self._steps.append(text)
        if len(self._piece) >= len(text):
            self._break()

    def complete(self, text: str) -> str:
        """Return the rest of the complete answer."""
        if self._piece and text.startswith(self._piece):
            return self._show(text[len(self._piece) :])
        if self._shown.endswith(text):
            return ""
        self._break()
        return self._show(text)

    def _show(self, text: str) -> str:
        if not text:
            return ""
        gap = "\n\n" if self._is_broken else ""
        self._is_broken = False
        self._piece += text
        self._shown += gap + text
        cut = len(self._steps[0]) - len(self._piece) if self._steps else 1
        if cut <= 0:
            self._break()
        return gap + text

    def _break(self) -> None:
        if self._steps:
            self._steps.pop(0)
        self._piece, self._is_broken = "", bool(self._shown)


async def forget_call(engine: Engine, sessions: SessionRepository, call: ProgramCall) -> None:
    """Forget a call; messages in a user's session stay."""
    if not call.user:  # its session will not continue, so no record of the removal is needed
        await forget_sessions(engine, sessions, call.session_key)
        await engine.purge(subjects.session_subject_of("turn", call.session_key))
    for pattern in subjects.call_patterns_of(call.key, call.id):
        await engine.purge(pattern)


async def forget_calls(engine: Engine, sessions: SessionRepository, key_name: str) -> None:
    """Forget the calls of a deleted key: a new key of its name belongs to another program, which must not find them."""
    async for _, call in records.read_all(engine, subjects.CALL_SUBJECTS, ProgramCall):
        if call.key == key_name:
            await forget_call(engine, sessions, call)


def person_of_call(call: ProgramCall) -> str:
    return f"{call.key}:{call.user}" if call.user else call.key


def address_of_call(call: ProgramCall) -> Address:
    """Return a separate place for each call, so that its replies wait for those of no other."""
    return Address(API, person_of_call(call), thread_id=call.id)


def session_key_of_call(key_name: str, user: str, call_id: str) -> str:
    """Return a session key that no other key's program, and no user, can name."""
    return f"agent:main:{API}:dm:{key_name}:{user}" if user else f"agent:main:{API}:call:{key_name}:{call_id}"


def key_of_place(address: Address) -> str:
    """Return the session key for the place of a call."""
    key_name, _, user = address.chat_id.partition(":")
    return session_key_of_call(key_name, user, address.thread_id)

"""A turn that this node runs, for as long as its claim is the last one in the session's chain.

Theory of operation. A claim is a record of the chain: this node runs this turn, as try number so-and-so. No lock and no
lease protects it: every record of the turn is appended on the condition that the chain still ends where this node last
saw it, so a claim holds exactly until another process appends a record that ends it.

- A node may take the claim if it finds the turn open and no live node running it (`find_next_job`). The lease of a node
  only spares other nodes the try: even if the lease is wrong, the append decides.
- Another append while the turn runs: our append meets a `Conflict`, and this node reads the new records of the chain.
  If they leave the claim valid (a setting, a title), the node repeats the append. After a newer claim, or the session's
  reset or removal, the claim is lost: the node cancels the work before its next side effect, and the work writes
  nothing more.
- A crash: the claim stays in the chain, and the lease expires. The next process claims the turn again, with its
  finished steps. A restarted node has the same node name, so it does not wait for the lease.
- A stop of the process: the node cancels the work and releases the claim, and the try does not count. If the release
  fails or takes more than `settings.release` seconds, the result is the same as after a crash.
- An interrupt (`stop`): the claim cancels `soft`, so that the work can still write a last reply, and after `grace`
  seconds `hard`. The turn ends, and does not count as a failed try.
- Pending events for durable hooks wait in `owed` until the next record of the turn, and one append writes both. So the
  journal has an event if and only if it has the record of what happened. Events that wait when the turn is cut off are
  dropped: the next run fires the same events again, under the same ids, and skips the events that the journal has.
- A step in `held` waits for the next record in the same way. If the only held step is the model's last answer, the
  record of the turn's end contains this step.
- The `usage` of model calls waits in the same way; after a lost claim, an append of its own writes the usage.
- If the journal takes no appends (a full disk), the turn waits and starts no further step, since finished work must be
  recorded.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import anyio
import msgspec

from gateway.engine.interface import Engine, NewRecord, append_in_parts, append_until_written
from gateway.errors import Conflict, Duplicate, EngineError, EngineTooNew
from gateway.hooks.recorder import HookDecision, OwedEvent, OwedEvents
from gateway.lanes.audio import AudioJob
from gateway.lanes.context import LaneContext
from gateway.lanes.edits import is_edit_of
from gateway.lanes.turn import LaneResult
from gateway.messages.message import Address, Message, Reply, cause_of, people_of
from gateway.messages.pieces import add_missing_pieces
from gateway.records import records, subjects
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.usage.turn_usage import TurnUsage, origin_of

LONGEST_REASON, LONGEST_NAME = 500, 200
MOST_EVENTS = 500  # events that one append writes with a record of a turn

log = logging.getLogger(__name__)


class TurnJob(msgspec.Struct, frozen=True):
    """A turn that a lane is about to run. Its `messages` end at the inbound sequence `on`; `attempt` numbers the try.

    `failures` counts earlier tries that ended with an error, and `deaths` earlier tries in whose code the process died.
    `waited` is the time in seconds since the first message came, if the turn runs again. `edits` are the sequences of
    the edits that the messages contain. `audio` lists the files to transcribe first. `is_stopped`: the person said stop
    and wants no answer.
    """

    turn_id: str
    on: int
    attempt: int
    messages: tuple[Message, ...]
    seqs: tuple[int, ...]
    resumed: bool = False
    failures: int = 0
    deaths: int = 0
    waited: float = 0.0
    edits: tuple[int, ...] = ()
    audio: tuple[AudioJob, ...] = ()
    is_stopped: bool = False

    @property
    def person(self) -> str:
        return self.messages[0].sender

    @property
    def address(self) -> Address:
        return self.messages[-1].address

    def is_changed_by(self, seq: int, edit: Message) -> bool:
        """Return True if `edit` changes one of the turn's messages and is not yet part of the turn."""
        is_new = seq > self.on and seq not in self.edits
        return is_new and any(is_edit_of(edit, one) for one in self.messages)


class NewMessage:
    """A message that the journal stores in one append with the claim of its turn.

    `put` is the record of the message, and `extra` are further records of the same append. If no lane of the session
    runs, nothing else waits in the session and a slot is free, a new lane appends message and claim. In every other
    case, and if that append fails, the message is appended alone, and the lane reads it from the journal. The result of
    `seq` is the sequence of the message, or None if the lane has written nothing.
    """

    def __init__(self, message: Message, put: NewRecord, extra: Sequence[NewRecord]) -> None:
        self.message, self.put, self.extra = message, put, extra
        self.seq: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def settle(self, seq: int | None = None) -> None:
        """Set the result of `seq`, unless it has one."""
        if not self.seq.done():
            self.seq.set_result(seq)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Suppress errors of the journal while the lane appends: `accept` then appends the message alone."""
        try:
            yield
        except EngineError:
            if self.seq.done():
                raise
        finally:
            self.settle()


def is_plain(message: Message) -> bool:
    """Return True if the message is a text to answer at once, without audio and without overheard messages."""
    return message.kind == "text" and not (message.due or message.has_audio or message.has_heard)


class TurnClaim:
    """The claim on one turn, and all appends of the turn under this claim."""

    def __init__(self, context: LaneContext, session: Session, job: TurnJob, owed: OwedEvents) -> None:
        assert session.turn
        self.session = session
        self.job = job
        self.owed = owed
        self.usage = TurnUsage(origin_of(job.messages[0], session.session_id))
        self.soft = anyio.CancelScope()  # the work may run in this scope, to write a last reply after an interrupt
        self.hard = anyio.CancelScope()  # around the whole work
        self.is_lost = False
        self.is_corrected = False
        self.shown: dict[str, Reply] = {}  # replies that the chat may already display, by id, without their text
        self.held: list[records.Step] = []
        self.stopped = asyncio.Event()
        self._context = context
        self._claimed = session.turn.claimed
        self._owed: set[str] = set()  # the ids of replies that were sent with steps
        self._one_at_a_time = asyncio.Lock()  # tools run side by side, and each record needs the sequence of the last

    def stop(self) -> None:
        """Interrupt the work, and cancel it if it has not ended after `grace` seconds."""
        self.stopped.set()
        self.soft.cancel()
        self.hard.deadline = min(self.hard.deadline, anyio.current_time() + self._context.settings.grace)

    def correct(self) -> None:
        """Interrupt the work because the author has edited a message of the turn."""
        self.is_corrected = True
        self.stop()

    def show(self, reply: Reply) -> None:
        if reply.id not in self._owed:
            self.shown[reply.id] = reply

    async def record(self, step: records.Step, *replies: Reply) -> None:
        await self._write(step, replies=replies)
        for one in replies:
            self._owed.add(one.id)
            self.shown.pop(one.id, None)

    async def say(self, reply: Reply) -> None:
        if self.session.turn and reply.id in self.session.turn.said:
            return
        await self._write(records.InterimReply(turn_id=self.job.turn_id, reply_id=reply.id), replies=[reply])

    async def commit(self, result: LaneResult) -> None:
        """Append the end of the turn, or its open questions, in one append with its replies, requests and changes."""
        extra, replies = [*map(make_request_put, result.requests)], [*result.replies]
        if not result.questions:
            owed = {reply.id for reply in result.replies}
            replies += [one for one in self.shown.values() if one.id not in owed]
        if result.questions:
            until = self._context.clock() + result.wait
            asked = records.QuestionsAsked(
                turn_id=self.job.turn_id, questions=dict(result.questions), until=until, calls=dict(result.calls)
            )
            await self._write(asked, replies=replies, extra=extra)
        else:
            await self._write(*result.changes, self._end(result), replies=replies, extra=extra)
        self.owed.end()

    async def release(self) -> None:
        """Release the claim, so that the next node counts no new try.

        The release ends after `settings.release` seconds, since the process may be stopping.
        """
        self.owed.end()
        with anyio.move_on_after(self._context.settings.release, shield=True):
            try:
                await self._write(records.ClaimReleased(turn_id=self.job.turn_id))
            except Conflict:
                log.debug("turn %s was taken over before it was released", self.job.turn_id)

    async def take_back(self) -> None:
        """Remove displayed replies of a turn that no longer exists, since its conversation was reset or removed."""
        turn = self.session.turn
        if self.shown and not (turn and turn.turn_id == self.job.turn_id):
            with suppress(EngineError):  # after an error the chat keeps the displayed reply
                await self._context.engine.append(*self._outbound([*self.shown.values()])[0])

    async def fail(self) -> None:
        """Release the claim after a try that ended with an error."""
        await self._write(records.ClaimReleased(turn_id=self.job.turn_id, failed=True))

    async def write_usage(self) -> None:
        """Append the usage that still waits for a record of the turn, in an append of its own."""
        if self.usage.waiting:
            with anyio.move_on_after(self._context.settings.release, shield=True):
                await self.usage.write(self._context.engine)

    def _end(self, result: LaneResult) -> records.TurnEnded:
        return records.TurnEnded(
            upto=self.session.upto if result.is_corrected else self.job.on,
            turn_id=self.job.turn_id,
            status=result.status,
            entries=result.entries,
            people=people_of(self.job.messages),
            pieces=add_missing_pieces(result.pieces, self.job.messages),
            usage=result.usage,
            error=result.error,
            bag=None if result.bag is None else dict(result.bag),
            over_budget=result.over_budget,
            answer=find_last_answer(self.held, result),
        )

    def _outbound(self, replies: Sequence[Reply]) -> tuple[list[NewRecord], list[Callable[[], None]]]:
        """Make the records of replies, and the functions to call if the append of the records delivers all replies."""
        job, at, cause = self.job, self._context.clock(), cause_of(self.job.messages)
        owed = [
            records.OwedReply(
                reply=reply, session_key=self.session.key, turn_id=job.turn_id, at=at, cause=cause, person=job.person
            )
            for reply in replies
        ]
        arrivals = [arrival for one in owed if (arrival := self._context.settings.ports.arrive(one))]
        if len(arrivals) < len(owed):
            return [*map(records.put_reply, owed)], []
        beside = [put for puts, _ in arrivals for put in puts]
        return [*(records.put_reply(one, has_arrived=True) for one in owed), *beside], [tell for _, tell in arrivals]

    async def _write(
        self, *kept: records.TurnRecord, replies: Sequence[Reply] = (), extra: Sequence[NewRecord] = ()
    ) -> None:
        """Append the records with the events that wait now; while the journal takes no appends, no events are added."""
        async with self._one_at_a_time:
            await self._write_ahead()
            events, decisions, counted = self.owed.waiting, self.owed.decisions, self.usage.waiting
            held = () if any(isinstance(one, records.TurnEnded) and one.answer for one in kept) else self.held
            kept = (*held, *make_decision_records(self.job.turn_id, decisions), *kept)
            outbound, arrived = self._outbound(replies)
            # Requests first: a reader that looks for the message of a request reads on from there.
            extra = [*extra, *make_owed_puts(events, self.session.key), *outbound]
            while True:
                if self.is_lost:
                    raise Conflict(f"turn {self.job.turn_id} of {self.session.key} is no longer ours")
                try:
                    self.session = await append_until_written(
                        partial(self._context.sessions.append, self.session, *kept, extra=[*extra, *counted]),
                        f"turn {self.job.turn_id}",
                    )
                    self.owed.forget(events, decisions)
                    self.usage.forget(counted)
                    self.held.clear()
                    for tell in arrived:
                        tell()
                    return
                except Conflict:
                    await self._look_again()
                except Duplicate:  # an append of usage that was cut off, or met a conflict, has been written in part
                    await self.usage.write(self._context.engine)
                    counted = ()

    async def _write_ahead(self) -> None:
        """Append the oldest events separately while more than MOST_EVENTS wait; a later run does not repeat them."""
        while not self.is_lost and len(events := self.owed.waiting) > MOST_EVENTS:
            puts = make_owed_puts(events[:MOST_EVENTS], self.session.key)
            await append_until_written(
                partial(append_in_parts, self._context.engine, puts), "the pending events of hooks"
            )
            self.owed.forget(events[:MOST_EVENTS])

    async def _look_again(self) -> None:
        """Read the session again; the claim is lost if the chain has a newer claim, or a record of a later gateway."""
        turn = None
        with suppress(EngineTooNew):
            self.session = await self._context.sessions.open(self.session.key)
            turn = self.session.turn
        if not turn or turn.claimed != self._claimed or turn.by != self._context.node:
            self.is_lost = True
            self.hard.cancel()


def find_last_answer(held: Sequence[records.Step], result: LaneResult) -> records.LastAnswer | None:
    """Return the answer to write into the record of the turn's end; None unless it is the only held step."""
    match held:
        case [records.LlmStep() as step]:
            return records.LastAnswer(step.hop, step.stop, None if step.usage == result.usage else step.usage)
    return None


class InterruptRequests(msgspec.Struct, eq=False):
    """The messages to a lane that end its running turn: new texts, and edits."""

    _newest: int = 0  # inbound sequence of the message to answer now
    _edits: list[tuple[int, Message]] = []

    def note(self, seq: int, message: Message) -> None:
        if message.kind == "edit":
            self._edits.append((seq, message))
        else:
            self._newest = max(self._newest, seq)

    def stop(self, claim: TurnClaim) -> None:
        """End a turn that does not cover the noted messages, or restart the turn if one of them edits its messages.

        The turn of a job continues, because people do not see it, and each moment runs at most once.
        """
        if any(claim.job.is_changed_by(seq, edit) for seq, edit in self._edits):
            claim.correct()
        elif self._newest > claim.job.on and not claim.job.messages[0].is_job:
            claim.stop()

    def forget_edits(self) -> None:
        """Forget the noted edits, because the turn is over."""
        self._edits.clear()


async def gather_owed_events(context: LaneContext, session: Session, job: TurnJob) -> OwedEvents:
    """Make the `OwedEvents` of a turn to claim; it knows the events that earlier runs of the turn have written."""
    if not job.resumed or not session.turn:
        return OwedEvents()
    decided = [(one.event_id, one.hook, one.decision) for one in session.turn.decisions]
    pattern = subjects.owed_event_pattern_of_token(subjects.token_of(session.key))
    found = records.read_all(context.engine, pattern, records.EmittedEvent, session.turn.first - 1)
    return OwedEvents([str(event.fields.get("id")) async for _, event in found], decided)


def make_decision_records(turn_id: str, decisions: Sequence[HookDecision]) -> Iterator[records.DecisionRecord]:
    """Make the records of hook decisions for the chain; long reasons and names are cut."""
    for one in decisions:
        fields = one._asdict() | {"reason": one.reason[:LONGEST_REASON], "hook": one.hook[:LONGEST_NAME]}
        yield records.DecisionRecord(turn_id=turn_id, **fields)


async def write_decisions(
    engine: Engine, sessions: SessionRepository, key: str, turn_id: str, owed: OwedEvents
) -> None:
    """Append the decisions of hooks about a reply, with the pending events, even after the end of the turn."""
    puts, decided = make_owed_puts(owed.waiting, key), tuple(make_decision_records(turn_id, owed.decisions))
    while decided and (session := await sessions.open(key)).session_id:
        try:
            await append_until_written(partial(sessions.append, session, *decided, extra=puts), "what hooks decided")
            return
        except Conflict:
            continue  # another record was appended to the chain
    if puts:
        await append_until_written(partial(engine.append, *puts), "the pending events of hooks")


def make_owed_puts(events: Iterable[OwedEvent], session_key: str) -> list[NewRecord]:
    """Make the records of pending events for durable hooks."""
    return [records.make_owed_event_put(event.name, event.data, session_key) for event in events]


def make_request_put(request: records.ApprovalRequest) -> NewRecord:
    """Make the record that asks approvers for an approval."""
    subject = subjects.approval_subject_of(request.mark, request.session_key)
    return NewRecord(subject, records.encode(request), ttl=records.TRAFFIC_TTL)

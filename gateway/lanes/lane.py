"""The lane of one session: a loop that reads the journal, does the next job that is due, and reads again.

Theory of operation. A session has two subjects in the journal: its incoming messages, `in`, and its chain, `turn`. Both
are append-only. The fold of the chain (`Session`) says how far the incoming messages are answered (`upto`) and whether
a turn is open. So `find_next_job` finds from the journal alone what is due. A wakeup only makes the lane read again,
and a superfluous wakeup does no harm. The cases:

- No turn is open: the messages behind `upto` wait. The first message, and the messages that continue it, become a turn.
  If their sender has exceeded the rate limit of a person, the lane waits until the first message is due.
- A turn is open and another live node runs it: read again later. The other node also reads new messages before its lane
  ends; this node only notifies it of messages that end the turn.
- A turn is open, no node runs it, and its person has edited a message of it: the turn ends without an answer, and a new
  turn answers the edited messages.
- A turn waits for a person's answers: wait until the answers come or the time for them is over (answer: None).
- A turn is open and no node runs it (its process has crashed, its questions are answered, its claim was released): run
  the turn again under the same id, with the same messages and the finished steps.

A lane claims every job in the chain first (see `turn_claim`). If two lanes of one session, in any two processes, try
the same job, one of them gets a `Conflict` and reads again.

Each claim counts as a try. The number of tries does not show which turn is at fault: a process that is killed cuts off
dozens of turns, and at most one of them killed it. That turn has its mark set, a file that shows that its code was
running (see `turn_marks`). A turn is cancelled after `attempts` tries that failed with an error, or after the process
died `deaths` times in its code: the person gets an apology, the messages become dead letters, and the session continues
behind them. All other turns run until they end, however many tries this takes. After a question to a person, a turn
counts its tries from zero again.

Turns that had their mark set, or were cut off several times, run one at a time, in this process and the next, so that
at most one of them has its mark set.

A lane waits for a slot before it claims. After a wait it reads again, since the journal may have changed.
"""

import asyncio
import itertools
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial, reduce

import anyio
import msgspec
from msgspec import structs

from gateway.backoff import Attempts, Backoff
from gateway.engine.interface import NewRecord
from gateway.engine.keyed_workers import Wakeup
from gateway.errors import Conflict, EngineError, EngineTooNew, RecordDamage
from gateway.lanes.audio import (
    AudioTranscriber,
    FoundMessages,
    find_audio_jobs,
    find_stop,
    put_words,
    read_transcriptions,
)
from gateway.lanes.context import BUSY, DAMAGED, PAGE, LaneContext, is_same_person_continuing
from gateway.lanes.edits import (
    fold_edits,
    has_new_edit,
    has_used_tools,
    make_partial_end,
    put_heard_words,
    put_words_before,
    read_inbound,
    read_open_words,
    read_pending,
)
from gateway.lanes.slots import UNAWAITED
from gateway.lanes.turn import (
    LaneResult,
    LaneTurn,
    TurnStart,
    build_partial_entries,
    build_partial_pieces,
    reply_id_of,
)
from gateway.lanes.turn_claim import (
    InterruptRequests,
    NewMessage,
    TurnClaim,
    TurnJob,
    gather_owed_events,
    make_owed_puts,
)
from gateway.logs.lines import bind_context
from gateway.messages.message import Message, Reply, people_of
from gateway.messages.pieces import add_missing_pieces
from gateway.messages.roles import rank_of
from gateway.records import records, subjects
from gateway.sessions.session import OpenTurn, Session, apply_record
from gateway.sessions.transitions import begin_session, get_reset_reason
from gateway.turn_marks import watch_steps

LANE_REASONS = frozenset({"first", "idle", "daily"})  # why a lane itself starts a session
LONGEST_WAIT = 600.0


async def find_next_job(context: LaneContext, key: str) -> tuple[Session, TurnJob | float | None]:
    """Return the session, and the job of its lane, or the seconds to wait, or None if nothing is left to do.

    Raises:
        Conflict: the chain has just changed; call again.
    """
    session = await context.sessions.open(key)
    turn = session.turn
    if turn is None:
        return session, await _find_waiting(context, session)
    if pause := await context.peers.find_pause(turn, key):
        return session, min(context.settings.lease / 2, pause)
    if await has_new_edit(context, session, turn):
        end = await make_partial_end(context, session, turn, is_corrected=True)
        session = await context.sessions.append(session, end)
        return session, await _find_waiting(context, session)
    if turn.is_waiting:
        if (left := turn.until - context.clock()) > 0:
            return session, min(left, LONGEST_WAIT)
        expired = [records.QuestionAnswered(turn_id=turn.turn_id, name=name, answer=None) for name in turn.questions]
        session = await context.sessions.append(session, *expired)
        assert session.turn
        turn = session.turn
    return await _find_open(context, session, turn)


def _is_doubted(context: LaneContext, job: TurnJob) -> bool:
    """Return True if a turn was cut off so often that its mark must stay set, even while its tools run."""
    return job.attempt - job.failures >= max(2, context.settings.attempts)


async def _find_waiting(context: LaneContext, session: Session) -> TurnJob | float | None:
    """Return the job for the first waiting messages, the seconds until they are due, or None if no message waits."""
    waiting = await read_pending(context.engine, session)
    if not waiting:
        return None
    folded, now = fold_edits(waiting), context.clock()
    if (left := folded[0].message.due - now) > 0:
        return min(left, LONGEST_WAIT)
    folded = [*itertools.takewhile(lambda one: one.message.due <= now, folded)][: context.settings.folded]
    said = [(one.seq, put_words_before(session, one.message)) for one in folded]
    found = await put_heard_words(context.engine, session, said)
    if any(message.has_audio for _, message in found):
        job = await _find_spoken(context, session, found)
    else:
        job = _make_job(uuid.uuid4().hex, 1, found[: _count_continuing(found)])
    edits = tuple(seq for one in folded if one.seq in job.seqs for seq in one.edits)
    covered = itertools.takewhile(lambda seq: seq <= job.on or seq in edits, (seq for seq, _ in waiting))
    return msgspec.structs.replace(job, edits=edits, on=max(covered))


def _count_continuing(found: FoundMessages, stop: int = 0) -> int:
    """Count the first messages that are pieces of one text; a stop by the person ends the text."""
    last = 1
    while last < len(found) and is_same_person_continuing(found[last - 1][1], found[last][1]):
        if found[last - 1][0] <= stop < found[last][0]:
            break
        last += 1
    return last


async def _find_spoken(context: LaneContext, session: Session, found: FoundMessages) -> TurnJob:
    """Make a job of the first waiting messages, with the text of their audio and the files to transcribe."""
    known = await read_transcriptions(context.engine, session.key, found)
    stop = find_stop(known)
    found, is_stopped = found[: _count_continuing(found, stop)], found[0][0] <= stop
    audio = [] if is_stopped else find_audio_jobs(known, found, context.settings.ports.listener)
    job = _make_job(uuid.uuid4().hex, 1, [(seq, put_words(seq, message, known)) for seq, message in found])
    return msgspec.structs.replace(job, audio=tuple(audio), is_stopped=is_stopped)


async def _find_open(context: LaneContext, session: Session, turn: OpenTurn) -> tuple[Session, TurnJob | float | None]:
    """Make the job that runs an open turn again, with the same messages."""
    found = await read_open_words(context.engine, session, turn)
    if found:
        deaths = turn.deaths + (turn.turn_id in context.marks.cut_off)
        job = _make_job(turn.turn_id, turn.attempt + 1, found, on=turn.on, resumed=True)
        (first,) = await context.engine.read(subjects.session_subject_of("in", session.key), session.upto, 1)
        waited = context.clock() - first.ts
        return session, msgspec.structs.replace(
            job, failures=turn.failures, deaths=deaths, waited=waited, edits=turn.edits
        )
    log.warning("the messages of turn %s of %s are gone from the journal; it is closed", turn.turn_id, session.key)
    gone = records.TurnEnded(upto=turn.on, turn_id=turn.turn_id, status="expired")
    session = await context.sessions.append(session, gone)
    return session, await _find_waiting(context, session)


def _make_job(turn_id: str, attempt: int, found: FoundMessages, on: int = 0, *, resumed: bool = False) -> TurnJob:
    seqs, messages = zip(*found, strict=True)
    return TurnJob(turn_id, on or seqs[-1], attempt, messages, seqs, resumed)


log = logging.getLogger(__name__)

BACKOFF = Backoff(1.0, 30.0)


class Lane(msgspec.Struct, eq=False):
    """The lane of a session; a lane exists while its session has work or waits."""

    key: str
    _context: LaneContext
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    claim: TurnClaim | None = None
    job: TurnJob | None = None  # running, or waiting to run
    wakeup: Wakeup = msgspec.field(default_factory=Wakeup)
    arrival: NewMessage | None = None
    is_begun: bool = False
    is_over: bool = False
    damage: str = ""  # the damage of the journal that blocks the session
    _is_leaving: bool = False
    _interrupting: InterruptRequests = msgspec.field(default_factory=InterruptRequests)
    _error: str = ""
    _is_told: bool = False  # whether the person was notified of the wait
    _listening: anyio.CancelScope | None = None  # while audio is transcribed

    def interrupt_by(self, seq: int, message: Message) -> None:
        """End a turn that does not cover this message, or restart the turn if the message edits one of its messages."""
        self._interrupting.note(seq, message)
        if self.claim:
            self._interrupting.stop(self.claim)

    async def look_for_messages(self) -> bool:
        """Read new messages that may end our turn, on request of another node; return False if no turn runs here."""
        if not self.job:
            return False
        for seq, message in await read_inbound(self._context.engine, self.key, self.job.on):
            if self._context.settings.ports.interrupts(message):
                self.interrupt_by(seq, message)
        return True

    def stop(self) -> bool:
        """End the running turn or transcription; return False if neither runs."""
        if self.claim:
            self.claim.stop()
        if self._listening:
            self._listening.cancel()
        return bool(self.claim or self._listening)

    def finish(self) -> None:
        """Let the lane end after the running turn, or at once if no turn runs."""
        self._is_leaving = True
        if self.arrival:
            self.arrival.settle()
        if not self.claim:
            self.scope.cancel()

    async def run(self) -> None:
        """Run until the session has no work and waits for no answer.

        Errors of the journal or of our code are logged and retried with growing pauses.

        Raises:
            EngineTooNew: a later version of the gateway works on the session.
        """
        attempts, self.is_begun = Attempts(BACKOFF), True
        with self.scope, bind_context(session=self.key):
            while not (self.is_over or self._is_leaving):
                try:
                    await self._pass()
                    attempts.reset()
                    self.damage = ""
                    if not self.is_over:
                        await asyncio.sleep(0)  # a flood must not block other tasks, even if no pass has to wait
                except Conflict:
                    continue
                except EngineTooNew:
                    raise
                except RecordDamage as damage:
                    if not self.damage:
                        self.damage = str(damage)
                        await _tell_damage(self._context, self.key, damage)
                    await self.wakeup.wait(attempts.pause())
                except Exception:  # of any kind: the messages are in the journal and must not be dropped
                    pause = attempts.pause()
                    log.exception("the lane of %s failed; it goes on in %.0f s", self.key, pause)
                    self.wakeup.rest()
                    await anyio.sleep(pause)

    async def _take_arrival(self, arrival: NewMessage) -> bool:
        """Append the message and the claim of its turn at once, if the message is the next and a slot is free."""
        session = await self._context.sessions.open(self.key)
        job = _make_job(uuid.uuid4().hex, 1, [(0, arrival.message)])
        rank = _find_rank(self._context, job, is_backlog=False)
        is_next = not session.turn and not await read_pending(self._context.engine, session)
        if is_next and self._context.slots.has_free(job.person, rank):
            async with self._wait_for_slot(job):
                with bind_context(turn=job.turn_id):
                    return await self._take(session, job, arrival)
        return False

    async def _pass(self) -> None:
        self.wakeup.listen()
        is_corrected = False
        if (arrival := self.arrival) and not arrival.seq.done():
            with arrival.trying():
                is_corrected = await self._take_arrival(arrival)
        else:
            session, todo = await find_next_job(self._context, self.key)
            self.job = todo if isinstance(todo, TurnJob) else None
            match todo:  # a ring between `listen` and here is not lost: `has_news` and `wait` see it
                case None:
                    self.is_over = not self.wakeup.has_news
                case float():
                    await self.wakeup.wait(todo)
                case TurnJob() if todo.audio:
                    await self._listen(session, todo)
                case TurnJob():
                    async with self._wait_for_slot(todo) as waited:
                        if waited:
                            session, todo = await find_next_job(self._context, self.key)
                        if isinstance(todo, TurnJob) and not todo.audio:
                            with bind_context(turn=todo.turn_id):
                                is_corrected = await self._take(session, todo)
        if is_corrected:
            await anyio.sleep(self._context.settings.calm)

    @asynccontextmanager
    async def _wait_for_slot(self, job: TurnJob) -> AsyncIterator[bool]:
        """Take a slot, for a suspected turn after the lock `suspect`; yield True if the lane had to wait."""
        slot = self._context.slots.slot(
            job.person,
            _find_rank(self._context, job, is_backlog=self.wakeup.is_backlog),
            self._context.settings.patience,
            partial(self.say_busy, job.messages[-1], job.seqs[0]),
        )
        if not (job.deaths or _is_doubted(self._context, job)):
            async with slot as waited:
                yield waited
        else:
            async with self._context.suspect, slot:
                yield True

    async def _listen(self, session: Session, job: TurnJob) -> None:
        """Have the audio transcribed; the next pass of the lane then makes a turn of the text."""
        settings = self._context.settings
        assert settings.ports.listener
        told = partial(self.say_busy, job.messages[-1], job.seqs[0])
        transcriber = AudioTranscriber(
            self._context.engine, settings.ports.listener, session, settings.ports.listener.patience, settings.release
        )
        try:
            with anyio.CancelScope() as self._listening:
                async with self._context.audio_slots.slot(
                    job.person,
                    _find_rank(self._context, job, is_backlog=self.wakeup.is_backlog),
                    settings.patience,
                    told,
                ):
                    await transcriber.transcribe(job.audio)
            if self._listening.cancel_called:  # the person said stop, perhaps just as the last file was done
                await transcriber.stop(job.on)
        finally:
            self._listening = None

    async def say_busy(self, last: Message, seq: int, position: int) -> None:
        """Send the person their place in line once. Internal work has no person to notify."""
        if last.kind in ("internal", "call") or self._is_told:
            return
        self._is_told = True
        reply = Reply(f"busy:{seq}", last.address, BUSY.format(position), silent=True)
        try:
            await _tell(self._context, self.key, reply)
        except EngineError as error:  # a duplicate: the person got it before the last start
            log.info("who waits in %s is not told: %s", self.key, error)

    async def _take(self, session: Session, job: TurnJob, arrival: NewMessage | None = None) -> bool:
        """Run the turn, or cancel it; return True if an edit of its message ended it, so that another turn follows."""
        if job.failures >= self._context.settings.attempts:
            await self._give_up(session, job, self._error or "it failed each time", job.failures)
            return False
        if job.deaths >= self._context.settings.deaths:
            await self._give_up(session, job, "the gateway ended during it each time", job.deaths)
            return False
        if job.waited > self._context.settings.longest:
            await self._give_up(session, job, f"no answer came for {job.waited:.0f} s", job.attempt - 1)
            return False
        self.claim = claim = await self._claim(session, job, arrival)
        self._is_told = False
        try:
            self._interrupting.stop(claim)
            if job.is_stopped:
                claim.stop()
            return await self._run(claim)
        except anyio.get_cancelled_exc_class():
            await claim.release()  # the process stops: the next node must not count this as a failed try
            raise
        finally:
            self.claim = None
            self._interrupting.forget_edits()
            await claim.write_usage()

    async def _claim(self, session: Session, job: TurnJob, arrival: NewMessage | None) -> TurnClaim:
        now, reason = self._context.sessions.now(), None
        written: list[records.TurnRecord] = []
        if not session.session_id:
            reason = "first"
        elif not job.resumed:
            ahead = self._context.sessions.ahead()
            reason = get_reset_reason(session, self._context.settings.sessions, now, ahead=ahead)
        if reason is not None:
            written.append(begin_session(session, now, reason, message=job.messages[0]))
        owed = await gather_owed_events(self._context, session, job)
        begun = reduce(lambda state, record: apply_record(state, record, state.seq + 1), written, session)
        begins = bool(written) or (job.resumed and _begins_session(session))
        await self._context.settings.ports.note(TurnStart(job.turn_id, begun, job.messages, job.resumed, begins, owed))
        events, puts = owed.waiting, make_owed_puts(owed.waiting, self.key)
        claim = records.Claim(
            turn_id=job.turn_id,
            by=self._context.node,
            on=job.on,
            attempt=job.attempt,
            deaths=job.deaths,
            edits=job.edits,
            address=job.address if job.address != begun.address else None,
        )
        if arrival:
            append, puts = partial(self._context.sessions.append_said, session, arrival.put), [*puts, *arrival.extra]
        else:
            append = partial(self._context.sessions.append, session)
        claimed = await append(*written, claim, extra=puts)
        if arrival and claimed.turn:
            job = structs.replace(job, on=claimed.turn.on, seqs=(claimed.turn.on,))
            arrival.settle(job.on)
        self.job = job
        owed.forget(events)
        if job.deaths:
            self._context.marks.forget(job.turn_id)
        return TurnClaim(self._context, claimed, job, owed)

    async def _run(self, claim: TurnClaim) -> bool:
        try:
            result = await self._work(claim)
        except Conflict:
            log.info("turn %s of %s went to another gateway", claim.job.turn_id, self.key)
            await claim.take_back()
            return False
        except Exception as error:  # the work is the dispatcher's, with hooks, tools and models
            log.exception("turn %s of %s failed, try %d", claim.job.turn_id, self.key, claim.job.attempt)
            self._error = f"{type(error).__name__}: {error}"
            result = None
        if claim.is_lost:
            await claim.take_back()
            return False
        if result is None:
            result = await _pause(self._context, claim)
            if result is None:
                await claim.fail()
        if result and claim.is_corrected:
            result = _leave_corrected(claim, result)
        if result:
            await claim.commit(result)
        return result is not None and claim.is_corrected and result.is_corrected

    async def _work(self, claim: TurnClaim) -> LaneResult | None:
        """Run the turn and return its result; an interrupted turn without a result keeps its finished steps."""
        turn = _lane_turn(claim)
        marks, job = self._context.marks, claim.job
        with claim.hard, marks.use(job.turn_id, is_doubted=_is_doubted(self._context, job)):
            result = await watch_steps(self._context.work, turn)
            if not (claim.stopped.is_set() and result.questions):
                return result
        if claim.is_lost:
            return None
        return _interrupted(claim)

    async def _give_up(self, session: Session, job: TurnJob, reason: str, tries: int) -> None:
        """Cancel the turn: send an apology, make each message a dead letter, and let the conversation continue."""
        last, now = job.messages[-1], self._context.sessions.now()
        log.error("turn %s of %s is cancelled (tries: %d): %s", job.turn_id, self.key, tries, reason)
        done = records.TurnEnded(
            upto=job.on,
            turn_id=job.turn_id,
            status="failed",
            people=people_of(job.messages),
            pieces=add_missing_pieces((), job.messages),
            error=reason,
        )
        text = self._context.settings.apology
        apology = Reply(f"{job.turn_id}:reply", last.address, text, reply_to=last.id)
        dead = [_dead(self.key, job, at, reason, tries, now) for at in range(len(job.messages))]
        owed = await gather_owed_events(self._context, session, job)
        given_up = TurnStart(job.turn_id, session, job.messages, True, False, owed, reason, text)
        await self._context.settings.ports.note(given_up)
        put = records.make_reply_put(apology, self.key, job.turn_id, now, person=job.person)
        extra = [put, *dead, *make_owed_puts(owed.waiting, self.key)]
        await self._context.sessions.append(session, done, extra=extra)


async def _pause(context: LaneContext, claim: TurnClaim) -> LaneResult | None:
    """Pause before the next try; return an interrupted result if the person says stop during the pause."""
    pauses = context.settings.pauses
    with anyio.move_on_after(pauses[min(claim.job.failures + 1, len(pauses)) - 1] if pauses else 0):
        await claim.stopped.wait()
    return _interrupted(claim) if claim.stopped.is_set() else None


async def _tell_damage(context: LaneContext, key: str, damage: RecordDamage) -> None:
    """Log the damage, and send the waiting person a message about it, once for each damage."""
    log.error("%s cannot go on: %s; to begin it again: hermes-gateway sessions delete %s", key, damage, key)
    try:
        found = await records.read_readable(context.engine, subjects.session_subject_of("in", key), 0, PAGE)
        kept = records.decode(found[-1].data) if found else None
        if isinstance(kept, records.InboundMessage) and kept.message.kind != "internal":
            reply = Reply(f"damaged:{damage.seq}", kept.message.address, DAMAGED)
            await _tell(context, key, reply)
    except EngineError as error:  # a duplicate, too
        log.info("who waits in %s is not told: %s", key, error)


async def _tell(context: LaneContext, key: str, reply: Reply) -> None:
    """Send a notice only once, even after a crash. Raises Duplicate if the journal has the notice already."""
    put = records.make_reply_put(reply, key, "", context.clock())
    await context.engine.append(NewRecord(put.subject, put.data, reply.id))


def _find_rank(context: LaneContext, job: TurnJob, *, is_backlog: bool) -> int:
    """Return a job's rank: the role of the person who waits for it."""
    asked = job.messages[0]
    if asked.kind == "internal" or is_backlog:
        return UNAWAITED
    return rank_of(context.settings.ports.find_role(asked) or "guest")


def _lane_turn(claim: TurnClaim) -> LaneTurn:
    session, job = claim.session, claim.job
    assert session.turn
    return LaneTurn(
        session=session,
        messages=job.messages,
        open=session.turn,
        resumed=job.resumed,
        begins_session=_begins_session(session),
        scope=claim.soft,
        owed=claim.owed,
        usage=claim.usage,
        record=claim.record,
        hold=claim.held.append,
        say=claim.say,
        show=claim.show,
    )


def _begins_session(session: Session) -> bool:
    """Return True if the lane itself started the session for this turn."""
    return bool(session.turn and session.opened == session.turn.first - 1 and session.reason in LANE_REASONS)


def _interrupted(claim: TurnClaim) -> LaneResult:
    steps = claim.session.turn.steps if claim.session.turn else ()
    said = claim.job.messages
    entries, pieces = build_partial_entries(said, steps), build_partial_pieces(said)
    return LaneResult(entries, status="interrupted", pieces=pieces)


def _leave_corrected(claim: TurnClaim, result: LaneResult) -> LaneResult:
    """Return the result to keep of an interrupted turn that another turn corrects: its replies and tool calls.

    The result of a turn that ended before the interrupt stays whole.
    """
    if result.status != "interrupted":
        return result
    turn = claim.session.turn
    said = tuple(reply for reply in result.replies if reply.id.startswith(reply_id_of(claim.job.turn_id)))
    if said or (turn and has_used_tools(turn)):
        return structs.replace(result, replies=said, is_corrected=True)
    return structs.replace(result, replies=(), entries=(), pieces=(), is_corrected=True)


def _dead(key: str, job: TurnJob, at: int, reason: str, tries: int, now: float) -> NewRecord:
    message = replace(job.messages[at], heard=(), has_heard=False)
    inbound = records.encode(records.InboundMessage(session_key=key, message=message, at=now))
    dead = records.DeadLetterRecord(
        what=f"message {message.id} of {key}",
        reason=reason,
        attempts=tries,
        subject=subjects.session_subject_of("in", key),
        seq=job.seqs[at],
        data=inbound,
        at=now,
    )
    return NewRecord(subjects.session_subject_of("dead.turns", key), records.encode(dead))

"""One session's lane: it looks at the journal, does the next thing that is due, and looks again.

What is due comes from the chains alone (`find_next_job`). Doorbells only say "look again" (`engine.doors`).
"""

import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio

from gateway import records
from gateway.engine.interface import NewRecord
from gateway.engine.keyed_workers import Wakeup
from gateway.errors import Conflict, EngineError
from gateway.lanes.context import LaneContext, lease_key_of
from gateway.lanes.turn import LaneResult, LaneTurn, build_partial_entries
from gateway.lanes.turn_claim import TurnClaim, TurnJob
from gateway.logs.lines import bind_context
from gateway.messages import Message, Reply
from gateway.sessions import OpenTurn, Session, get_reset_reason, session_switch_of
from gateway.sessions.transitions import begin_session

LANE_REASONS = frozenset({"first", "idle", "daily"})  # why a lane itself begins a session
LONGEST_WAIT = 600.0
PAGE = 100


@dataclass(frozen=True, slots=True)
class LaneWait:
    """Nothing can be done for so many seconds, unless the bell rings."""

    seconds: float


async def find_next_job(around: LaneContext, key: str) -> tuple[Session, TurnJob | LaneWait | None]:
    """The session, and what its lane is to do; None: nothing is left.

    Raises:
        Conflict: the chain went on in this moment; look again.
    """
    session = await around.sessions.open(key)
    turn = session.turn
    if turn is None:
        return session, await _find_waiting(around, session)
    if turn.by and turn.by != around.node and await around.engine.holder(lease_key_of(turn.by)):
        return session, LaneWait(around.settings.lease / 2)
    if turn.is_waiting:
        if (left := turn.until - around.clock()) > 0:
            return session, LaneWait(min(left, LONGEST_WAIT))
        expired = [records.QuestionAnswered(turn_id=turn.turn_id, name=name, answer=None) for name in turn.questions]
        session = await around.sessions.append(session, *expired)
        assert session.turn
        turn = session.turn
    return await _find_open(around, session, turn)


async def read_inbound(around: LaneContext, key: str, after: int, limit: int = PAGE) -> list[tuple[int, Message]]:
    """The messages of a session behind a sequence."""
    found = await around.engine.read(records.session_subject_of("in", key), after, limit)
    decoded = ((one.seq, records.decode(one.data)) for one in found)
    return [(seq, kept.message) for seq, kept in decoded if isinstance(kept, records.InboundMessage)]


async def _find_waiting(around: LaneContext, session: Session) -> TurnJob | None:
    """The first messages that wait, as many as one turn may answer."""
    found = await read_inbound(around, session.key, session.upto, around.settings.folded)
    if not found:
        return None
    last = 1
    while last < len(found) and around.settings.joins(found[last - 1][1], found[last][1]):
        last += 1
    return _make_job(uuid.uuid4().hex, 1, found[:last])


async def _find_open(around: LaneContext, session: Session, turn: OpenTurn) -> tuple[Session, TurnJob | None]:
    """The open turn once more, with the very messages that it was begun with."""
    found = [one for one in await read_inbound(around, session.key, session.upto) if one[0] <= turn.on]
    if found:
        return session, _make_job(turn.turn_id, turn.attempt + 1, found, on=turn.on, resumed=True)
    log.warning("the messages of turn %s of %s are gone from the journal; it is closed", turn.turn_id, session.key)
    gone = records.TurnEnded(upto=turn.on, turn_id=turn.turn_id, status="expired")
    session = await around.sessions.append(session, gone)
    return session, await _find_waiting(around, session)


def _make_job(
    turn_id: str, attempt: int, found: list[tuple[int, Message]], on: int = 0, *, resumed: bool = False
) -> TurnJob:
    seqs, messages = zip(*found, strict=True)
    return TurnJob(turn_id, on or seqs[-1], attempt, messages, seqs, resumed)


log = logging.getLogger(__name__)

LONGEST_PAUSE = 30.0


class Lane:
    """A session's lane; it lives while there is something to do or to wait for."""

    def __init__(self, key: str, around: LaneContext) -> None:
        self.key = key
        self.scope = anyio.CancelScope()
        self.hold: TurnClaim | None = None
        self.wakeup = Wakeup()
        self.is_over = False
        self._is_leaving = False
        self._around = around
        self._interrupting = 0  # the newest inbound sequence that wants the running turn to end
        self._error = ""

    def interrupt_before(self, seq: int) -> None:
        """The message at `seq` wants to be answered now: a turn that does not cover it ends."""
        self._interrupting = max(self._interrupting, seq)
        self._stop_if_overtaken()

    def stop(self) -> bool:
        """End the running turn; whether there was one."""
        if self.hold:
            self.hold.stop()
        return self.hold is not None

    def finish(self) -> None:
        """End after the turn that runs now, or at once when none runs."""
        self._is_leaving = True
        if not self.hold:
            self.scope.cancel()

    async def run(self) -> None:
        """Until nothing is left to do. A fault in the journal or in ourselves is logged and tried again, slower."""
        pause = 1.0
        with self.scope, bind_context(session=self.key):
            while not (self.is_over or self._is_leaving):
                try:
                    await self._pass()
                    pause = 1.0
                except Conflict:
                    continue
                except Exception:  # whatever it is, the messages are in the journal and must not be given up
                    log.exception("the lane of %s failed; it goes on in %.0f s", self.key, pause)
                    await anyio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)

    async def _pass(self) -> None:
        self.wakeup.listen()
        session, todo = await find_next_job(self._around, self.key)
        match todo:
            case None:
                self.is_over = not self.wakeup.has_news
            case LaneWait(seconds):
                await self.wakeup.wait(seconds)
            case TurnJob():
                async with self._room(todo) as waited:
                    if waited:
                        session, todo = await find_next_job(self._around, self.key)
                    if isinstance(todo, TurnJob):
                        with bind_context(turn=todo.turn_id):
                            await self._take(session, todo)

    @asynccontextmanager
    async def _room(self, job: TurnJob) -> AsyncIterator[bool]:
        """A slot, and for a last try the place of the one suspect; yields whether one had to wait.

        A turn that kills the process takes those beside it along, and none of them is to be given up for that: they
        have their last try one after the other, when only the guilty one can fail.
        """
        if job.attempt < max(2, self._around.settings.attempts):
            async with self._slot(job) as waited:
                yield waited
        else:
            async with self._around.suspect, self._slot(job):
                yield True

    def _slot(self, job: TurnJob) -> AbstractAsyncContextManager[bool]:
        return self._around.slots.slot(job.person, self._around.settings.patience, partial(self._tell_busy, job))

    async def _tell_busy(self, job: TurnJob, position: int) -> None:
        """Whose answer takes long to begin is told why. Work of our own making has nobody to tell."""
        last = job.messages[-1]
        if last.kind == "internal":
            return
        reply = Reply(f"busy:{job.seqs[0]}", last.address, self._around.settings.busy(position), silent=True)
        try:
            await self._around.engine.append(records.make_reply_put(reply, self.key, "", self._around.clock()))
        except EngineError as error:
            log.info("who waits in %s is not told: %s", self.key, error)

    async def _take(self, session: Session, job: TurnJob) -> None:
        if job.attempt > self._around.settings.attempts:
            await self._bury(session, job)
            return
        hold = TurnClaim(self._around, await self._claim(session, job), job)
        self.hold = hold
        try:
            self._stop_if_overtaken()
            await self._run(hold)
        except anyio.get_cancelled_exc_class():
            await hold.release()
            raise
        finally:
            self.hold = None

    async def _claim(self, session: Session, job: TurnJob) -> Session:
        now = self._around.clock()
        claim = records.Claim(turn_id=job.turn_id, by=self._around.node, on=job.on, attempt=job.attempt)
        if job.resumed and session.session_id:
            return await self._around.sessions.append(session, claim)
        reason = "first" if not session.session_id else get_reset_reason(session, self._around.settings.reset, now)
        if reason is None:
            return await self._around.sessions.append(session, claim)
        opened = begin_session(session, now, reason, message=job.messages[0])
        return await self._around.sessions.append(session, opened, claim)

    async def _run(self, hold: TurnClaim) -> None:
        try:
            outcome = await self._outcome(hold)
        except Conflict:
            log.info("turn %s of %s went to somebody else", hold.job.turn_id, self.key)
            return
        except Exception as error:  # the work is the dispatcher's, and in it hooks, tools and models
            log.exception("turn %s of %s failed, try %d", hold.job.turn_id, self.key, hold.job.attempt)
            self._error = f"{type(error).__name__}: {error}"
            outcome = None
        if outcome is None and not hold.is_lost:
            outcome = await self._pause(hold)
        if outcome:
            await hold.commit(outcome)

    async def _pause(self, hold: TurnClaim) -> LaneResult | None:
        """Breathe before the next try; a person who says stop meanwhile does not want it any more."""
        pauses = self._around.settings.pauses
        with anyio.move_on_after(pauses[min(hold.job.attempt, len(pauses)) - 1] if pauses else 0):
            await hold.stopped.wait()
        return _interrupted(hold) if hold.stopped.is_set() else None

    async def _outcome(self, hold: TurnClaim) -> LaneResult | None:
        """What the work says; an interrupted turn that said nothing in time leaves what it had finished."""
        turn = _lane_turn(hold)
        with hold.hard:
            outcome = await self._around.work(turn)
            if not (hold.stopped.is_set() and outcome.questions):
                return outcome
        if hold.is_lost:
            return None
        return _interrupted(hold)

    async def _bury(self, session: Session, job: TurnJob) -> None:
        """Enough tries: an apology, a dead letter for each message, and the conversation goes on."""
        last, now, tries = job.messages[-1], self._around.clock(), job.attempt - 1
        reason = self._error or "the gateway ended in the middle of it each time"
        log.error("turn %s of %s is given up after %d tries: %s", job.turn_id, self.key, tries, reason)
        done = records.TurnEnded(upto=job.on, turn_id=job.turn_id, status="failed", error=reason)
        text = self._around.settings.apology
        apology = Reply(f"{job.turn_id}:failed", last.address, text, reply_to=last.id)
        dead = [_dead(self.key, job, at, reason, now) for at in range(len(job.messages))]
        extra = [records.make_reply_put(apology, self.key, job.turn_id, now), *dead]
        await self._around.sessions.append(session, done, extra=extra)
        self._around.settings.buried(self.key, job.turn_id, job.messages, reason)

    def _stop_if_overtaken(self) -> None:
        if self.hold and self._interrupting > self.hold.job.on:
            self.hold.stop()


def _lane_turn(hold: TurnClaim) -> LaneTurn:
    session, job = hold.session, hold.job
    assert session.turn
    begins = session.opened == session.turn.first - 1 and session.reason in LANE_REASONS
    return LaneTurn(
        session=session,
        messages=job.messages,
        turn_id=job.turn_id,
        attempt=job.attempt,
        resumed=job.resumed,
        steps=session.turn.steps,
        answers=session.turn.answers,
        asked=session.turn.asked,
        turnover=session_switch_of(session) if begins else None,
        scope=hold.soft,
        held=hold,
    )


def _interrupted(hold: TurnClaim) -> LaneResult:
    steps = hold.session.turn.steps if hold.session.turn else ()
    return LaneResult(status="interrupted", entries=build_partial_entries(hold.job.messages, steps))


def _dead(key: str, job: TurnJob, at: int, reason: str, now: float) -> NewRecord:
    message = job.messages[at]
    inbound = records.encode(records.InboundMessage(session_key=key, message=message, at=now))
    dead = records.DeadLetterRecord(
        what=f"message {message.id} of {key}",
        reason=reason,
        attempts=job.attempt - 1,
        subject=records.session_subject_of("in", key),
        seq=job.seqs[at],
        data=inbound,
        at=now,
    )
    return NewRecord(records.session_subject_of("dead.turns", key), records.encode(dead))

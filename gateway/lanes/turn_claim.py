"""A turn in the hands of this node: the claim is the last one in the chain, or it is lost.

Every record of the turn is appended with the chain's last sequence. When the chain has gone on meanwhile, the hold
reads on: a record that leaves the claim standing (a setting, changed from the web page) is taken in, and the append is
made again; a claim by another node, the session's reset or its removal ends the turn before its next side effect. The
journal's illness (a full disk) is waited out, since what was done must be written.
"""

import logging
from dataclasses import dataclass
from typing import TypeVar

import anyio

from gateway import records
from gateway.engine.interface import NewRecord, append_until_written
from gateway.errors import Conflict
from gateway.lanes.context import LaneContext
from gateway.lanes.turn import LaneResult
from gateway.messages import Message, Reply
from gateway.sessions import Session

log = logging.getLogger(__name__)

S = TypeVar("S", bound=records.TurnRecord)


@dataclass(frozen=True, slots=True)
class TurnJob:
    """What a lane is about to run: these messages, up to the inbound sequence `on`, as try number `attempt`."""

    turn_id: str
    on: int
    attempt: int
    messages: tuple[Message, ...]
    seqs: tuple[int, ...]
    resumed: bool = False

    @property
    def person(self) -> str:
        first = self.messages[0]
        return f"{first.address.platform}:{first.user_id}"


class TurnClaim:
    """The claim on one turn, and all that is written under it."""

    def __init__(self, around: LaneContext, session: Session, job: TurnJob) -> None:
        assert session.turn
        self.session = session
        self.job = job
        self.soft = anyio.CancelScope()
        self.hard = anyio.CancelScope()
        self.is_lost = False
        self.stopped = anyio.Event()
        self._around = around
        self._claimed = session.turn.claimed
        self._one_at_a_time = anyio.Lock()

    def stop(self) -> None:
        """Interrupt: the work has a moment to end by itself, then it is cancelled."""
        self.stopped.set()
        self.soft.cancel()
        self.hard.deadline = min(self.hard.deadline, anyio.current_time() + self._around.settings.grace)

    async def record(self, step: records.Step, *replies: Reply) -> None:
        await self._write(step, extra=self._outbound(replies))

    async def say(self, reply: Reply) -> None:
        if self.session.turn and reply.id in self.session.turn.said:
            return
        await self._write(
            records.InterimReply(turn_id=self.job.turn_id, reply_id=reply.id), extra=self._outbound([reply])
        )

    async def commit(self, outcome: LaneResult) -> None:
        """The end of the turn, or the questions that it waits for, with all that belongs to it, in one append."""
        extra = [*self._outbound(outcome.replies), *map(records.make_event_put, outcome.events)]
        if outcome.questions:
            until = self._around.clock() + outcome.wait
            asked = records.QuestionsAsked(turn_id=self.job.turn_id, questions=dict(outcome.questions), until=until)
            await self._write(asked, extra=extra)
        else:
            await self._write(*outcome.changes, self._end(outcome), extra=extra)

    async def release(self) -> None:
        """Give the turn back, so that whoever goes on starts no new try. At the process's end, hence bounded."""
        with anyio.move_on_after(self._around.settings.release, shield=True):
            try:
                await self._write(records.ClaimReleased(turn_id=self.job.turn_id))
            except Conflict:
                log.debug("turn %s was taken over before it was given back", self.job.turn_id)

    def _end(self, outcome: LaneResult) -> records.TurnEnded:
        return records.TurnEnded(
            upto=self.job.on,
            turn_id=self.job.turn_id,
            status=outcome.status,
            entries=outcome.entries,
            usage=outcome.usage,
            error=outcome.error,
            bag=None if outcome.bag is None else dict(outcome.bag),
        )

    def _outbound(self, replies: tuple[Reply, ...] | list[Reply]) -> list[NewRecord]:
        return [
            records.make_reply_put(reply, self.session.key, self.job.turn_id, self._around.clock()) for reply in replies
        ]

    async def _write(self, *kept: records.TurnRecord, extra: list[NewRecord] | None = None) -> None:
        async with self._one_at_a_time:
            while True:
                if self.is_lost:
                    raise Conflict(f"turn {self.job.turn_id} of {self.session.key} is no longer ours")
                try:
                    self.session = await append_until_written(
                        lambda: self._around.sessions.append(self.session, *kept, extra=extra or ()),
                        f"turn {self.job.turn_id}",
                    )
                    return
                except Conflict:
                    await self._look_again()

    async def _look_again(self) -> None:
        self.session = await self._around.sessions.open(self.session.key)
        turn = self.session.turn
        if not turn or turn.claimed != self._claimed or turn.by != self._around.node:
            self.is_lost = True
            self.hard.cancel()

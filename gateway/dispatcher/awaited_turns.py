"""Turns that a hook waits for.

Such a turn is not taken up again after a crash, as a person's message is: the hook that waited has ended with the
gateway. For the same reason it does not hold up the stop. It may run on another node, which asks whether the one goes
on where the hook waits.
"""

import math

import anyio
import anyio.abc
import msgspec

from gateway.engine.interface import Engine, Tail
from gateway.errors import EngineError, GatewayError
from gateway.lanes.lanes import Lanes
from gateway.messages.message import Message
from gateway.records import records, subjects

AWAITED = "awaited"  # stands in such a message: the `run_id` of the gateway in which somebody waits for it
LOOK_PATIENCE = 2.0  # seconds for a run that goes on to say so
GRACE = 5.0  # seconds for a turn that is stopped to say what it has


class SubmitResult(msgspec.Struct, frozen=True):
    """How it went; `status` is that of the turn, or `timeout`."""

    reply: str
    status: str
    turn_id: str = ""
    error: str = ""


class AwaitedTurns:
    """Gives messages to the agent and waits for the ends of their turns, until the gateway stops."""

    def __init__(self, engine: Engine, lanes: Lanes, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._lanes = lanes
        self._scopes: set[anyio.CancelScope] = set()
        self._is_over = False

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled: say that this run goes on."""

        async def answer(_data: bytes) -> bytes:
            return b""

        stop_serving = await self._engine.serve(subjects.run_subject_of(self._run_id), answer)
        try:
            task_status.started()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await stop_serving()

    def give_up(self) -> None:
        """The gateway stops: what is being waited for is stopped too."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()

    async def answer(self, message: Message, key: str, seconds: float) -> SubmitResult:
        """Give the message to the session of this key, and wait for how its turn ends.

        The time in which the turn waits for somebody's answer does not count: it has a limit of its own.

        Raises:
            GatewayError: the gateway stops.
        """
        # Before the message is accepted, so that no end is missed.
        tail = await self._engine.tail(subjects.session_subject_of("turn", key))
        seq = await self._lanes.accept(message, key) or 0
        with anyio.move_on_after(seconds) as scope:
            self._scopes.add(scope)
            if self._is_over:
                scope.cancel()
            try:
                return await self._wait_for_end(tail, key, seq, scope)
            finally:
                self._scopes.discard(scope)
        with anyio.move_on_after(GRACE, shield=True):
            if await self._lanes.interrupt(key) == "nothing" and self._is_over:
                raise GatewayError("the gateway stops")  # before the turn has begun
            ended = await self._wait_for_end(tail, key, seq)
            why = "the gateway stops" if self._is_over else f"it was not done within {seconds:g} s"
            return SubmitResult(ended.reply, "timeout", ended.turn_id, why)
        return SubmitResult("", "timeout", "", f"it was not done within {seconds:g} s, and did not stop")

    async def _wait_for_end(
        self, tail: Tail, key: str, seq: int, timer: anyio.CancelScope | None = None
    ) -> SubmitResult:
        left = math.inf
        async for record in tail:
            kept = records.decode_readable(record.data)
            if timer and isinstance(kept, records.QuestionsAsked) and timer.deadline < math.inf:
                left, timer.deadline = timer.deadline - anyio.current_time(), math.inf
            elif timer and isinstance(kept, records.Claim) and timer.deadline == math.inf:
                timer.deadline = anyio.current_time() + left
            if isinstance(kept, records.TurnEnded) and kept.upto >= seq:
                return SubmitResult(
                    await self._read_replies(key, kept.turn_id, seq), kept.status, kept.turn_id, kept.error
                )
        raise GatewayError("the gateway stops")

    async def _read_replies(self, key: str, turn_id: str, after: int) -> str:
        """Returns the texts of the turn's replies, without its questions; an end and its replies are one append."""
        found = records.read_all(self._engine, subjects.reply_pattern_of_session(key), records.OwedReply, after)
        replies = [one.reply async for _, one in found if one.turn_id == turn_id]
        return "\n\n".join(reply.text for reply in replies if not reply.buttons)


async def is_waiting(engine: Engine, run_id: str) -> bool:
    """Whether this run of a gateway goes on; one that does not say so in time has ended, or stands still."""
    try:
        await engine.request(subjects.run_subject_of(run_id), b"", LOOK_PATIENCE)
    except (TimeoutError, EngineError):
        return False
    return True

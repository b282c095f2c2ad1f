"""Turns for which a hook waits.

Unlike the turn of a person's message, an awaited turn does not continue after a crash: the hook that waited ended with
the gateway. For the same reason, an awaited turn does not delay the stop. The turn may run on another node, which
checks whether the gateway of the waiting hook still runs.
"""

import anyio
import msgspec

from gateway.engine.interface import Engine
from gateway.errors import GatewayError
from gateway.lanes.lanes import Lanes
from gateway.messages.message import Message
from gateway.records import records, subjects
from gateway.records.turn_ends import wait_for_turn_end

AWAITED = "awaited"  # a key of the message's `extra`: the `run_id` of the gateway in which a hook waits
GRACE = 5.0  # seconds for a stopped turn to return what it has


class SubmitResult(msgspec.Struct, frozen=True):
    """The result of an awaited turn; `status` is the status of the turn, or `timeout`."""

    reply: str
    status: str
    turn_id: str = ""
    error: str = ""


class AwaitedTurns(msgspec.Struct, eq=False):
    """Gives messages to the agent and waits for the ends of their turns, until the gateway stops."""

    _engine: Engine
    _lanes: Lanes
    _scopes: set[anyio.CancelScope] = set()
    _is_over: bool = False

    def give_up(self) -> None:
        """Cancel all waiting turns, because the gateway stops."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()

    async def answer(self, message: Message, key: str, seconds: float) -> SubmitResult:
        """Give the message to the session of this key, and wait for the end of its turn.

        The time in which the turn waits for a person's answer does not count: that wait has a limit of its own.

        Raises:
            GatewayError: the gateway stops.
        """
        # Tail before the message is accepted, so that no end is missed.
        tail = await self._engine.tail(subjects.session_subject_of("turn", key))
        seq = await self._lanes.accept(message, key) or 0
        with anyio.move_on_after(seconds) as scope:
            self._scopes.add(scope)
            if self._is_over:
                scope.cancel()
            try:
                return await self._read_result(message, key, seq, await wait_for_turn_end(tail, seq, scope))
            finally:
                self._scopes.discard(scope)
        with anyio.move_on_after(GRACE, shield=True):
            if await self._lanes.interrupt(key) == "nothing" and self._is_over:
                raise GatewayError("the gateway stops")  # before the turn started
            ended = await self._read_result(message, key, seq, await wait_for_turn_end(tail, seq))
            why = "the gateway stops" if self._is_over else f"it was not done within {seconds:g} s"
            return SubmitResult(ended.reply, "timeout", ended.turn_id, why)
        return SubmitResult("", "timeout", "", f"it was not done within {seconds:g} s, and did not stop")

    async def _read_result(self, message: Message, key: str, seq: int, ended: records.TurnEnded) -> SubmitResult:
        answer = await records.read_answer(self._engine, key, ended.turn_id, seq, message.address)
        return SubmitResult(answer, ended.status, ended.turn_id, ended.error)

"""Work that somebody waits for: given to the agent, answered to the one who asked, and to nobody when that one is gone.

So it is not taken up again after a crash, as a person's message is: who waited has died with the gateway. For the same
reason it does not hold up the stop.
"""

from dataclasses import dataclass

import anyio
import msgspec

from gateway import records
from gateway.engine import Engine, Record
from gateway.engine.interface import Tail
from gateway.errors import GatewayError
from gateway.lanes import Lanes
from gateway.messages import Message

AWAITED = "awaited"  # stands in such a message: the `run_id` of the gateway in which somebody waits for it
GRACE = 5.0  # seconds for a turn that is stopped to say what it has


class SubmitResult(msgspec.Struct, frozen=True):
    """How it went; `status` is that of the turn, or `timeout`."""

    reply: str
    status: str
    turn_id: str = ""
    error: str = ""


@dataclass(eq=False)
class AwaitedTurns:
    """Those who wait, for as long as the gateway does not stop."""

    engine: Engine
    lanes: Lanes

    def __post_init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._is_over = False

    def give_up(self) -> None:
        """The gateway stops: what is being waited for is stopped too."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()

    async def answer(self, message: Message, key: str, seconds: float) -> SubmitResult:
        """Give the message to the session of this key, and wait for how its turn ends.

        Raises:
            GatewayError: the gateway stops.
        """
        heard = self.engine.tail(
            records.session_subject_of("turn", key)
        )  # before it is sent, so that nothing is missed
        seq = await self.lanes.accept(message, key) or 0
        with anyio.move_on_after(seconds) as scope:
            self._scopes.add(scope)
            if self._is_over:
                scope.cancel()
            try:
                return await self._ended(heard, key, seq)
            finally:
                self._scopes.discard(scope)
        with anyio.move_on_after(GRACE, shield=True):
            await self.lanes.interrupt(key)
            ended = await self._ended(heard, key, seq)
            why = "the gateway stops" if self._is_over else f"it was not done within {seconds:g} s"
            return SubmitResult(ended.reply, "timeout", ended.turn_id, why)
        return SubmitResult("", "timeout", "", f"it was not done within {seconds:g} s, and did not stop")

    async def _ended(self, heard: Tail, key: str, seq: int) -> SubmitResult:
        async for record in heard:
            kept = records.decode(record.data)
            if isinstance(kept, records.TurnEnded) and kept.upto >= seq:
                return SubmitResult(await self._said(key, kept.turn_id, seq), kept.status, kept.turn_id, kept.error)
        raise GatewayError("the gateway stops")

    async def _said(self, key: str, turn_id: str, after: int) -> str:
        """What the turn said, but for its questions; an end and its replies are one append."""
        found: list[Record] = await self.engine.read(records.reply_pattern_of_session(key), after)
        said = [records.decode(record.data) for record in found]
        replies = [one.reply for one in said if isinstance(one, records.OwedReply) and one.turn_id == turn_id]
        return "\n\n".join(reply.text for reply in replies if not reply.buttons)

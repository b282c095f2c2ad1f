"""Live signs of working turns and their ends, for the nodes that serve the networks.

By these signs a network shows that the agent works, and the state of a message. The gateway repeats the sign of a
working turn: if the sign stops, the turn no longer works (its node was killed, or cut off). The gateway sends the end
of a turn once. If the turn continued after a crash, the gateway repeats its end for a while, since the network may not
be connected yet.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal, TypeAlias, TypeVar

import anyio
import anyio.abc
import msgspec
from msgspec import structs

from gateway.agent.ports import TurnResult
from gateway.backoff import find_pause
from gateway.dispatcher.context import OWN_PLATFORMS
from gateway.engine.interface import Engine, Tail
from gateway.errors import EngineError
from gateway.messages.message import Address
from gateway.records import subjects

REPEAT = 5.0
LASTS = 15.0  # seconds after which a turn without a repeated sign is not working

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
MessageState: TypeAlias = Literal["", "seen", "working", "done", "failed"]

FindEnd: TypeAlias = Callable[[ResultT], MessageState]
"""Return the state of a turn's messages, by the result of its work."""


class TurnSign(msgspec.Struct, frozen=True):
    """The sign of a turn; `state` is the state of the turn's messages, `message_id` the last of these."""

    turn_id: str
    address: Address
    message_id: str
    state: MessageState
    is_resumed: bool = False


class TurnSigns(msgspec.Struct, eq=False):
    """Sends the signs of this node's turns; `run` repeats them."""

    _engine: Engine
    _repeat: float = REPEAT
    _working: dict[str, TurnSign] = {}
    _ended: dict[str, tuple[TurnSign, float]] = {}  # with the time until which the sign is repeated

    async def show(self, sign: TurnSign, work: Callable[[], Awaitable[ResultT]], find_end: FindEnd[ResultT]) -> ResultT:
        """Do the work of a turn, and send signs of the work and its end; if the work raises, send no end."""
        if sign.address.platform in OWN_PLATFORMS:
            return await work()
        self._working[sign.turn_id] = sign
        await self._tell(sign)
        try:
            result = await work()
        finally:
            self._working.pop(sign.turn_id, None)
        await self.end(structs.replace(sign, state=find_end(result)))
        return result

    async def end(self, sign: TurnSign) -> None:
        """Send the sign that a turn is over, or waits for a person."""
        if sign.address.platform in OWN_PLATFORMS:
            return
        if sign.is_resumed:
            self._ended[sign.turn_id] = sign, anyio.current_time() + LASTS
        await self._tell(sign)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Repeat the signs until cancelled."""
        task_status.started()
        while True:
            await anyio.sleep(find_pause(self._repeat))
            now = anyio.current_time()
            self._ended = {turn: (sign, until) for turn, (sign, until) in self._ended.items() if until > now}
            ended = (sign for turn, (sign, _) in self._ended.items() if turn not in self._working)
            for sign in [*self._working.values(), *ended]:
                await self._tell(sign)

    async def _tell(self, sign: TurnSign) -> None:
        try:
            await self._engine.publish(subjects.sign_subject_of(sign.address.served_as), msgspec.json.encode(sign))
        except EngineError as error:
            log.info("no network learns that turn %s is %s: %s", sign.turn_id, sign.state or "over", error)


async def tail_turn_signs(engine: Engine, served_as: str) -> AsyncIterator[TurnSign]:
    """Return the signs for one bot of a network, from now on until the journal is closed."""
    told: Tail = await engine.tail(subjects.sign_subject_of(served_as))
    return (msgspec.json.decode(record.data, type=TurnSign) async for record in told)


def find_end_state(result: TurnResult) -> MessageState:
    """Return the state of a turn's messages at its end."""
    if result.questions:
        return "seen"
    return "failed" if result.error else "" if result.status == "interrupted" else "done"

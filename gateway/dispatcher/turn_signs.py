"""Which turns are at work, and how they end, told live to the nodes that serve their networks.

By these signs a network shows that somebody is at work, and what became of a message. A sign that a turn is at work is
repeated: who is not told so any more (its node was killed, or cut off) is not at work. How a turn ended is told once;
where it goes on after a crash, for a while: it may end before its network is connected again.
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
LASTS = 15.0  # seconds; after that a turn whose sign was not repeated is not at work

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
MessageState: TypeAlias = Literal["", "seen", "working", "done", "failed"]

FindEnd: TypeAlias = Callable[[ResultT], MessageState]
"""Finds the state of the messages that a work is about, from its result."""


class TurnSign(msgspec.Struct, frozen=True):
    """`state`: of the messages that the turn answers, the last of which is `message_id`."""

    turn_id: str
    address: Address
    message_id: str
    state: MessageState
    is_resumed: bool = False


class TurnSigns:
    """Tells those of the turns of this node; `run` repeats them."""

    def __init__(self, engine: Engine, repeat: float = REPEAT) -> None:
        self._engine = engine
        self._repeat = repeat
        self._working: dict[str, TurnSign] = {}
        self._ended: dict[str, tuple[TurnSign, float]] = {}  # with the time until which it is told

    async def show(self, sign: TurnSign, work: Callable[[], Awaitable[ResultT]], find_end: FindEnd[ResultT]) -> ResultT:
        """Do the work of a turn, and tell that it is at work, and how it ended; what is cut off has no end."""
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
        """A turn is over, or waits for somebody."""
        if sign.address.platform in OWN_PLATFORMS:
            return
        if sign.is_resumed:
            self._ended[sign.turn_id] = sign, anyio.current_time() + LASTS
        await self._tell(sign)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled."""
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
            log.info("nobody is told of turn %s that it is %s: %s", sign.turn_id, sign.state or "over", error)


async def tail_turn_signs(engine: Engine, served_as: str) -> AsyncIterator[TurnSign]:
    """Those for one bot of a network, from now on until the journal is closed."""
    told: Tail = await engine.tail(subjects.sign_subject_of(served_as))
    async for record in told:
        yield msgspec.json.decode(record.data, type=TurnSign)


def find_end_state(result: TurnResult) -> MessageState:
    """What the messages that a turn answers are then."""
    if result.questions:
        return "seen"
    return "failed" if result.error else "" if result.status == "interrupted" else "done"

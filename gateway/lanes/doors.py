"""The doors of a node: doorbells come in, each goes to the lane of its session, and a lane ends when it has no more.

Any number of doorbells may wait for one session; the lane keeps one of them and the others are acknowledged together,
in one commit of the journal. So 5,000 messages in one conversation pass here in some milliseconds, and stay in the
inbound chain until their lane has read them.
"""

import logging

import anyio
import anyio.abc

from gateway import records
from gateway.engine.interface import Consumer, Delivery, Tail
from gateway.errors import EngineError
from gateway.lanes.lane import Lane
from gateway.lanes.surroundings import Surroundings
from gateway.messages import Message
from gateway.sessions import Session

log = logging.getLogger(__name__)

FETCH = 256
FETCH_WAIT = 5.0
PAUSE = 1.0
LEAVE_LIMIT = 1.0


class Doors:
    """The lanes that live now, and how doorbells reach them."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._lanes: dict[str, Lane] = {}
        self._lane_ended = anyio.Event()
        self._scope = anyio.CancelScope()

    def lane(self, key: str) -> Lane | None:
        return self._lanes.get(records.conv(key))

    async def serve(self, consumer: Consumer, lanes: anyio.abc.TaskGroup) -> None:
        """Take doorbells until the doors are closed; the lanes run in the task group given."""
        with self._scope:
            while True:
                try:
                    bells = await consumer.fetch(FETCH, FETCH_WAIT)
                except EngineError as error:
                    log.warning("no doorbells from the journal now: %s", error)
                    await anyio.sleep(PAUSE)
                    continue
                superfluous = [older for bell in bells if (older := self._ring(bell, lanes))]
                async with anyio.create_task_group() as acks:
                    for bell in superfluous:
                        acks.start_soon(bell.ack)

    async def close(self) -> None:
        """Take no more doorbells, send home the lanes that run no turn, and wait for the others."""
        self._scope.cancel()
        while busy := self._send_home():
            log.debug("%d lanes are still there", busy)
            self._lane_ended = anyio.Event()
            await self._lane_ended.wait()

    async def progress(self) -> None:
        """Say of the doorbells that lanes hold that they are in good hands."""
        async with anyio.create_task_group() as beats:
            for lane in list(self._lanes.values()):
                beats.start_soon(lane.progress)

    async def hear_control(self, heard: Tail) -> None:
        """Another node asks that a turn of ours be stopped."""
        async for record in heard:
            if lane := self._lanes.get(record.subject.rpartition(".")[2]):
                lane.stop()

    def _send_home(self) -> int:
        for lane in self._lanes.values():
            lane.finish()
        return len(self._lanes)

    def _ring(self, bell: Delivery, lanes: anyio.abc.TaskGroup) -> Delivery | None:
        """Give a doorbell to its lane; returns the one that is superfluous now."""
        kept = records.decode(bell.record.data)
        if not isinstance(kept, records.Inbound | records.Bell):
            return bell
        key = kept.session_key
        conv = records.conv(key)
        if (lane := self._lanes.get(conv)) is None:
            lane = self._lanes[conv] = Lane(key, self._around)
            lanes.start_soon(self._live, conv, lane)
        superfluous = lane.ring(bell)
        if isinstance(kept, records.Inbound) and self._wants_now(key, kept.message):
            lane.interrupt_before(bell.record.seq)
        return superfluous

    def _wants_now(self, key: str, message: Message) -> bool:
        session = self._around.sessions.peek(key) or Session(key)
        return self._around.settings.interrupts(session, message)

    async def _live(self, conv: str, lane: Lane) -> None:
        try:
            await lane.run()
        finally:
            # Before anything is awaited: a doorbell that comes from here on finds no lane and makes a new one.
            del self._lanes[conv]
            self._lane_ended.set()
            with anyio.move_on_after(LEAVE_LIMIT, shield=True):
                await lane.leave()

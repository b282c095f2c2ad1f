"""A durable consumer as its users on the loop see it: it sleeps until something may be there, and never polls.

A fetch wakes up for four reasons: an append or a postponement that concerns the consumer (`signal`), a pending record
that falls due, room after an acknowledgement where as many were out as may be, or the end of its wait. The signal's
event is taken before the look: an append that comes between the look and the wait sets that very event, and is not
missed.

A journal that is ill (a full disk) is no error for who fetches: he gets nothing, and the next look is a second later.
A fetch that is cancelled in the middle of the taking gives back what it gets, as if it had never been handed out: the
attempt is taken back as well.
"""

import asyncio
from contextlib import suppress
from functools import partial

import anyio

from gateway.engine.interface import Clock, ConsumerSpec, Delivery
from gateway.engine.live_messages import LiveDelivery, Signal
from gateway.engine.sqlite.backlog import Backlog, FetchedBatch
from gateway.engine.sqlite.faults import FaultState
from gateway.engine.sqlite.job_thread import JobThread
from gateway.engine.sqlite.log_table import Transaction
from gateway.errors import EngineError

RETRY_SECONDS = 1.0
EMPTY_BATCH = FetchedBatch([], None, is_full=False, has_more=False)


class SqliteConsumer:
    """All who fetch under one name share this one object."""

    def __init__(
        self, spec: ConsumerSpec, backlog: Backlog, thread: JobThread[Transaction], condition: FaultState, clock: Clock
    ) -> None:
        self.spec = spec
        self._backlog = backlog
        self._thread = thread
        self._condition = condition
        self._clock = clock
        self.signal = Signal()
        self._due: float | None = None
        self._is_full = False

    async def fetch(self, n: int, wait: float) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            event = self.signal.event
            taken, pause = await self._try_to_take(n)
            left = until - loop.time()
            if taken.records or (left <= 0 and not taken.has_more):
                return [LiveDelivery(record, attempt, self) for record, attempt in taken.records]
            if not taken.has_more:
                with anyio.move_on_after(min(left, pause)):
                    await event.wait()

    async def _try_to_take(self, n: int) -> tuple[FetchedBatch, float]:
        """Takes what there is; beside it, for how long it makes no sense to look again unless the signal comes."""
        try:
            taken = await self._take(n)
        except EngineError:
            if self._thread.is_closed or not self._condition.fault:
                raise
            return EMPTY_BATCH, RETRY_SECONDS
        self._is_full = taken.is_full
        earlier = taken.due is not None and (self._due is None or taken.due < self._due)
        self._due = taken.due
        if earlier:
            # The others who wait do not know yet when to wake up.
            self.signal.notify()
        return taken, float("inf") if taken.due is None else taken.due - self._clock.steady()

    async def _take(self, n: int) -> FetchedBatch:
        taken = self._thread.submit(lambda tx: self._backlog.take(tx, self.spec, n))
        try:
            return await asyncio.shield(taken)
        except asyncio.CancelledError:
            taken.add_done_callback(self._give_back)
            raise

    def _give_back(self, taken: "asyncio.Future[FetchedBatch]") -> None:
        if not taken.cancelled() and taken.exception() is None and taken.result().records:
            records = taken.result().records
            with suppress(EngineError):
                self._thread.post(lambda tx: self._backlog.give_back(tx, self.spec.name, records))

    async def acknowledge(self, seq: int) -> None:
        with suppress(EngineError):
            await self._thread.submit(partial(self._backlog.acknowledge, name=self.spec.name, seq=seq))
        if self._is_full:
            self.signal.notify()

    async def postpone(self, delivery: LiveDelivery, delay: float) -> None:
        seq, attempt = delivery.record.seq, delivery.attempt
        with suppress(EngineError):
            await self._thread.submit(lambda tx: self._backlog.postpone(tx, self.spec.name, seq, attempt, delay))

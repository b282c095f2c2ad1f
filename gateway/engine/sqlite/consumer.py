"""A durable consumer's side on the event loop.

A fetch wakes up for four reasons: an append or a postponement that concerns the consumer (`signal`), a pending record
that becomes due, an acknowledgement when `max_inflight` deliveries were unacknowledged, or the end of its wait. The
fetch takes the signal's event before it looks for records: an append between this look and the wait sets the same
event, so the fetch does not miss the append.

If the journal is ill (a full disk), the caller of fetch gets no error: the fetch tries again each second, and returns
an empty list at the end of its wait. A fetch that is cancelled while it takes records returns the records and undoes
the attempt, as if they had never been delivered.
"""

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from gateway.engine.interface import ConsumerSpec, Delivery
from gateway.engine.journal_clock import Clock
from gateway.engine.live_messages import LiveConsumer, LiveDelivery
from gateway.engine.sqlite.backlog import Backlog, FetchedBatch
from gateway.engine.sqlite.faults import FaultState
from gateway.engine.sqlite.job_thread import JobThread
from gateway.engine.sqlite.log_table import Transaction
from gateway.errors import EngineError

RETRY_SECONDS = 1.0


class SqliteConsumer(LiveConsumer):
    """A consumer of the SQLite journal. All callers that fetch under one name share this object."""

    def __init__(
        self, spec: ConsumerSpec, backlog: Backlog, thread: JobThread[Transaction], condition: FaultState, clock: Clock
    ) -> None:
        super().__init__(spec)
        self._backlog = backlog
        self._thread = thread
        self._condition = condition
        self._clock = clock
        self._due = math.inf
        self._is_full = False

    async def take(self, n: int) -> tuple[list[Delivery], float]:
        submitted = self._thread.submit(lambda tx: self._backlog.take(tx, self.spec, n))
        try:
            batch = await asyncio.shield(submitted)
        except asyncio.CancelledError:
            submitted.add_done_callback(self._give_back)
            raise
        except EngineError:
            if self._thread.is_closed or not self._condition.fault:
                raise
            return [], RETRY_SECONDS
        self._is_full = batch.is_full
        earlier = batch.due < self._due
        self._due = batch.due
        if earlier:
            # The other waiting callers do not know yet when to wake up.
            self.signal.notify()
        pause = 0.0 if batch.has_more else batch.due - self._clock.steady()
        return [LiveDelivery(record, attempt, self) for record, attempt in batch.records], pause

    def _give_back(self, taken: "asyncio.Future[FetchedBatch]") -> None:
        if not taken.cancelled() and taken.exception() is None and taken.result().records:
            records = taken.result().records
            with suppress(EngineError):
                self._thread.post(lambda tx: self._backlog.give_back(tx, self.spec.name, records))

    async def acknowledge(self, seqs: Sequence[int]) -> None:
        with suppress(EngineError):
            await self._thread.submit(partial(self._backlog.acknowledge, name=self.spec.name, seqs=seqs))
        if self._is_full:
            self.signal.notify()

    async def postpone(self, delivery: LiveDelivery, delay: float) -> None:
        seq, attempt = delivery.record.seq, delivery.attempt
        with suppress(EngineError):
            await self._thread.submit(lambda tx: self._backlog.postpone(tx, self.spec.name, seq, attempt, delay))

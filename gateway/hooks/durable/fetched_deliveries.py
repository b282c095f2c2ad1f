"""The deliveries that a durable hook's consumer has fetched: handed out in order, acknowledged in groups.

The gateway fetches a single event the moment it exists. Events within half a second of each other are fetched together,
and a backlog without a pause. A fetch takes as many events as the hook handles in half a second, and leaves the rest to
other gateways that share the consumer.

The journal counts an attempt for each delivery of a batch. So a gateway that is killed with a batch has used up one
attempt of each delivery. If these deliveries were fetched together again, one event that kills the gateway would soon
make the other events dead letters. Therefore a retried delivery is fetched alone.
"""

import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from gateway.engine.interface import HELD_SECONDS, Consumer, Delivery

MOST_FETCHED = 256
FIRST_FETCHED = 16
FETCH_WAIT = 60.0  # seconds of one fetch
PAUSE = 0.5  # seconds between two fetches that bring few events, and between two acknowledgements
MOST_SPARED = 4 * MOST_FETCHED


class FetchedDeliveries:
    """The deliveries of one consumer; several tasks may take deliveries, each task one after the other.

    The deliveries call `note_told` with the number of acknowledged bytes.
    """

    def __init__(self, consumer: Consumer, note_told: Callable[[int], None]) -> None:
        self._consumer = consumer
        self._note_told = note_told
        self._lock = anyio.Lock()
        self._open: dict[int, Delivery] = {}  # by sequence: deliveries whose outcome the journal waits for
        self._waiting: deque[Delivery] = deque()
        self._done: list[Delivery] = []
        self._most = FIRST_FETCHED
        self._is_full = True  # the last fetch brought as many as it could
        self._fetched_at = self._acknowledged_at = -PAUSE

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Hold deliveries within the context: report progress to the journal; at the end, return the rest to it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_progress)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self._acknowledge()
                    await self.give_back(0, *self._open.values())
                tasks.cancel_scope.cancel()

    async def take(self) -> Delivery:
        """Return the next delivery; fetch further deliveries if necessary."""
        async with self._lock:
            while not self._waiting:
                await self._acknowledge()
                await self._fetch()
            return self._waiting.popleft()

    def take_waiting(self, size: int) -> list[Delivery]:
        """Return the next fetched deliveries: first attempts with `size` bytes of events, or a little more."""
        waiting, taken = self._waiting, list[Delivery]()
        while size > 0 and waiting and waiting[0].attempt == 1:
            taken.append(one := waiting.popleft())
            size -= len(one.record.data)
        return taken

    def put_back(self, *deliveries: Delivery) -> None:
        """Put deliveries back at the front, because the hook did not get them."""
        self._waiting.extendleft(reversed(deliveries))

    async def settle(self, *deliveries: Delivery) -> None:
        """Mark deliveries as done; the journal learns this soon."""
        self._done += deliveries
        if not self._waiting or time.monotonic() - self._acknowledged_at > PAUSE:
            await self._acknowledge()

    def release(self, delivery: Delivery) -> None:
        """Leave the delivery to the caller, who reports the outcome to the journal."""
        self._open.pop(delivery.record.seq, None)

    async def give_back(self, delay: float, *deliveries: Delivery) -> None:
        """Return deliveries to the journal, which delivers them again after `delay` seconds."""
        async with anyio.create_task_group() as tasks:
            for delivery in deliveries:
                self.release(delivery)
                tasks.start_soon(delivery.nak, delay)

    async def give_back_waiting(self, delay: float) -> list[Delivery]:
        """Return all waiting deliveries to the journal, which delivers them again after `delay` seconds."""
        waiting = [*self._waiting]
        self._waiting.clear()
        await self.give_back(delay, *waiting)
        return waiting

    async def _fetch(self) -> None:
        took = time.monotonic() - self._fetched_at
        if not self._is_full and took < PAUSE:
            await anyio.sleep(PAUSE - took)
        elif self._is_full and took < PAUSE:
            self._most = min(MOST_FETCHED, 2 * self._most)
        elif took > 2 * PAUSE and self._is_full:
            self._most = max(1, self._most // 2)
        self._keep(await self._consumer.fetch(1, FETCH_WAIT))
        is_first = bool(self._waiting) and self._waiting[0].attempt == 1
        if is_first and self._most > 1:
            self._keep(await self._consumer.fetch(self._most - 1, 0))
        self._is_full = not is_first or len(self._waiting) >= self._most
        self._fetched_at = time.monotonic()

    def _keep(self, fetched: list[Delivery]) -> None:
        self._waiting += fetched
        self._open |= {delivery.record.seq: delivery for delivery in fetched}

    async def _acknowledge(self) -> None:
        done, self._done = self._done, []
        self._acknowledged_at = time.monotonic()
        if done:
            with anyio.CancelScope(shield=True):
                await self._consumer.ack(done)
            size = 0
            for delivery in done:
                self._open.pop(delivery.record.seq, None)
                size += len(delivery.record.data)
            self._note_told(size)

    async def _report_progress(self) -> None:
        while True:
            await anyio.sleep(HELD_SECONDS / 3)
            if time.monotonic() - self._fetched_at < HELD_SECONDS / 3:
                continue
            async with anyio.create_task_group() as tasks:
                for delivery in tuple(self._open.values()):
                    tasks.start_soon(delivery.progress)


class AttemptCount:
    """The number of times that a delivery was really attempted.

    The journal counts an attempt for each fetched delivery, even if the breaker opened before the hook got the
    delivery; this count subtracts such attempts, for the life of the process.
    """

    def __init__(self) -> None:
        self._spared: OrderedDict[int, int] = OrderedDict()

    def add(self, delivery: Delivery) -> None:
        seq = delivery.record.seq
        self._spared[seq] = self._spared.pop(seq, 0) + 1
        if len(self._spared) > MOST_SPARED:
            self._spared.popitem(last=False)

    def count_tries(self, delivery: Delivery) -> int:
        return delivery.attempt - self._spared.get(delivery.record.seq, 0)

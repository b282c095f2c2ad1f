"""One platform's sending end: everything that all places of the platform share."""

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import anyio
import anyio.abc

from gateway.backoff import Backoff
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, Tail
from gateway.engine.keyed_workers import KeyedWorker, KeyedWorkers
from gateway.messages.message import Address, Reply
from gateway.outbox.interface import (
    DeliveryCallbacks,
    DeliveryReport,
    MessageIds,
    OutboxSettings,
    Transport,
)
from gateway.outbox.stream import Stream, find_shown_parts
from gateway.outbox.stream_writer import decode_piece
from gateway.records import records, subjects
from gateway.turn_marks import watch_steps

log = logging.getLogger(__name__)

MAX_INFLIGHT = 10_000  # places that hold a delivery of their consumer
LONGEST_CHANCE = 0.1  # seconds that spread places with the same retry time


class StreamedParts(NamedTuple):
    """The messages that a stream has displayed, and the whole reply in them; None if unknown."""

    ids: MessageIds = ()
    reply: Reply | None = None


class PlatformSender:
    """Serves one platform: a worker for each place, a limit of calls at a time, and the present streams."""

    def __init__(
        self,
        engine: Engine,
        transport: Transport,
        settings: OutboxSettings,
        callbacks: DeliveryCallbacks,
        clock: Callable[[], float],
        make_worker: Callable[[str, "PlatformSender"], KeyedWorker],
    ) -> None:
        self.engine = engine
        self.transport = transport
        self.settings = settings
        self.callbacks = callbacks
        self.clock = clock
        self.arrived_at = 0.0  # when the network last took a message
        self.pausing = 0  # places that wait before their next try
        self.calls = anyio.Semaphore(settings.senders)
        self._backoff = Backoff(settings.first_pause, settings.longest_pause, 0.5, 1.0)
        self._call_scopes: set[anyio.CancelScope] = set()
        self._streams: dict[str, Stream] = {}
        self._workers = KeyedWorkers(
            lambda record: subjects.place_of_reply_subject(record.subject), lambda place: make_worker(place, self)
        )
        self._consumer_name = f"out-{subjects.platform_token_of(transport.platform)}"

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Deliver until cancelled; running calls may end, within the shutdown's limit."""
        consumer = await self.engine.consumer(
            ConsumerSpec(
                self._consumer_name,
                (subjects.reply_pattern_of_platform(self.transport.platform),),
                self.settings.ack_wait,
                MAX_INFLIGHT,
                only_wakes=True,
            )
        )
        told = await self.engine.tail(subjects.stream_subject_of(self.transport.platform))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._workers.keep_held, self.settings.ack_wait)
            tasks.start_soon(self._workers.serve, consumer, tasks)
            tasks.start_soon(self._show_streams, told, tasks)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                for call in self._call_scopes:
                    call.deadline = anyio.current_time() + self.settings.shutdown

    def describe_too_new(self) -> str:
        """Describe replies that need a later version of the gateway; "" if there are none."""
        return self._workers.too_new.describe()

    async def depth(self) -> int:
        """Count the waiting deliveries: a place with pending replies counts as at least one."""
        return await self.engine.depth(self._consumer_name)

    def is_at(self, place: str) -> bool:
        """Return True if a worker runs for this place."""
        return self._workers.worker(place) is not None

    def next_pause(self, attempts: int, retry_after: float | None) -> float:
        """Return the seconds before the next try: the network's, or twice as long each time, with jitter."""
        if retry_after is not None:
            return retry_after + random.uniform(0, LONGEST_CHANCE)  # noqa: S311 - jitter, no secret
        return self._backoff.pause_after(attempts)

    @contextmanager
    def shield_call(self) -> Iterator[anyio.CancelScope]:
        """Shield a running call from a shutdown: `serve` then sets its deadline."""
        with anyio.CancelScope(shield=True) as call:
            self._call_scopes.add(call)
            try:
                yield call
            finally:
                self._call_scopes.discard(call)

    async def _show_streams(self, told: Tail, tasks: anyio.abc.TaskGroup) -> None:
        """Display the streams of all nodes for this platform, if it can."""
        async for record in told:
            piece = decode_piece(record.data)
            stream = before = self._streams.get(piece.reply.id)
            if stream is None or stream.claimed < piece.claimed:
                is_whole = not (piece.at or piece.is_over)
                if not is_whole or not self.transport.capability(piece.reply.address).can_grow:
                    continue
                stream = Stream(piece, self.engine, self.transport, self.settings)
                self._streams[piece.reply.id] = stream
                tasks.start_soon(watch_steps, partial(self._run_stream, stream, before))
            if stream.claimed == piece.claimed:
                stream.take(piece)

    def shows_words(self, address: Address, since: float) -> bool:
        """Return True if a stream has displayed text there since then."""
        return any(one.reply.address == address and one.shown_at >= since for one in self._streams.values())

    async def _run_stream(self, stream: Stream, before: Stream | None) -> None:
        """Run a stream after an earlier one of the same reply, whose turn has waited for a person."""
        if before is not None:
            await before.close()
        try:
            await stream.run()
        finally:
            if self._streams.get(stream.reply.id) is stream:
                del self._streams[stream.reply.id]

    async def end_stream(self, outbound: records.OwedReply) -> StreamedParts:
        """End the stream of this reply, and return what it has displayed: the delivery continues from there."""
        stream = self._streams.get(outbound.reply.id)
        if stream is not None:
            await stream.close()
        if self.transport.doubt == "none" or not outbound.turn_id:
            return StreamedParts()
        ids = await find_shown_parts(self.engine, self.transport, outbound.reply)
        return StreamedParts(ids, stream.shown if stream is not None else None)

    def list_owed(self, delivery: DeliveryReport) -> Sequence[NewRecord]:
        """Return the records to append with this end of a delivery."""
        try:
            return self.callbacks.owe(delivery)
        except Exception:  # as with `report`
            log.exception("the pending events of the delivery of %s cannot be emitted", delivery.reply.id)
            return ()

    def report(self, listener: Callable[[DeliveryReport], None], delivery: DeliveryReport) -> None:
        try:
            listener(delivery)
        except Exception:  # a listener cannot undo a delivery
            log.exception("a listener failed on the delivery of %s", delivery.reply.id)

"""What all routes of one platform share: the carrier, the gate that closes while the platform is down, the streams."""

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from gateway import records
from gateway.engine.interface import Engine
from gateway.outbox.interface import DeliveryListener, DeliveryReport, OutboxSettings, PrepareReply, Transport
from gateway.outbox.send_journal import MessageIds
from gateway.outbox.stream import Stream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryCallbacks:
    """Who looks at a reply before it goes, and who hears how it ended."""

    prepare: PrepareReply
    sent: DeliveryListener
    failed: DeliveryListener


@dataclass(slots=True, eq=False)
class PlatformSender:
    """One platform's sending end."""

    engine: Engine
    carrier: Transport
    settings: OutboxSettings
    told: DeliveryCallbacks
    clock: Callable[[], float]
    chance: Callable[[], float] = random.random
    streams: dict[str, Stream] = field(default_factory=dict)
    is_open: bool = True
    arrived_at: float = 0.0  # when the network last took something
    senders: anyio.Semaphore = field(init=False)
    _gate: anyio.Event = field(default_factory=anyio.Event)
    _calls: set[anyio.CancelScope] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.senders = anyio.Semaphore(self.settings.senders)

    def hold(self) -> None:
        """The platform is down: what waits goes on waiting, and costs no try."""
        self.is_open = False

    def go(self) -> None:
        self.is_open = True
        self._gate.set()
        self._gate = anyio.Event()

    async def opened(self) -> None:
        while not self.is_open:
            await self._gate.wait()

    def pause(self, attempts: int, retry_after: float | None) -> float:
        """How long to wait before the next try: what the network says, else twice as long each time, with jitter."""
        if retry_after is not None:
            return retry_after + 0.1 * self.chance()
        longest = min(self.settings.first_pause * 2.0 ** (attempts - 1), self.settings.longest_pause)
        return longest * (0.5 + 0.5 * self.chance())

    @contextmanager
    def shield_call(self) -> Iterator[anyio.CancelScope]:
        """A call that has begun is not cut off by a shutdown at once; see `hurry`."""
        with anyio.CancelScope(shield=True) as call:
            self._calls.add(call)
            try:
                yield call
            finally:
                self._calls.discard(call)

    def limit_calls(self) -> None:
        """The gateway stops: calls that have begun may still take a moment."""
        for call in self._calls:
            call.deadline = anyio.current_time() + self.settings.shutdown

    async def shown(self, where: str, outbound: records.OwedReply) -> MessageIds:
        """What a stream has shown of this reply so far; the stream ends, the rest is the route's."""
        if stream := self.streams.pop(outbound.reply.id, None):
            await stream.close()
        if not (self.carrier.can_edit and outbound.turn_id):
            return ()
        last = await self.engine.last(records.send_subject_of(where, outbound.reply.id))
        kept = records.decode(last.data) if last else None
        if isinstance(kept, records.SendIntent) and self.carrier.doubt == "lookup":
            nonce = records.token_of(f"{outbound.reply.id}:{kept.part}")
            found = await self.carrier.find(outbound.reply, kept.part, nonce)
            return (*kept.message_ids, found) if found else kept.message_ids
        return kept.message_ids if isinstance(kept, records.SendSucceeded | records.SendIntent) else ()

    async def purge_stream(self, where: str, reply_id: str) -> None:
        await self.engine.purge(records.send_subject_of(where, reply_id))

    def report_sent(self, delivery: DeliveryReport) -> None:
        self.arrived_at = self.clock()
        _call_listener(self.told.sent, delivery)

    def report_failed(self, delivery: DeliveryReport) -> None:
        _call_listener(self.told.failed, delivery)


def _call_listener(tell: DeliveryListener, delivery: DeliveryReport) -> None:
    try:
        tell(delivery)
    except Exception:  # whoever listens cannot undo a delivery
        log.exception("a listener failed on the delivery of %s", delivery.reply.id)

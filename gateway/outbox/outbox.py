"""The outbox: it delivers pending replies to their networks. Each platform has its own consumer and sender.

A reply is pending once its record is in the journal; from then on it is delivered or its failure is reported, across
crashes. Four parts do that:

- `PlatformSender`, one a platform, has the platform's durable consumer. Each delivery wakes the worker of a place.
- `PlaceSender`, one for each place with pending replies, reads them from the journal, in order, and sends them part
  after part, until nothing is left.
- `SendJournal` holds the progress of that place. Acknowledgements do not count as progress: they only say that a worker
  looked.
- `Stream` displays an answer while it is written; its `StreamWriter` sends the text live, on any node. The delivery of
  the finished reply takes over what it has displayed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import anyio
import anyio.abc

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError
from gateway.messages.message import Address, Reply
from gateway.outbox.interface import (
    DeliveryCallbacks,
    DeliveryReport,
    JournalTransport,
    MessageIds,
    OutboxSettings,
    Transport,
    nonce_of,
)
from gateway.outbox.place_sender import PlaceSender
from gateway.outbox.platform_requests import CloseQuestion, close_question, is_served, make_handler
from gateway.outbox.platform_sender import PlatformSender
from gateway.outbox.stream_writer import StreamWriter
from gateway.records import records, subjects

DRAIN_POLL_SECONDS = 0.02

Arrival: TypeAlias = tuple[Sequence[NewRecord], Callable[[], None]]


class Outbox:
    """Delivers replies. `serve_platform` serves one platform until cancelled; meanwhile it is in `platforms`."""

    def __init__(
        self, engine: Engine, settings: OutboxSettings | None = None, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._engine = engine
        self._settings = settings or OutboxSettings()
        self._callbacks = DeliveryCallbacks()
        self._clock = clock or engine.clock.read
        self.platforms: dict[str, PlatformSender] = {}

    def begin(self, callbacks: DeliveryCallbacks) -> None:
        """Use these callbacks for all replies; call this before a platform is served."""
        self._callbacks = callbacks

    async def serve_platform(
        self, transport: Transport, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve a platform until cancelled; running calls may end, within the shutdown's limit."""
        sender = PlatformSender(self._engine, transport, self._settings, self._callbacks, self._clock, PlaceSender)
        subject = subjects.request_subject_of(transport.platform)
        stop_serving = await self._engine.serve(subject, make_handler(transport))
        self.platforms[transport.platform] = sender
        try:
            await sender.serve(task_status=task_status)
        finally:
            self.platforms.pop(transport.platform, None)
            with anyio.CancelScope(shield=True):
                await stop_serving()

    async def post(
        self, reply: Reply, session_key: str = "", turn_id: str = "", cause: tuple[str, int] | None = None
    ) -> int:
        """Append a pending reply that belongs to no turn's end; return its sequence."""
        (seq,) = await self._engine.append(records.make_reply_put(reply, session_key, turn_id, self._clock(), cause))
        return seq

    def arrive(self, outbound: records.OwedReply) -> Arrival | None:
        """Let a reply arrive with its own record, if its network is the journal and no hook handles it; None: send it.

        Returns the records to append with it, and a function that calls its listeners afterwards.
        """
        sender = self.platforms.get(outbound.reply.address.served_as)
        if not (sender and isinstance(sender.transport, JournalTransport) and self._callbacks.leaves(outbound)):
            return None
        shown = sender.transport.list_shown(outbound.reply)
        if shown is None or sender.is_at(subjects.place_of(outbound.reply.address)):
            return None
        report = DeliveryReport(outbound, outbound.reply, ((outbound.reply.id,),), 1, is_at_once=True)
        return [*shown, *sender.list_owed(report)], partial(sender.report, self._callbacks.sent, report)

    async def say_now(self, reply: Reply) -> None:
        """Try once to send a reply past the journal, for when the journal cannot be written.

        Raises:
            AdapterError: its platform does not take it now, or is not served by this node.
        """
        sender = self.platforms.get(reply.address.served_as)
        if sender is None:
            raise AdapterError(f"{reply.address.served_as} is not connected")
        for part in range(sender.transport.parts(reply)):
            await sender.transport.send(reply, part, nonce_of(reply.id, part))

    async def is_served(self, platform: str) -> bool:
        """Return True if this platform can be reached now, on any node."""
        return await is_served(self._engine, platform)

    async def close_question(self, reply: Reply, message_ids: MessageIds, text: str) -> None:
        """Remove the buttons of a sent question, and add the result below it.

        Raises:
            AdapterError: its platform does not take that now.
        """
        await close_question(self._engine, CloseQuestion(reply, message_ids, text))

    def stream(self, reply: Reply, claimed: int) -> StreamWriter:
        """Display a reply while it is written under this claim, if its network can. The finished reply has the same id.

        The delivery of the reply closes the stream.
        """
        return StreamWriter(self._engine, reply, claimed)

    def shows_words(self, address: Address, seconds: float) -> bool:
        """Return True if a person has seen an answer grow there within so many seconds."""
        sender = self.platforms.get(address.served_as)
        return sender is not None and sender.shows_words(address, anyio.current_time() - seconds)

    def describe_too_new(self) -> str:
        """Describe replies that need a later version of the gateway; "" if there are none."""
        return "; ".join(filter(None, (sender.describe_too_new() for sender in self.platforms.values())))

    async def depths(self) -> dict[str, int]:
        """Count the waiting deliveries of each served platform."""
        return {platform: await sender.depth() for platform, sender in list(self.platforms.items())}

    async def drain(self, limit: float) -> bool:
        """Wait until all replies are sent that can be sent now; False if `limit` seconds were too short."""
        with anyio.move_on_after(limit) as timer:
            for sender in list(self.platforms.values()):
                # The journal does not report that a consumer has become empty, so this polls.
                while await sender.depth() > sender.pausing:  # noqa: ASYNC110
                    await anyio.sleep(DRAIN_POLL_SECONDS)
        return not timer.cancelled_caught

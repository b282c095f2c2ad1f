"""The outbox: every reply that is owed, to its network. One consumer and one desk a platform: none waits for another.

A reply is owed once its record is in the journal; from then on it is delivered or its failure is told, whatever happens
to the process. How far a place is served stands in the place's own send journal, never in acknowledgements.
"""

import logging
import time
from collections.abc import Callable

import anyio
import anyio.abc

from gateway import records
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord, Record
from gateway.engine.keyed_workers import KeyedWorkers
from gateway.messages import Reply
from gateway.outbox.interface import (
    DeliveryListener,
    OutboxSettings,
    PrepareReply,
    Transport,
    ignore_delivery,
    keep_reply,
)
from gateway.outbox.place_sender import PlaceSender
from gateway.outbox.platform_sender import DeliveryCallbacks, PlatformSender
from gateway.outbox.stream import Stream, StreamContext

log = logging.getLogger(__name__)

MAX_INFLIGHT = 10_000  # places that hold a doorbell
DRAIN_POLL_SECONDS = 0.02


class OutboxPlatform:
    """A platform that is served now."""

    def __init__(self, desk: PlatformSender, doors: KeyedWorkers[PlaceSender], tasks: anyio.abc.TaskGroup) -> None:
        self.desk = desk
        self.doors = doors
        self.tasks = tasks

    async def report_progress(self) -> None:
        while True:
            await anyio.sleep(self.desk.settings.ack_wait / 3)
            await self.doors.progress()


class Outbox:
    """Delivers replies. `carry` serves one platform until it is cancelled."""

    def __init__(
        self,
        engine: Engine,
        settings: OutboxSettings | None = None,
        *,
        prepare: PrepareReply = keep_reply,
        on_sent: DeliveryListener = ignore_delivery,
        on_failed: DeliveryListener = ignore_delivery,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._settings = settings or OutboxSettings()
        self._told = DeliveryCallbacks(prepare, on_sent, on_failed)
        self._clock = clock
        self._platforms_served: dict[str, OutboxPlatform] = {}

    async def serve_platform(
        self, carrier: Transport, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve a platform until cancelled; calls that have begun are let end, within the shutdown's limit."""
        desk = PlatformSender(self._engine, carrier, self._settings, self._told, self._clock)
        consumer = await self._engine.consumer(
            ConsumerSpec(
                consumer_name_of(carrier.platform),
                (records.reply_pattern_of_platform(carrier.platform),),
                self._settings.ack_wait,
                MAX_INFLIGHT,
            )
        )
        doors: KeyedWorkers[PlaceSender] = KeyedWorkers(_place_of, lambda where: PlaceSender(where, desk))
        try:
            async with anyio.create_task_group() as tasks:
                office = self._platforms_served[carrier.platform] = OutboxPlatform(desk, doors, tasks)
                tasks.start_soon(office.report_progress)
                tasks.start_soon(doors.serve, consumer, tasks)
                task_status.started()
                try:
                    await anyio.sleep_forever()
                finally:
                    desk.limit_calls()
        finally:
            self._platforms_served.pop(carrier.platform, None)

    def hold(self, platform: str) -> None:
        """The platform is down: its replies wait, without tries, until `go`."""
        if office := self._platforms_served.get(platform):
            office.desk.hold()

    def go(self, platform: str) -> None:
        if office := self._platforms_served.get(platform):
            office.desk.go()

    async def post(self, reply: Reply, session_key: str = "", turn_id: str = "") -> int:
        """Owe somebody a reply that belongs to no turn's end; the sequence under which it is owed."""
        outbound = records.OwedReply(reply=reply, session_key=session_key, turn_id=turn_id, at=self._clock())
        subject = records.reply_subject_of(reply.address, session_key)
        return (await self._engine.append(NewRecord(subject, records.encode(outbound), ttl=records.TRAFFIC_TTL)))[0]

    def stream(self, reply: Reply) -> Stream | None:
        """Show a reply while it is written; None where the platform cannot. The finished reply has the same id.

        Nobody need close it: the delivery of the reply does.
        """
        office = self._platforms_served.get(reply.address.platform)
        if office is None or not office.desk.carrier.can_edit:
            return None
        desk = office.desk
        stream = Stream(reply, StreamContext(desk.engine, desk.carrier, desk.settings.edit_pause, desk.opened))
        desk.streams[reply.id] = stream
        office.tasks.start_soon(stream.run)
        return stream

    async def depth(self, platform: str) -> int:
        """How many doorbells wait: a place that has something to send counts as one, at least."""
        return await self._engine.depth(consumer_name_of(platform))

    async def depths(self) -> dict[str, int]:
        """The same for each platform that is served."""
        return {platform: await self.depth(platform) for platform in list(self._platforms_served)}

    async def drain(self, limit: float) -> bool:
        """Until everything is sent that can be sent now, at most `limit` seconds; whether it was."""
        with anyio.move_on_after(limit) as timer:
            for platform, office in list(self._platforms_served.items()):
                # The journal tells nobody that a consumer has become empty, so one looks.
                while office.desk.is_open and await self.depth(platform) > office.doors.count(_is_pausing):  # noqa: ASYNC110
                    await anyio.sleep(DRAIN_POLL_SECONDS)
        return not timer.cancelled_caught


def consumer_name_of(platform: str) -> str:
    return f"out-{records.platform_token_of(platform)}"


def _place_of(record: Record) -> str:
    return records.place_of_reply_subject(record.subject)


def _is_pausing(route: PlaceSender) -> bool:
    return route.is_pausing

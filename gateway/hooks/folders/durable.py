"""Durable delivery: every event that the journal holds for a hook reaches it at least once, or ends as a dead letter.

A failed delivery is made again after a while, four times; the engine counts, so that a crash counts too. While the
hook is tripped nothing is taken from the journal, and while it is broken or its folder is away its backlog stays. Each
delivery carries a key that is the same at every repetition: a hook that must not act twice keeps it.
"""

import logging
import random

import anyio
import msgspec

from gateway import records
from gateway.engine.interface import Consumer, ConsumerSpec, Delivery, Engine, NewRecord
from gateway.errors import Duplicate, EngineError, EngineTooNew
from gateway.events import Event
from gateway.hooks.cause import use_cause
from gateway.hooks.folders.calls import HookCalls
from gateway.hooks.folders.durable_writer import DurableSubscription, durable_subscription_of
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.subjects import build_filters, dead_letter_subject_of, subject_token_of
from gateway.hooks.wires.wire import HookFailed

RETRY_JITTER = 0.2
FETCH_WAIT = 60.0  # seconds that one fetch lasts
ACK_WAIT = 30.0
JOURNAL_RETRY = 1.0  # seconds before the journal is asked again after it failed

log = logging.getLogger("gateway.hooks")


class DurableConsumer:
    """What one durable hook is owed, and its delivery. It runs while the hook may be called."""

    def __init__(self, name: str, house: HookServices, calls: HookCalls) -> None:
        self._name = name
        self._house = house
        self._calls = calls
        self._manifest: Manifest | None = None
        self._scope: anyio.CancelScope | None = None

    def follow(self, manifest: Manifest) -> bool:
        """From now on events are kept for it as this manifest says, and delivered; whether it says so."""
        engine, scribe = self._house.engine, self._house.durable_writer
        if manifest.delivery != "durable" or not engine or not scribe:
            self.end()
            return False
        same = self._manifest and _delivery_terms_of(self._manifest) == _delivery_terms_of(manifest)
        self._manifest = manifest
        if not (same and self._scope):
            self.rest()
            debt = durable_subscription_of(manifest)
            scribe.add(debt)
            self._scope = anyio.CancelScope()
            self._house.tasks.start_soon(self._run, self._scope, manifest, debt, engine)
        return True

    def rest(self) -> None:
        """Nothing is delivered for now; what happens is still kept for it."""
        if self._scope:
            self._scope.cancel()
            self._scope = None

    def end(self) -> None:
        """Nothing is kept any more; the backlog stays in the journal."""
        self.rest()
        self._manifest = None
        if self._house.durable_writer:
            self._house.durable_writer.forget(self._name)

    async def _run(
        self, scope: anyio.CancelScope, manifest: Manifest, debt: DurableSubscription, engine: Engine
    ) -> None:
        spec = ConsumerSpec(
            subject_token_of(self._name), build_filters(self._name, manifest.events), ACK_WAIT, new_only=True
        )
        with scope:
            try:
                while True:
                    await self._serve(spec, manifest.max, debt, engine)
                    await anyio.sleep(JOURNAL_RETRY)
            finally:
                debt.consumer_ready.set()  # nobody waits for a consumer that will not come

    async def _serve(self, spec: ConsumerSpec, at_once: int, debt: DurableSubscription, engine: Engine) -> None:
        """Until the journal fails."""
        try:
            consumer = await engine.consumer(spec)
            debt.consumer_ready.set()
            async with anyio.create_task_group() as tasks:
                for _ in range(at_once):
                    tasks.start_soon(self._deliver_all, consumer, debt, engine)
        except* EngineError as failed:
            log.warning("%s waits for the journal: %s", self._name, failed.exceptions[0], extra={"hook": self._name})

    async def _deliver_all(self, consumer: Consumer, debt: DurableSubscription, engine: Engine) -> None:
        breaker = self._calls.breaker
        while True:
            await anyio.sleep(breaker.remaining)
            for delivery in await consumer.fetch(1, FETCH_WAIT):
                if breaker.admits():
                    await self._deliver(delivery, debt, engine)
                else:
                    await delivery.nak(max(breaker.remaining, JOURNAL_RETRY))

    async def _deliver(self, delivery: Delivery, debt: DurableSubscription, engine: Engine) -> None:
        done = False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report_progress, delivery)
                done = await self._delivered(delivery, debt, engine)
                tasks.cancel_scope.cancel()
        finally:
            if not done:  # cancelled: the next one begins with it
                with anyio.CancelScope(shield=True):
                    await delivery.nak()

    async def _delivered(self, delivery: Delivery, debt: DurableSubscription, engine: Engine) -> bool:
        """Whether this delivery has come to its end."""
        try:
            name, event = _event_from(delivery)
        except (EngineTooNew, msgspec.MsgspecError) as error:
            self._calls.breaker.left()
            await self._bury(delivery, str(error), engine)
            return True
        if not debt.is_for(name, event):  # the filter was wider, or the manifest has changed since
            self._calls.breaker.left()
            await delivery.ack()
            return True
        try:
            with use_cause((str(event.get("id", "")), 0)):
                await self._calls.deliver(name, event)
        except HookFailed as failed:
            if delivery.attempt > len(self._house.surroundings.retries) and failed.kind != "refused":
                await self._bury(delivery, str(failed), engine)
            else:
                await delivery.nak(self._pause(delivery.attempt))
        else:
            await delivery.ack()
        return True

    def _pause(self, attempt: int) -> float:
        seconds = self._house.surroundings.retries[min(attempt, len(self._house.surroundings.retries)) - 1]
        return seconds * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311 - jitter, no secret

    async def _bury(self, delivery: Delivery, reason: str, engine: Engine) -> None:
        record = delivery.record
        dead = records.DeadLetterRecord(
            what=f"hook:{self._name}",
            reason=self._house.clean(reason)[:2000],
            attempts=delivery.attempt,
            subject=record.subject,
            seq=record.seq,
            data=record.data,
        )
        ident = f"dead:{subject_token_of(self._name)}:{record.seq}"
        try:
            await engine.append(
                NewRecord(dead_letter_subject_of(self._name, record.seq), records.encode(dead), msg_id=ident)
            )
        except Duplicate:
            pass  # written before a crash that came before the acknowledgement
        except EngineError:
            await delivery.nak(JOURNAL_RETRY)
            raise
        log.error(
            "%s could not be told of an event %d times; it is a dead letter: %s",
            self._name,
            delivery.attempt,
            reason,
            extra={"hook": self._name},
        )
        await delivery.ack()


async def _report_progress(delivery: Delivery) -> None:
    """It is still at work."""
    while True:
        await anyio.sleep(ACK_WAIT / 3)
        await delivery.progress()


def _event_from(delivery: Delivery) -> tuple[str, Event]:
    record = records.decode(delivery.record.data)
    if not isinstance(record, records.EmittedEvent):
        raise msgspec.ValidationError(f"a record of another kind: {type(record).__name__}")
    key = record.fields.get("delivery", {}).get("key", delivery.record.seq)
    fields = {**record.fields, "delivery": {"key": key, "attempt": delivery.attempt}}
    return record.name, Event(record.name, fields)


def _delivery_terms_of(manifest: Manifest) -> object:
    return manifest.events, manifest.intercepts, manifest.when, manifest.max

"""Durable delivery: the journal delivers every event to a hook at least once, or keeps it as a dead letter.

    an event is fired
       │ Recorder (one, if any durable hook wants the event)
       ├─ part of a turn or a delivery ──> OwedEvents ── with its fact ───> gw.owed.<conv>.<name> ┐
       └─ any other ─────────────────────> EventIntake ───────────────────> gw.ev.<name> ─────────┤
                                                                                                  │
    DurableConsumer, one for each hook <── FetchedDeliveries <── the hook's consumer <────────────┘
       │                                                                  ▲
       ├─ the breaker has tripped ──> give back, wait                     │ /letters retry
       ├─ the filter rejects it ────> acknowledge                         │
       ├─ the hook has handled it ──> acknowledge                         │
       └─ the hook has failed ──────> try again, alone, after a pause     │
                                         └─ after the last try ──> dead letter, acknowledge

If a turn repeats an event after a crash, the event has the same id, so the journal keeps one record. Once a hook's
consumer exists in the journal, every matching event is queued for the hook, whichever gateway emits the event
(`other_hooks`).

A worker receives many events in one message (see `fetched_deliveries` and `owed_delivery`); any other hook gets its
events one at a time. A failed delivery is repeated four times; the engine counts the tries, so that a crash counts too.
While a hook is broken or its folder is missing, its backlog stays in the journal. Each delivery carries a key that is
the same at every retry: a hook that must not act twice remembers the key.

The journal keeps events for a limited time. If no gateway on the journal had a hook in any source during this time, the
next start removes the hook's consumer, dead letters and store (`hook_expiry`). So a moved folder, an unloaded skill or
an unmounted disk loses no event that could still be delivered.
"""

import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import anyio
import msgspec

from gateway.backoff import Attempts
from gateway.engine.interface import HELD_SECONDS, ILL_JOURNAL_BACKOFF, ConsumerSpec, Delivery, Engine
from gateway.engine.keyed_workers import TooNewRecords, refuse_delivery
from gateway.errors import Duplicate, EngineError, EngineTooNew
from gateway.events import Event
from gateway.events.catalogue import EVENT_SPECS
from gateway.hooks.cause import stamp_event, use_cause
from gateway.hooks.durable.dead_letters import (
    TOKEN_PREFIX,
    build_filters,
    can_be_durable,
    make_dead_letter_put,
    subject_token_of,
)
from gateway.hooks.durable.event_expiry import EventExpiry
from gateway.hooks.durable.event_intake import EventIntake
from gateway.hooks.durable.fetched_deliveries import AttemptCount, FetchedDeliveries
from gateway.hooks.durable.hook_expiry import HookExpiry
from gateway.hooks.durable.owed_delivery import OwedDelivery, read_plain_deliveries
from gateway.hooks.folders.calls import HookCalls
from gateway.hooks.hook import RepeatFilter
from gateway.hooks.mailbox import QueuedEvent
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.places.other_hooks import OtherHooks, OwedFilter
from gateway.hooks.recorder import OwedEvent, OwedEvents
from gateway.hooks.services import HookServices
from gateway.hooks.stats import NOTHING_OWED, OwedFacts
from gateway.hooks.subscriptions import Subscription
from gateway.hooks.wires.field_encoding import encode_event
from gateway.hooks.wires.wire import HookFailed
from gateway.records import records, subjects
from gateway.yaml_source.units import format_count

RECORDER_KEY = "durable delivery"  # its name in the registry
RETRY_JITTER = 0.2
BATCH_BYTES = 1 << 20  # the most bytes of events in one message, unless a single event is larger
DRAIN_WAIT = 10.0  # seconds that the stop waits for a journal that takes no appends
STANDING_WAIT = 5.0  # seconds that the start waits for the hooks' consumers
JOURNAL_RETRY = 1.0  # seconds before the journal is asked again after it failed

log = logging.getLogger("gateway.hooks")


class DurableDelivery:
    """The part that all durable hooks of a gateway share: the recorder of events, and the journal."""

    def __init__(self, engine: Engine, services: HookServices, others: OtherHooks) -> None:
        self.engine = engine
        self.services = services
        self._others = others
        self.hook_expiry = HookExpiry(engine)
        self.expiry = EventExpiry(engine, lambda token: self._hooks.get(token, token.removeprefix(TOKEN_PREFIX)))
        self.too_new = TooNewRecords()
        self._intake = EventIntake(engine)
        self._hooks: dict[str, str] = {}  # the names of hooks, by consumer
        self._owed: dict[str, DurableConsumer] = {}
        self._starting: set[DurableConsumer] = set()
        self._filters: tuple[OwedFilter, ...] = ()  # of all hooks that want events of this gateway
        self._names: tuple[str, ...] = ()
        self._left_out: frozenset[str] = frozenset()  # fields that no such hook reads
        self._subscription = Subscription()
        self.may_deliver = anyio.Event()

    def begin(self) -> None:
        """Start to record events, until the hooks end."""
        self._others.on_change = self._subscribe
        self._subscribe()
        self.services.tasks.start_soon(self._intake.run)

    def deliver(self) -> None:
        """Start to deliver events and to expire old events, until the hooks end."""
        self.may_deliver.set()
        self.services.tasks.start_soon(self.expiry.run)

    async def wait_until_standing(self) -> None:
        """Wait until the journal keeps events for the hooks found so far, or until a few seconds have passed."""
        with anyio.move_on_after(STANDING_WAIT):
            for consumer in tuple(self._starting):
                await consumer.is_standing.wait()

    async def drain(self) -> None:
        """Wait until all fired events are in the journal, but only a few seconds if the journal takes no appends."""
        with anyio.move_on_after(DRAIN_WAIT) as limit:
            await self._intake.wait_until_written()
        self._intake.end()
        if limit.cancelled_caught:
            log.error("durable hooks are not told of the last events: the journal did not take them")

    def expect(self, consumer: "DurableConsumer") -> None:
        """Note that this hook's consumer is about to be created."""
        self._hooks[consumer.token] = consumer.hook
        self._starting = {each for each in self._starting if each.hook != consumer.hook} | {consumer}

    def add(self, consumer: "DurableConsumer") -> None:
        """Record events for this hook, from the next event on."""
        if consumer not in self._starting:  # the consumer was cancelled meanwhile
            return
        self._starting.discard(consumer)
        self._owed[consumer.hook] = consumer
        self._subscribe()

    def list_owed(self) -> tuple[records.OwedHook, ...]:
        """List the durable hooks of this gateway."""
        return tuple(consumer.filter.owed for consumer in (*self._owed.values(), *self._starting))

    def keeps_for(self, hook: str) -> bool:
        return hook in self._owed

    def remove(self, hook: str) -> None:
        """Stop recording events for this hook."""
        self._starting = {consumer for consumer in self._starting if consumer.hook != hook}
        if self._owed.pop(hook, None):
            self._subscribe()

    async def note_gone(self, store_name: str) -> None:
        """Note in the journal that the hook was here until now: its folder was just removed."""
        token = subject_token_of(store_name)
        if token in await self.engine.consumers():
            await self.hook_expiry.note(token)

    async def forget_gone_hooks(self, list_present: Callable[[], Iterable[str]]) -> None:
        """Remove durable hooks that no gateway has had for a long time.

        `list_present` returns the store names of our hooks.
        """
        self.services.tasks.start_soon(self.hook_expiry.run)
        try:
            async for token in self.hook_expiry.follow(lambda: map(subject_token_of, list_present())):
                await self._forget(token)
        except EngineError as error:
            log.info("which hooks are gone for good is found out at another start: %s", error)

    async def _forget(self, token: str) -> None:
        await self.engine.forget_consumer(token)
        await self.engine.purge(subjects.dead_letter_subject_of(token))
        await self.engine.purge(subjects.retry_subject_of(token))
        await self._purge_store(token)
        log.info("%s is gone for good: what the journal held for it is forgotten", token)

    async def _purge_store(self, token: str) -> None:
        """Remove the values that the hook stored; the token is derived from the name of the hook's store."""
        found = records.read_all(self.engine, subjects.HOOK_STORE_SUBJECTS, records.StoredValue)
        for hook in {kept.hook async for _, kept in found if subject_token_of(kept.hook) == token}:
            await self.engine.purge(subjects.hook_store_subject_of(hook))

    def _subscribe(self) -> None:
        self._filters = tuple(_list_filters(self._owed.values(), self._others))
        names = tuple(dict.fromkeys(name for one in self._filters for name in one.owed.events))
        left_out = frozenset.intersection(*(one.left_out for one in self._filters)) if names else frozenset()
        if (names, left_out) == (self._names, self._left_out):
            return
        before, self._names, self._left_out = self._subscription, names, left_out
        record, is_written = self.services.registry.recorders.add, self._intake.wait_until_written
        self._subscription = (
            record(names, self._record, key=RECORDER_KEY, is_written=is_written) if names else Subscription()
        )
        for hook in self._subscription.hooks:
            hook.traits = hook.traits._replace(left_out=left_out)
        before.remove()

    def _record(self, event: QueuedEvent, owed: OwedEvents | None) -> None:
        name, fields, at, cause = event[:4]
        stamp_event(fields, cause, at)
        if owed is not None and str(fields["id"]) in owed.known:
            return
        for one in self._filters:
            if one.takes(name, fields):
                break
        else:
            return
        if name not in EVENT_SPECS and not can_be_durable(name):
            log.warning("%s cannot be delivered durably: a journal takes no such name", name[:100])
            return
        plain, _ = encode_event(name, fields, self._left_out)
        depth = cause[1] + 1 if cause else 0
        # Encoded once: decoding and encoding a long prompt again would cost more than its turn.
        written: Any = msgspec.Raw(plain)
        emitted = records.EmittedEvent(name=name, fields=written, depth=depth)
        if owed is None or owed.is_over:
            self._intake.add(records.make_event_put(emitted, f"ev:{fields['id']}"))
        else:
            owed.add(OwedEvent(str(fields["id"]), name, records.encode(emitted)))


class DurableConsumer:
    """The delivery of pending events to one hook. `manifest` names the events, and `calls` passes them to the hook.

    `token` is the hook's name in the journal. A hook of the same name from another place has another token.
    """

    def __init__(self, manifest: Manifest, token: str, shared: DurableDelivery, calls: HookCalls) -> None:
        left_out = manifest.reading.left_out
        self.terms = (token, manifest.events, manifest.intercepts, manifest.when, manifest.max, left_out)
        self.hook, self.token = manifest.folder, token
        owed = records.OwedHook(manifest.folder, token, manifest.events, manifest.intercepts, manifest.when)
        self.filter = OwedFilter(owed, left_out)
        self.is_standing = anyio.Event()  # set once the journal keeps events for this hook
        self.scope = anyio.CancelScope()
        self._spec = ConsumerSpec(token, build_filters(token, manifest.events), HELD_SECONDS, new_only=True)
        self._at_once = manifest.max
        self._repeats = RepeatFilter()
        self._shared = shared
        self._breaker = calls.breaker
        self._calls = calls
        self._spared = AttemptCount()

    async def run(self) -> None:
        """Deliver until the scope is cancelled; the journal keeps later events."""
        await self._stand()
        with self.scope:
            await self._shared.may_deliver.wait()
            while True:
                await self._serve()
                await anyio.sleep(JOURNAL_RETRY)

    async def _stand(self) -> None:
        """Create the consumer in the journal, so that the journal queues events for the hook."""
        attempts = Attempts(ILL_JOURNAL_BACKOFF)
        while not self.is_standing.is_set():
            try:
                await self._shared.engine.consumer(self._spec)
                await self._shared.hook_expiry.note(self.token)
            except EngineError as error:
                log.warning("%s waits for the journal: %s", self.hook, error, extra={"hook": self.hook})
                await anyio.sleep(attempts.pause())
            else:
                self._shared.add(self)
                self.is_standing.set()

    async def _serve(self) -> None:
        """Deliver until the journal fails."""
        try:
            consumer = await self._shared.engine.consumer(self._spec)
            fetched = FetchedDeliveries(consumer, self._shared.expiry.note_told)
            async with fetched.holding(), anyio.create_task_group() as tasks:
                for _ in range(self._at_once):
                    tasks.start_soon(self._deliver_all, fetched)
        except* EngineError as failed:
            log.warning("%s waits for the journal: %s", self.hook, failed.exceptions[0], extra={"hook": self.hook})

    async def _deliver_all(self, fetched: FetchedDeliveries) -> None:
        while True:
            if self._breaker.remaining:
                for spared in await fetched.give_back_waiting(self._breaker.remaining):
                    self._spared.add(spared)
                await anyio.sleep(self._breaker.remaining)
            first = await fetched.take()
            is_alone = self._at_once > 1 or first.attempt > 1 or not self._calls.takes_batches
            fresh = [first] if is_alone else [first, *fetched.take_waiting(BATCH_BYTES - len(first.record.data))]
            plain = [] if is_alone else read_plain_deliveries(fresh)
            fetched.put_back(*fresh[max(1, len(plain)) :])
            if plain:
                await self._deliver_wanted(plain, fetched)
            else:
                await self._deliver(first, fetched)

    async def _deliver_wanted(self, plain: Sequence[OwedDelivery], fetched: FetchedDeliveries) -> None:
        """Deliver the wanted events in one message, and acknowledge the others: the consumer's filter may be wider."""
        takes, is_filtered = self.filter.takes, bool(self.filter.owed.when)
        batch, unwanted = list[OwedDelivery](), list[Delivery]()
        for one in plain:
            if takes(one.name, one.read_fields() if is_filtered else one.owner):
                batch.append(one)
            else:
                unwanted.append(one.delivery)
        if unwanted:
            await fetched.settle(*unwanted)
        if len(batch) > 1:
            await self._deliver_batch(batch, fetched)
        elif batch:
            await self._deliver(batch[0].delivery, fetched)

    async def _deliver_batch(self, batch: Sequence[OwedDelivery], fetched: FetchedDeliveries) -> None:
        told: list[HookFailed | None] = []
        try:
            await self._calls.deliver_all(batch, told)
        except HookFailed:  # the outcomes are unknown: each event is delivered again alone
            pause = _pause_after(1, self._shared.services.environment.retries)
            await fetched.give_back(pause, *(one.delivery for one in batch))
            return
        finally:
            with anyio.CancelScope(shield=True):
                for one, failed in zip(batch, told, strict=False):
                    if failed:
                        await self._note_failure(one.delivery, one.name, failed, fetched)
                await fetched.settle(*[one.delivery for one, failed in zip(batch, told, strict=False) if not failed])
        fetched.put_back(*(one.delivery for one in batch[len(told) :]))

    async def _deliver(self, delivery: Delivery, fetched: FetchedDeliveries) -> None:
        """Deliver one event, and report the outcome to the journal."""
        if not self._breaker.admits():
            self._spared.add(delivery)
            await fetched.give_back(max(self._breaker.remaining, JOURNAL_RETRY), delivery)
            return
        try:
            name, event, depth = _event_from(delivery, self._spared.count_tries(delivery))
        except EngineTooNew as error:
            self._breaker.left()
            self._shared.too_new.note(f"the pending events of {self.hook}", error)
            fetched.release(delivery)
            await refuse_delivery(delivery)
            return
        except msgspec.MsgspecError as error:
            self._breaker.left()
            await self._bury(delivery, str(error), fetched)
            return
        if not self.filter.takes(name, event):  # the consumer's filter is wider, or the manifest has changed
            self._breaker.left()
            await fetched.settle(delivery)
            return
        if find_files := self._shared.services.environment.ports.find_files:
            event = Event(name, await find_files(event))
        try:
            with use_cause((str(event.get("id", "")), depth)):
                await self._calls.deliver(name, event)
        except HookFailed as failed:
            await self._note_failure(delivery, name, failed, fetched)
        else:
            await fetched.settle(delivery)

    async def _note_failure(
        self, delivery: Delivery, name: str, failed: HookFailed, fetched: FetchedDeliveries
    ) -> None:
        if self._repeats.is_news(str(failed), time.monotonic()):
            log.warning("%s failed at %s: %s", self.hook, name, failed, extra={"hook": self.hook})
        retries, tries = self._shared.services.environment.retries, self._spared.count_tries(delivery)
        if tries > len(retries) and failed.kind not in ("refused", "short", "untrusted"):
            await self._bury(delivery, str(failed), fetched)
        else:
            await fetched.give_back(_pause_after(tries, retries), delivery)

    async def _bury(self, delivery: Delivery, reason: str, fetched: FetchedDeliveries) -> None:
        """Make a dead letter of a delivery."""
        said, tries = self._shared.services.redact(reason)[:2000], self._spared.count_tries(delivery)
        try:
            await self._shared.engine.append(make_dead_letter_put(self.token, self.hook, delivery.record, said, tries))
        except Duplicate:
            pass  # written before a crash, which came before the acknowledgement
        except EngineError:
            await fetched.give_back(JOURNAL_RETRY, delivery)
            raise
        words = "%s did not take an event, in %s; it is a dead letter: %s"
        log.error(words, self.hook, format_count(tries, "try", "tries"), reason, extra={"hook": self.hook})
        await fetched.settle(delivery)


class DurableQueue:
    """The recording and delivery of events for one hook, while the hook is durable.

    Without a journal, `shared` is None, and no hook is durable.
    """

    def __init__(self, name: str, shared: DurableDelivery | None, calls: HookCalls) -> None:
        self._name = name
        self._token = subject_token_of(name)
        self._shared = shared
        self._calls = calls
        self._consumer: DurableConsumer | None = None

    def follow(self, manifest: Manifest, store_name: str) -> bool:
        """Record and deliver events by this manifest; return False if the hook is not durable."""
        self._token = subject_token_of(store_name)
        if manifest.delivery != "durable" or not self._shared:
            self.end()
            return False
        consumer = DurableConsumer(manifest, self._token, self._shared, self._calls)
        if self._consumer is None or self._consumer.terms != consumer.terms:
            self.rest()
            self._consumer = consumer
            self._shared.expect(consumer)
            self._shared.services.tasks.start_soon(consumer.run)
        return True

    @property
    def is_standing(self) -> bool:
        """Return True once the journal keeps new events for the hook."""
        return self._shared is None or self._shared.keeps_for(self._name)

    async def read_owed(self) -> OwedFacts:
        """Ask the journal for the number and the age of the pending events."""
        if self._shared is None or not (owed := await self._shared.engine.depth(self._token)):
            return NOTHING_OWED
        engine = self._shared.engine
        oldest = await engine.list_owed(self._token, math.inf, limit=1)
        return OwedFacts(owed, max(0.0, engine.clock.latest() - oldest[0].ts) if oldest else 0.0)

    def rest(self) -> None:
        """Pause the delivery; the journal keeps events for the hook."""
        if self._consumer:
            self._consumer.scope.cancel()
            self._consumer = None

    def end(self) -> None:
        """Stop recording events; the backlog stays in the journal."""
        self.rest()
        if self._shared:
            self._shared.remove(self._name)


def _list_filters(here: Iterable[DurableConsumer], others: OtherHooks) -> Iterator[OwedFilter]:
    """Yield the filters of all hooks that want events of this gateway: its own hooks, and hooks of other gateways."""
    filters = [consumer.filter for consumer in here]
    yield from filters
    yield from others.list_filters({one.owed.token for one in filters})


def _pause_after(attempt: int, retries: Sequence[float]) -> float:
    seconds = retries[min(attempt, len(retries)) - 1] if retries else JOURNAL_RETRY
    return seconds * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311 - jitter, no secret


def _event_from(delivery: Delivery, tries: int) -> tuple[str, Event, int]:
    """Return the name of a delivery's event, the event, and its depth: the number of events that led to it."""
    record = records.decode(delivery.record.data)
    if not isinstance(record, records.EmittedEvent):
        raise msgspec.ValidationError(f"a record of another kind: {type(record).__name__}")
    key = record.fields.get("delivery", {}).get("key", delivery.record.seq)
    fields = {**record.fields, "delivery": {"key": key, "attempt": tries}}
    return record.name, Event(record.name, fields), record.depth

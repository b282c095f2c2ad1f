"""The calls of one hook: the breaker admits a call, the wire carries it, and the record keeps its outcome."""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from gateway.events import Deny, Event, Pause
from gateway.hooks.durable.owed_delivery import OwedDelivery, encode_batch
from gateway.hooks.folders.call_outcomes import CallOutcomes
from gateway.hooks.folders.handlers import WHOLE_HOOK, HandlerTarget, ask_version, limit_decision, notify_handlers
from gateway.hooks.folders.hook_process import DecisionWire, HookProcess
from gateway.hooks.hook import Remark, RepeatFilter
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.registry import INTERCEPT_LIMIT
from gateway.hooks.services import TELLING_LIMIT, HookRights, HookServices, WaitUntilTold
from gateway.hooks.stats import MAX_GIVEN, DecisionFailures, describe_outcome
from gateway.hooks.wires.codec import RpcMessage
from gateway.hooks.wires.event_calls import CallTerms, report_answer
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import BatchOutcome, WorkerHandle
from gateway.worker.protocol import BatchTerms

OBSERVERS_FIRST = "observers first"  # the key of a bag: the last event that found all observers notified
MAX_REMARKS = 100  # remembered, so that no remark is repeated
LATE_LIMIT = 2.0  # seconds that a guard has at each call after a call that took too long
BATCH_SECONDS = 0.5  # seconds after which no further event of a batch is begun
SHUTS = ("short", "untrusted")  # kinds of failures at which a guard of another program denies, too
MAX_REFUSAL = 600  # characters of a guard's failure that a person sees

log = logging.getLogger("gateway.hooks")


def describe_help(name: str) -> str:
    """Name the commands and the setting that help when this hook denies because it fails."""
    return (
        f"to see more: hermes-gateway hooks info {name}; to go on without it: hermes-gateway hooks disable {name}; "
        f"with hooks.{name}.on_error: skip in config.yaml its failures stop nothing"
    )


class FailedBefore(HookFailed):
    """A call that was not made, because the hook has failed too often."""


class HookRemarks(msgspec.Struct, eq=False):
    """The parts of a hook's answers that have no effect.

    Each part is logged, in the gateway's log and in the hook's log, at most once a minute.
    """

    _name: str
    _services: HookServices
    _known: dict[str, RepeatFilter] = {}

    def add(self, text: str) -> None:
        if len(self._known) > MAX_REMARKS:
            self._known.clear()
        if self._known.setdefault(text, RepeatFilter()).is_news(text, time.monotonic()):
            log.warning("%s %s", self._name, text, extra={"hook": self._name})
            self._services.note(self._name, text)


class HookCalls:
    """The calls of one hook.

    The registry calls `decide` and `observe`; `use` sets the version of the hook that both call. `wait_until_told`
    waits until the hook has received the events of a conversation that it observes.
    """

    def __init__(
        self,
        name: str,
        services: HookServices,
        process: HookProcess,
        rights: HookRights,
        wait_until_told: WaitUntilTold,
        undecided: DecisionFailures,
    ) -> None:
        self.outcomes = CallOutcomes(name, services, process)
        self.record, self.breaker = self.outcomes.record, self.outcomes.breaker
        self.undecided = undecided
        self.remarks = HookRemarks(name, services)
        self._name = name
        self._services = services
        self._process = process
        self._rights = rights
        self._wait_until_told = wait_until_told
        self._intercepted = EventSelector(())
        self.questions: set[Any] = set()  # conversations in which a question of the hook to a person is open
        self._is_late = False  # the last decision took too long
        self._version: HookVersion
        self._manifest: Manifest  # both since `use`, which comes before the first call

    def use(self, version: HookVersion) -> None:
        """Set the version that the next calls use."""
        assert version.manifest
        self._version, self._manifest = version, version.manifest
        self._intercepted = EventSelector(version.manifest.intercepts)
        self.outcomes.is_worker = version.manifest.wire == "worker"
        self.end()
        if version.dialect.turn.events:
            self._services.decisions.join(self._name, self._decide, EventSelector(version.dialect.turn.events))
        if version.dialect.is_told_first:
            self._services.observers_first.join(self._name, self._wait_until_told)

    def end(self) -> None:
        """Leave the groups of hooks that decide together or that are notified first, because the hook is gone."""
        self._services.decisions.remove(self._name)
        self._services.observers_first.remove(self._name)

    async def decide(self, event: Event, remark: Remark | None = None) -> Any:
        """Return the hook's answer as an interceptor.

        `remark` gets the parts of the answer that have no effect; by default these parts are logged. Raises HookFailed
        if the hook cannot answer.
        """
        manifest = self._manifest
        if not self._version.dialect.wants(manifest, event):
            return None
        try:
            if not self._services.decisions.has(self._name, event.name):
                return await self._decide(event, remark)
            turn = self._version.dialect.turn
            limit = min(turn.seconds, INTERCEPT_LIMIT)
            return await self._services.decisions.ask(self._name, event, limit, can_change=turn.can_change)
        except FailedBefore as failed:
            refusal = self._refusal(event, failed)
            if manifest.on_error == "skip" and not manifest.denies(event.name):
                return None
            raise refusal from None
        except HookFailed as failed:
            refusal = self._refusal(event, failed)
            if failed.kind in SHUTS and event.name in manifest.reading.shut:
                return Deny(str(refusal))
            raise refusal from None

    async def _decide(self, event: Event, remark: Remark | None = None) -> Any:
        if event.name != "agent:end":  # no file contains this event before the decision
            await self._wait_for_files(event)
        await self._wait_for_observers(event)
        if not self.breaker.admits():
            self.record.skipped += 1
            last = self.record.last_error
            why = f"; the last time: {last.message}" if last else ""
            raise FailedBefore(f"it failed too often and is left alone for a while{why}", kind="refused")
        with self.outcomes.recorded(event.name, event) as begun:
            answer = await self._ask(event, remark or self.remarks.add)
            self.outcomes.answered(describe_outcome(answer), (event.name, time.perf_counter() - begun))
        return answer

    async def _wait_for_observers(self, event: Event) -> None:
        """Wait until observers have noted the earlier events, as Hermes does.

        An event that a hook caused does not wait, because the hook would wait for itself.
        """
        if self._version.dialect.waits_for_told and not event.get("cause"):
            known = event.bags.own.setdefault(OBSERVERS_FIRST, {})  # shared by all hooks that decide about this event
            if known.get("event") == event.get("id", event):
                return
            late = await self._services.observers_first.wait(event.get("session_key"))
            known["event"] = event.get("id", event)
            if late:
                words = "%s decides about %s before %s has noted what came before it: that takes more than %g s"
                log.warning(words, self._name, event.name, late, TELLING_LIMIT, extra={"hook": self._name})

    async def _ask(self, event: Event, remark: Remark) -> Any:
        limit = limit_decision(self._version)
        if self._is_late and self._manifest.denies(event.name):
            limit = min(limit, LATE_LIMIT)
        self.questions.discard(event.get("session_key"))
        try:
            wire = await self._process.get_wire(limit)
            with ExitStack() as used, self._rights.handling(event):
                wire = DecisionWire(self._process, wire, used)
                answer = await ask_version(self._version, wire, self._targets(event.name), event, remark, limit)
        except Pause:
            self.questions.add(event.get("session_key"))
            raise
        except HookFailed as failed:
            self._is_late = self._is_late or failed.kind == "timeout"
            raise
        self._is_late = False
        return answer

    def _refusal(self, event: Event, failure: HookFailed) -> HookFailed:
        """Return the failure in words for the person whose action it stops; record every failure."""
        said, called = self._services.redact(str(failure)[:MAX_REFUSAL]), self._version.called
        is_shut = failure.kind in SHUTS and event.name in self._manifest.reading.shut
        if is_shut or self._manifest.denies(event.name):
            self.undecided.add(f"{event.name} was denied ({said})")
            # Its error may repeat the text that the hook was to hide.
            shown = "it could not look at what this gave" if event.name.endswith(":after") else said
            text = f"{shown}\n{describe_help(called)}"
            return HookFailed(text, kind=failure.kind, traceback=failure.traceback)
        remedy = f"hooks.{called}.on_error: deny in config.yaml would refuse it"
        self.undecided.add(f"{event.name} went on without its decision ({said}); {remedy}")
        return failure

    async def observe(self, name: str, event: Event) -> None:
        """Deliver an event that the hook observes. Raises HookFailed if the hook could not be reached, or failed."""
        if name in self._intercepted or not self._version.dialect.wants(self._manifest, event):
            return
        await self._wait_for_files(event)
        if self.breaker.admits():
            await self.deliver(name, event)
        else:
            self.record.skipped += 1

    async def _wait_for_files(self, event: Event) -> None:
        if (writer := self._services.environment.ports.file_writer) and self._manifest.reading.files:
            await writer.wait_for_files(self._manifest.reading.files, event)

    async def deliver(self, name: str, event: Event, remark: Remark | None = None) -> None:
        """Deliver an event that the breaker has admitted. Raises HookFailed."""
        with self.outcomes.recorded(name, event) as begun:
            wire = await self._process.get_wire_alone()
            with self._process.using(wire), self._rights.handling(event):
                limit, left_out = self._manifest.observe_timeout, self._manifest.reading.left_out
                terms = CallTerms(limit, remark or self.remarks.add, left_out)
                await notify_handlers(wire, self._targets(name), event, terms)
            self.outcomes.answered("ok", (name, time.perf_counter() - begun))

    @property
    def takes_batches(self) -> bool:
        """Return True if the hook takes many events in one message: it is up, does not fail, and is one function."""
        wire, targets = self._process.wire, self._process.targets
        is_up = isinstance(wire, WorkerHandle) and not wire.gone and targets is not None and not targets.names
        return is_up and self.breaker.state == "closed"

    async def deliver_all(self, batch: Sequence[OwedDelivery], told: list[HookFailed | None]) -> None:
        """Deliver these events, one after the other.

        `told` gets the outcome of each event, in order: None or a failure, even if the caller is cancelled. Raises
        HookFailed if all outcomes are unknown.
        """
        wire = await self._process.get_wire_alone()
        if not self.takes_batches or not isinstance(wire, WorkerHandle):
            return  # the hook has changed meanwhile
        limit, failures = self._manifest.observe_timeout, self.breaker.threshold - self.breaker.failures
        terms = BatchTerms(seconds=min(BATCH_SECONDS, limit / 4), failures=failures)
        begun = time.perf_counter()
        owners = [(one.name, one.depth, one.owner) for one in batch]
        try:
            with self._process.using(wire), self._rights.handling_all(owners):
                await wire.tell_batch(
                    encode_batch(batch), terms, limit, lambda found: self._note_told(batch, found, told)
                )
        except HookFailed as failed:
            self.outcomes.failed(batch[0].name, time.perf_counter() - begun, failed)
            raise

    def _note_told(self, batch: Sequence[OwedDelivery], found: BatchOutcome, told: list[HookFailed | None]) -> None:
        shown = 0 if self._services.environment.ports.follow_call else len(found.seconds) - MAX_GIVEN
        calls = [(one.name, seconds) for one, seconds in zip(batch, found.seconds, strict=False)]
        told += map(found.failed.get, range(len(calls)))
        counted = 0
        noted = {*found.failed, *found.answers, *range(shown, len(calls))}
        for place in sorted(noted.intersection(range(len(calls)))):
            one, failure = batch[place], told[place]
            if passed := calls[counted : place if failure else place + 1]:
                self.outcomes.answered("ok", *passed)
            counted = place + 1
            if failure:
                self.outcomes.failed(one.name, calls[place][1], failure)
            if place >= shown:  # the last call is shown
                self.outcomes.show(one.name, one.read_fields())
            if answer := found.answers.get(place):
                said = msgspec.convert(answer, RpcMessage)
                report_answer(said, one.name, one.read_fields(), self.remarks.add)

    def _targets(self, name: str) -> Sequence[HandlerTarget]:
        return self._process.targets.of(name) if self._process.targets else WHOLE_HOOK

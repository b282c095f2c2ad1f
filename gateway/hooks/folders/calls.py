"""The calls of one hook: admitted by its breaker, made on its wire, written into its record."""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from gateway.events import Event, Pause, outcome_from
from gateway.hooks.folders.handlers import WHOLE_HOOK, HandlerTarget, ask_handlers, notify_handlers
from gateway.hooks.folders.hook_process import HookProcess
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.services import HookRights, HookServices
from gateway.hooks.folders.sources import HookVersion
from gateway.hooks.folders.stats import Breaker, DecisionFailures, HookStats, describe_outcome
from gateway.hooks.patterns import EventSelector
from gateway.hooks.registry import INTERCEPT_LIMIT
from gateway.hooks.wires.wire import HookFailed

TELLING_LIMIT = 5.0  # seconds that a decision waits for what the same hook is being told
MAX_REFUSAL = 600  # characters of what a person is told of a guard's failure

log = logging.getLogger("gateway.hooks")


def describe_help(name: str) -> str:
    """What helps when this hook denies because it fails."""
    return (
        f"hermes-gateway hooks info {name} shows more, and hermes-gateway hooks disable {name} goes on without it; "
        f"with hooks.{name}.on_error: skip in config.yaml its failures stop nothing"
    )


class FailedBefore(HookFailed):
    """It failed so often that it is not asked now."""


class HookCalls:
    """`decide` and `observe` are what the registry calls; `use` says of which version. `wait_until_told` waits until
    it has been told of all that it observes.
    """

    def __init__(
        self,
        name: str,
        services: HookServices,
        process: HookProcess,
        rights: HookRights,
        wait_until_told: Callable[[], Awaitable[None]],
    ) -> None:
        self.record = HookStats(services.redact)
        self.breaker = Breaker(time.monotonic)
        self.undecided = DecisionFailures()
        self._name = name
        self._services = services
        self._process = process
        self._rights = rights
        self._wait_until_told = wait_until_told
        self._intercepted = EventSelector(())
        self._digest = ""  # of the version that is called
        self._version: HookVersion
        self._manifest: Manifest  # both since `use`, which comes before the first call

    def use(self, version: HookVersion) -> None:
        """From now on this version is called."""
        assert version.manifest
        if self._digest and version.digest != self._digest:
            self.undecided.forget()
        self._digest = version.digest or self._digest
        self._version, self._manifest = version, version.manifest
        self._intercepted = EventSelector(version.manifest.intercepts)
        if version.manifest.decide_together:
            self._services.decisions.join(self._name, self._decide)
        else:
            self._services.decisions.remove(self._name)

    def end(self) -> None:
        """The hook is gone."""
        self._services.decisions.remove(self._name)

    async def decide(self, event: Event) -> Any:
        """What it answers as an interceptor; HookFailed when it cannot."""
        manifest = self._manifest
        if not self._version.source.wants(manifest, event):
            return None
        try:
            if manifest.decide_together:
                return await self._services.decisions.ask(self._name, event, manifest.decide_together)
            return await self._decide(event)
        except FailedBefore as failed:
            refusal = self._refusal(event, failed)
            if manifest.on_error == "skip" and not manifest.denies(event.name):
                return None
            raise refusal from None
        except HookFailed as failed:
            raise self._refusal(event, failed) from None

    async def _decide(self, event: Event) -> Any:
        manifest = self._manifest
        if event.name != "agent:end":  # that stands nowhere before it has been decided
            await self._wait_for_files(event)
        if self._version.source.is_told_first and not event.get("cause"):  # its own doing would wait for itself
            with anyio.move_on_after(TELLING_LIMIT):
                await self._wait_until_told()
        if not self.breaker.admits():
            self.record.skipped += 1
            last = self.record.last_error
            why = f"; the last time: {last.message}" if last else ""
            raise FailedBefore(f"it failed too often and is left alone for a while{why}", kind="refused")
        with self._recorded(event.name) as begun:
            timeout = min(manifest.decide_timeout, INTERCEPT_LIMIT, manifest.decide_together or math.inf)
            answer = self._version.source.read_answer(manifest, await self._ask(event, timeout))
            outcome_from(answer)  # what means nothing is a failure
            self._answered(event.name, begun, describe_outcome(answer))
        return answer

    async def _ask(self, event: Event, timeout: float) -> Any:
        wire = await self._process.get_wire(timeout)
        with self._process.using(wire), self._rights.handling(event):
            return await ask_handlers(wire, self._targets(event.name), event, timeout)

    def _refusal(self, event: Event, failure: HookFailed) -> HookFailed:
        """The failure as it is told to whom it refuses something; it is remembered, whatever it refuses."""
        said, called = self._services.redact(str(failure)[:MAX_REFUSAL]), self._version.called
        if self._manifest.denies(event.name):
            self.undecided.add(f"{event.name} was denied ({said})")
            # What was given to it may stand in its error, and is just what it was to hide.
            shown = "it could not look at what this gave" if event.name.endswith(":after") else said
            text = f"{shown}\n{describe_help(called)}"
            return HookFailed(text, kind=failure.kind, traceback=failure.traceback)
        if self._manifest.hermes:
            remedy = f"hooks.{called}.on_error: deny in config.yaml would refuse it"
            self.undecided.add(f"{event.name} went on without its decision ({said}); {remedy}")
        return failure

    async def observe(self, name: str, event: Event) -> None:
        """Raises HookFailed when it could not be reached, or failed."""
        if name in self._intercepted or not self._version.source.wants(self._manifest, event):
            return
        await self._wait_for_files(event)
        if self.breaker.admits():
            await self.deliver(name, event)
        else:
            self.record.skipped += 1

    async def _wait_for_files(self, event: Event) -> None:
        if (writer := self._services.environment.file_writer) and self._manifest.files:
            await writer.wait_for_files(self._manifest.files, event)

    async def deliver(self, name: str, event: Event) -> None:
        """Tell it of an event that the breaker has admitted. Raises HookFailed."""
        with self._recorded(name) as begun:
            wire = await self._process.get_wire_alone()
            with self._process.using(wire), self._rights.handling(event):
                await notify_handlers(wire, self._targets(name), name, event, self._manifest.observe_timeout)
            self._answered(name, begun, "ok")

    @contextmanager
    def _recorded(self, name: str) -> Iterator[float]:
        """Write down how the call inside failed, or that it asked; when it began is for who writes down its answer."""
        begun = time.perf_counter()
        try:
            yield begun
        except Pause:
            self._answered(name, begun, "ask")
            raise
        except HookFailed as failed:
            self._failed(name, begun, failed)
            raise
        except Exception as error:  # what it answered, or asked, means nothing
            failure = HookFailed(f"{type(error).__name__}: {error}", kind="raised")
            self._failed(name, begun, failure)
            raise failure from error
        except BaseException:
            self.breaker.left()
            raise

    def _targets(self, name: str) -> Sequence[HandlerTarget]:
        return self._process.targets.of(name) if self._process.targets else WHOLE_HOOK

    def _answered(self, name: str, begun: float, outcome: str) -> None:
        self.record.answered(name, time.perf_counter() - begun, outcome)
        if self.breaker.succeeded():
            log.info("%s works again", self._name, extra={"hook": self._name})
        self._process.replace_if_worn()

    def _failed(self, name: str, begun: float, failure: HookFailed) -> None:
        if self.record.failed(name, time.perf_counter() - begun, failure):
            self.tell("hook:failed", f"{name}: {failure}")
        if self.breaker.failed():
            words = "%s failed %d times in a row and is left alone for a while"
            log.warning(words, self._name, self.breaker.failures, extra={"hook": self._name})
            self.tell("hook:tripped", str(failure))
        self._process.replace_if_worn()

    def tell(self, event: str, reason: str) -> None:
        self._services.registry.emit(event, hook=self._name, reason=self._services.redact(reason))

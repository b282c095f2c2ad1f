"""The outcomes of a hook's calls: the hook's record keeps them, its breaker counts them, and events report them."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.events import Event, Pause
from gateway.hooks.folders.hook_process import HookProcess
from gateway.hooks.services import HookServices
from gateway.hooks.stats import MAX_GIVEN, Breaker, CallEvent, HookCall, HookStats
from gateway.hooks.wires.wire import HookFailed

log = logging.getLogger("gateway.hooks")


class CallOutcomes:
    """The recorder of the outcome of each call of one hook."""

    def __init__(self, name: str, services: HookServices, process: HookProcess) -> None:
        self.record = HookStats(services.redact)
        self.breaker = Breaker(time.monotonic)
        self.is_worker = False  # the hook's process writes failures into the hook's log
        self._name = name
        self._services = services
        self._process = process

    @contextmanager
    def recorded(self, name: str, event: Event) -> Iterator[float]:
        """Record a failure of the call within the context, or its pause for a question.

        Yield the time at which the call began, with which the caller records the answer.
        """
        begun, given = time.perf_counter(), dict(event)
        try:
            yield begun
        except Pause:
            self.answered("ask", (name, time.perf_counter() - begun))
            raise
        except HookFailed as failed:
            self.failed(name, time.perf_counter() - begun, failed)
            raise
        except Exception as error:  # the hook's answer, or its question, has no meaning
            failure = HookFailed(f"{type(error).__name__}: {error}", kind="garbled")
            self.failed(name, time.perf_counter() - begun, failure)
            raise failure from error
        except BaseException:
            self.breaker.left()
            given = {}
            raise
        finally:
            if given:
                self.show(name, given)

    def show(self, name: str, given: Mapping[str, Any]) -> None:
        shown = CallEvent(self.record.last_fired, name, given)
        self.record.given = (*self.record.given, shown)[-MAX_GIVEN:]
        if follow := self._services.environment.ports.follow_call:
            follow(HookCall(self._name, name, given, self.record.traces[-1]))

    def answered(self, outcome: str, *calls: tuple[str, float]) -> None:
        """Count calls with this outcome, each with its event and its seconds."""
        self.record.answered(outcome, *calls)
        if self.breaker.succeeded():
            log.info("%s works again", self._name, extra={"hook": self._name})
        self._process.replace_if_worn()

    def failed(self, name: str, seconds: float, failure: HookFailed) -> None:
        if self.record.failed(name, seconds, failure):
            self.tell("hook:failed", f"{name}: {failure}")
            if failure.kind == "garbled" or not self.is_worker:  # otherwise the process has written it
                self._services.note(self._name, f"{name}: {failure}")
        if failure.kind in ("orphaned", "short", "untrusted"):  # no fault of the hook
            self.breaker.left()
        elif self.breaker.failed():
            words = "%s failed %d times in a row and is left alone for a while"
            log.warning(words, self._name, self.breaker.failures, extra={"hook": self._name})
            self.tell("hook:tripped", str(failure))
        self._process.replace_if_worn()

    def tell(self, event: str, reason: str) -> None:
        self._services.registry.emit(event, hook=self._name, reason=self._services.redact(reason))

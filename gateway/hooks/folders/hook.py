"""One folder as a hook: what its changes do to what runs, and what is known of it.

A change takes effect when the new version stands ready; one that does not work leaves the version before running, and
says so. While the hook cannot answer at all, what it guards is denied (`on_error: deny`); all else goes on without it.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import anyio

from gateway.errors import HookError
from gateway.hermes.plugin_manifest import apply_registrations
from gateway.hooks.folders.calls import HookCalls
from gateway.hooks.folders.durable import DurableConsumer
from gateway.hooks.folders.hook_process import HookProcess
from gateway.hooks.folders.readiness import Readiness
from gateway.hooks.folders.rights import HookRights
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.stats import HookState
from gateway.hooks.folders.subscription import FolderSubscription, patterns_of, subscription_spec_of
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle

# What runs goes on running when the version that was to follow it is one of these.
_KEEPS_RUNNING = frozenset({"broken", "missing", "pending"})
# Nobody wants what happens to be kept for a hook that is one of these.
_KEEPS_NOTHING = frozenset({"disabled", "refused", "pending"})

log = logging.getLogger("gateway.hooks")


class FolderHook:
    """`reassess` looks at the folder anew; it returns None when it is not there any more."""

    def __init__(self, name: str, house: HookServices, reassess: Callable[[str], Readiness | None]) -> None:
        self.name = name
        self.runner = HookProcess(name, house, self.restart)
        self._rights = HookRights(name, house)
        self.calls = HookCalls(name, house, self.runner, self._rights)
        self.subscription = FolderSubscription(house.registry, name, self.calls.decide, self.calls.observe)
        self.queue = DurableConsumer(name, house, self.calls)
        self.current: Readiness | None = None  # what is subscribed, and runs when something does
        self.latest: Readiness | None = None  # the last look at the folder
        self._reassess = reassess
        self._lock = anyio.Lock(fast_acquire=True)  # a thousand are taken at the start
        self._is_over = False

    @property
    def is_up(self) -> bool:
        wire = self.runner.handover.wire
        return wire is not None and not wire.gone

    @property
    def label(self) -> str:
        """What it is called, for people; folders may share it."""
        assessment = self.current or self.latest
        return assessment.manifest.name if assessment and assessment.manifest else ""

    @property
    def waits(self) -> bool:
        """Whether it is known, and was not needed yet."""
        return self.runner.state == "registered" and self.current is not None

    @property
    def needs_start(self) -> bool:
        """A plugin says what it has only when it runs."""
        return self.current is not None and self.current.manifest is not None and self.current.manifest.kind == "plugin"

    def remarks(self) -> list[str]:
        """What only its own process could tell."""
        manifest = self.current.manifest if self.current else None
        if manifest is None or self.runner.targets is None:
            return []
        if manifest.kind == "plugin":
            return [f"{self.name}: {remark}" for remark in self.runner.targets.offers.remarks]
        named = patterns_of(manifest.subscriptions)
        return [
            f"{self.name}/handler.py: warning: a function is marked with @on({name!r}), which HOOK.yaml does not name, "
            "so it is not called; add it to `intercepts` or `events`"
            for name in self.runner.targets.names
            if not any(named.match(name)) and name not in manifest.subscriptions
        ]

    async def take(self, assessment: Readiness, eager: bool) -> None:
        """The folder is like this now; what is being started from what it was before is given up."""
        if self.latest and assessment.is_same_as(self.latest):
            return
        self.latest = assessment
        if not self._runs_the_same(assessment):
            self.runner.cancel_start()
        async with self._lock:
            if self._is_over or assessment is not self.latest:
                return
            if self.is_up and self._runs_the_same(assessment):
                self._follow(assessment)
            else:
                await self._take(assessment, eager)

    async def restart(self, afresh: bool = False) -> None:
        """Start what is registered or has died; `afresh`: also what runs, by a new wire."""
        async with self._lock:
            if self._is_over or (self.is_up and not afresh):
                return
            assessment = self._reassess(self.name)
            if assessment is not None:
                await self._take(assessment, eager=True)

    async def end(self) -> None:
        """The folder is gone, or the gateway stops."""
        self._is_over = True
        self.subscription.end()
        self.queue.end()
        await self.runner.end()

    def _runs_the_same(self, assessment: Readiness) -> bool:
        return self.current is not None and assessment.is_same_code_as(self.current)

    async def _take(self, assessment: Readiness, eager: bool) -> None:
        self.latest = assessment
        if not assessment.is_ready:
            await self._refuse(assessment)
        elif eager or self.is_up or self.runner.state == "waiting":
            await self._start(assessment)
        else:
            self._follow(assessment)
            self.runner.enter("registered", "it starts at its first event")

    async def _refuse(self, assessment: Readiness) -> None:
        if self.is_up and assessment.state in _KEEPS_RUNNING:
            self._keep(assessment.reason)
            return
        self.current = assessment
        self._fail(assessment.state, assessment.reason)
        await self.runner.stop()

    async def _start(self, assessment: Readiness) -> None:
        assert assessment.manifest
        was_up, before = self.is_up, self.current
        if not was_up:
            self._follow(assessment)
            self.runner.enter("starting")
        try:
            if not await self.runner.start(assessment, self._rights.make_capability(assessment.manifest)):
                return
        except HookError as error:
            if self.is_up:
                self._keep(f"it does not start: {error}")
            elif isinstance(error, HookFailed) and error.kind == "orphaned":
                self.runner.start_again(str(error))
            else:
                self.current = assessment
                self._fail("broken", f"it does not start: {error}")
            return
        self._follow(self._completed(assessment))
        if before is None or before.digest != assessment.digest:
            self.calls.breaker.reset()
        self.calls.tell("hook:loaded", "reloaded" if was_up else "loaded")

    def _completed(self, assessment: Readiness) -> Readiness:
        """What a plugin subscribes to is known only now."""
        wire, manifest = self.runner.handover.wire, assessment.manifest
        if not manifest or manifest.kind != "plugin" or not isinstance(wire, WorkerHandle):
            return assessment
        return replace(assessment, manifest=apply_registrations(manifest, wire.loaded))

    def _follow(self, assessment: Readiness) -> None:
        assert assessment.manifest
        self.current = assessment
        self.calls.follow(assessment.manifest)
        self.subscription.update(subscription_spec_of(assessment.manifest, self.queue.follow(assessment.manifest)))

    def _fail(self, state: HookState, reason: str) -> None:
        self.runner.enter(state, reason)
        if self.current and (guard := self.current.denied):
            self.subscription.guard(guard, reason)
        else:
            self.subscription.end()
        if state in _KEEPS_NOTHING:
            self.queue.end()
        else:
            self.queue.rest()
        if state != "disabled":
            log.warning("%s is %s: %s", self.name, state, reason)
            self.calls.tell("hook:failed", reason)

    def _keep(self, why: str) -> None:
        self.runner.enter(self.runner.state, f"the last change does not count, the version before runs on: {why}")
        log.warning("%s: %s", self.name, self.runner.reason)
        self.calls.tell("hook:failed", self.runner.reason)

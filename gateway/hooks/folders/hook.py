"""One folder as a hook: its subscriptions, its running version, and the effect of a change of the folder on both.

A change takes effect when the new version is ready. If the new version does not work, the previous version runs on, and
the hook's status says so. While the hook cannot answer at all, the gateway denies the events that the hook guards
(`on_error: deny`); all other events go on without the hook.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from gateway.backoff import Attempts, Backoff
from gateway.errors import HookError
from gateway.events import Deny, Event
from gateway.hooks.folders.calls import MAX_REFUSAL, HookCalls, describe_help
from gateway.hooks.folders.durable import DurableDelivery, DurableQueue
from gateway.hooks.folders.handlers import add_registrations, describe_unused_mark
from gateway.hooks.folders.hook_process import HookProcess
from gateway.hooks.folders.kept_hooks import KeptHooks
from gateway.hooks.folders.own_changes import OwnChanges
from gateway.hooks.hook import HookTraits
from gateway.hooks.hook_words import watch_words
from gateway.hooks.mailbox import Observer
from gateway.hooks.manifests.manifest import Guard, Manifest
from gateway.hooks.manifests.reach import GRANTS, NO_LIMITS_KNOWN, HookLimits, ReachFacts, describe_reach, read_grants
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.idle import find_idle_rule
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.registry import HookRegistry
from gateway.hooks.services import OF_A_TERMINAL, HookRights, HookServices, MatchPattern, WaitUntilTold
from gateway.hooks.stats import DecisionFailures, HookState
from gateway.hooks.subscriptions import Subscription
from gateway.hooks.wires.wire import HookFailed, Wire
from gateway.hooks.wires.worker_handle import WorkerHandle

LookCall = Callable[[str], HookVersion | None]

LOOKS = Backoff(1.0, 30.0)  # seconds between two checks of a folder that cannot be read

# States of a new version that leave the running one in place.
_KEEPS_RUNNING = frozenset({"broken", "missing", "pending", "refused"})

log = logging.getLogger("gateway.hooks")


class FolderSubscription(msgspec.Struct, eq=False):
    """The registered hooks of one folder, all under the folder's name."""

    _registry: HookRegistry
    _name: str
    _calls: HookCalls
    _terms: tuple[object, ...] = ()  # the parts of the manifest that `_current` was made from
    _current: Subscription = msgspec.field(default_factory=Subscription)
    _lost: int = 0

    @property
    def queued(self) -> int:
        return sum(hook.queued for hook in self._current.hooks)

    @property
    def dropped(self) -> int:
        return self._lost + sum(hook.dropped for hook in self._current.hooks)

    async def wait_until_told(self, session: Any) -> None:
        """Wait until the hook has received every event so far of this conversation."""
        for hook in self._current.hooks:
            if isinstance(hook, Observer):
                await hook.mailbox.wait_until_told(session)

    def update(self, manifest: Manifest, is_durable: bool, *, is_restricted: bool) -> None:
        """Subscribe by this manifest from the next event on; events in the mailbox stay there.

        A durable hook gets the events that it observes from the journal.
        """
        when, order, mode, limit = manifest.when, manifest.order, manifest.mode, manifest.max
        observes = () if is_durable else tuple(name for name in manifest.events if name not in manifest.intercepts)
        reading = manifest.reading
        terms: tuple[object, ...] = (manifest.intercepts, manifest.on_error, reading.guards, reading.rewords)
        terms += (is_restricted, observes, when, order, mode, limit, reading.left_out)
        if terms == self._terms:
            return
        parts = []
        if names := manifest.intercepts:
            decide = watch_words(self._calls.decide, self._name) if is_restricted else self._calls.decide
            decides = self._registry.on(
                names, decide, order=order, when=when, on_error=manifest.on_error, key=self._name
            )
            parts.append(decides)
            guards, helps = EventSelector(reading.guards), describe_help(self._name)
            traits = HookTraits(guards, reading.rewords, reading.left_out, helps, self._calls.remarks.add)
            for hook in decides.hooks:
                hook.traits = traits
        if observes:
            watched = self._registry.watch(
                observes, self._calls.observe, when=when, mode=mode, max=limit, key=self._name
            )
            parts.append(watched)
            for hook in watched.hooks:
                hook.traits = HookTraits(left_out=reading.left_out)
        before, self._current, self._terms = self._current, Subscription.join(parts), terms
        self._current.replace(before)
        self._count_lost(before)

    def guard(
        self, version: HookVersion, guard: Guard, reason: str, doubt: str, match: MatchPattern | None = None
    ) -> None:
        """Deny the events that the hook guards, or may guard, while it cannot answer; name the remedy."""
        manifest = version.manifest
        guards = f"may guard this ({doubt})" if doubt else "guards this"
        text = f"{self._name} {guards} and cannot answer: {reason}\n{describe_help(self._name)}"

        async def deny(event: Event) -> Deny | None:
            is_meant = manifest is None or await version.dialect.guards(manifest, event, match)
            return Deny(text) if is_meant else None

        on = self._registry.on
        denied = on(guard.intercepts, deny, order=guard.order, when=guard.when, on_error="deny", key=self._name)
        self._end_with(denied)

    def end(self) -> None:
        """Send the hook no further event; waiting events are lost, and counted."""
        self._end_with(Subscription())

    def _end_with(self, subscription: Subscription) -> None:
        before, self._current, self._terms = self._current, subscription, ()
        before.remove()
        self._count_lost(before)

    def _count_lost(self, before: Subscription) -> None:
        self._lost += sum(hook.dropped for hook in before.hooks)


def _describe_meanwhile(version: HookVersion, doubt: str) -> str:
    """Say what happens to events while the hook cannot decide, and which setting changes that behaviour."""
    setting = f"hooks.{version.called}.on_error"
    manifest = version.manifest
    if version.denied:
        why = f", since {doubt}" if doubt else ""
        guarded = ", ".join(version.denied.intercepts)
        return f"{guarded} is denied meanwhile{why}, unless config.yaml says {setting}: skip"
    if manifest is None or manifest.on_error == "deny":
        return ""
    names = [name for name in manifest.intercepts if name.startswith(version.dialect.refuses)]
    return f"{', '.join(names)} goes on without it; {setting}: deny in config.yaml would refuse it" if names else ""


def _describe_lacking(wire: Wire | None, version: HookVersion | None, services: HookServices) -> str:
    """Name the set variables that the hook asks for and does not get, with the setting that passes them; "" if none."""
    if not isinstance(wire, WorkerHandle) or version is None:
        return ""
    hidden = services.environment.environ.keys() - wire.spec.env.keys() - OF_A_TERMINAL
    lacking = [name for name in wire.asked if name in hidden]
    own = services.settings_of(version.name, version.short).env
    line = f"hooks: {{{version.called}: {{env: [{', '.join((*own, *lacking))}]}}}}"
    asks = f"it asks for {', '.join(lacking)} of the environment, and is not given it"
    return f"{asks}; write `{line}` into config.yaml" if lacking else ""


def _expect(version: HookVersion, kept: KeptHooks) -> HookVersion:
    """Return the version with all events that the hook may subscribe to, until the hook itself subscribes."""
    if version.manifest is None:
        return version
    manifest = version.dialect.widen(version.manifest, kept.find_known(version), kept.find_manifest(version.name))
    if manifest is version.manifest:
        return version
    denied = version.denied if version.is_off or version.is_guarded_elsewhere else manifest.guard
    return replace(version, manifest=manifest, denied=denied)


class FolderHook:
    """One hook in a folder: the hook subscribes, starts, restarts and ends as its folder changes.

    `look` inspects the folder again, and returns None if the folder is gone; `durable` is None if the gateway has no
    journal. `kept` stores the hook's manifest, for the time when the folder is missing.
    """

    def __init__(
        self, name: str, services: HookServices, durable: DurableDelivery | None, look: LookCall, kept: KeptHooks
    ) -> None:
        self.name = name
        self.process = HookProcess(name, services, self.restart, lambda: self._can_rest)
        self._services = services
        self.rights = HookRights(name, services)
        self.subscription: FolderSubscription
        wait: WaitUntilTold = lambda session: self.subscription.wait_until_told(session)  # noqa: E731, PLW0108 - it is not there yet
        undecided = DecisionFailures(partial(kept.keep_missed, name), kept.find_missed(name))
        self.calls = HookCalls(name, services, self.process, self.rights, wait, undecided)
        self.subscription = FolderSubscription(services.registry, name, self.calls)
        self.queue = DurableQueue(name, durable, self.calls)
        self.current: HookVersion | None = None  # the subscribed version, and the running version if the hook runs
        self.latest: HookVersion | None = None  # the version that the last check of the folder found
        self._look = look
        self._kept = kept
        self._lock = asyncio.Lock()  # for a thousand hooks at the start: it costs a tenth of anyio's lock
        self._is_over = self._is_looking = self._is_short = False
        self._own_changes = OwnChanges()
        self._rest: anyio.CancelScope | None = None  # the pause after the hook changed its own code
        self._lacking = ""  # the last warning about variables that the hook does not get

    @property
    def is_up(self) -> bool:
        wire = self.process.wire
        return wire is not None and not wire.gone

    @property
    def label(self) -> str:
        """Return the hook's name for people; several folders may share a name."""
        version = self.current or self.latest
        return version.manifest.name if version and version.manifest else ""

    @property
    def called(self) -> str:
        """Return the shortest name that means this hook alone."""
        return self.latest.called if self.latest else self.name

    @property
    def store_name(self) -> str:
        """Return the name under which the hook stores values and has pending events."""
        return self.latest.store_name if self.latest else self.name

    @property
    def is_here(self) -> bool:
        """Tell whether this gateway has the hook's folder, rather than another gateway."""
        return not (self.latest and self.latest.source.is_elsewhere)

    @property
    def waits(self) -> bool:
        """Tell whether the hook is registered, but has not started yet."""
        return self.process.state == "registered" and self.current is not None

    @property
    def reach_facts(self) -> ReachFacts:
        """Return the files and the network that the current version of the hook may reach."""
        version, services = self.current or self.latest, self._services
        if version is None or version.reach is None:
            return ReachFacts()
        data, missing = services.environment.data_of(version.store_name), services.support.missing
        url = version.manifest.url if version.manifest else ""
        return describe_reach(version.reach, version.path, data, missing, url)

    @property
    def limits(self) -> HookLimits:
        """Return the limits of the current version of the hook."""
        version = self.current or self.latest
        if version is None:
            return NO_LIMITS_KNOWN
        uses, reach = version.manifest.uses if version.manifest else (), version.reach
        own = (version.path, self._services.environment.data_of(version.store_name))
        reads = tuple(map(Path, (*reach.reads, *reach.writes))) if reach else None
        can_have = version.source.is_ours and version.manifest and version.manifest.options.keys() >= {*GRANTS}
        grants = read_grants(self._services.settings_of(version.name).options) if can_have else None
        return HookLimits(uses, own, reads, grants)

    @property
    def needs_start(self) -> bool:
        return self.current is not None and self.current.manifest is not None and self.current.dialect.starts_early

    @property
    def idle_reason(self) -> str:
        """Say why the hook has no effect; "" if it has an effect.

        A hook has no effect if all that it changes or registers belongs to a program that does not run here.
        """
        version, targets = self.current, self.process.targets
        if version is None or version.manifest is None:
            return ""
        seen = (targets.patches, targets.offers.remarks) if targets else ()
        return version.dialect.why_idle(version.manifest, *seen)

    def explain(self, said: str, version: HookVersion) -> str:
        """Return the text of a failure, with the remedy if the hook's source knows one."""
        helps = version.source.describe_failure(version, said, self._services.environment.places_of(self.name))
        return f"{said}; {helps}" if helps else said

    def remarks(self) -> list[str]:
        """Return the warnings that only the hook's own process could find."""
        manifest, targets = self.current.manifest if self.current else None, self.process.targets
        if self.current is None or manifest is None or targets is None:
            return []
        # a plugin has registered all that it has
        unnamed = () if self.current.dialect.starts_early else targets.find_unused(manifest)
        place = f"{self.called}/{manifest.entry}: warning:"
        is_seen = self.current.dialect.why_idle(manifest)  # its source shows it
        late = "" if is_seen else self.idle_reason
        lacking = _describe_lacking(self.process.wire, self.current, self._services)
        return [
            *(f"{self.called}: {remark}" for remark in targets.offers.remarks),
            *(f"{self.called}: {remark}" for remark in self.current.dialect.check_contents(targets.offers)),
            *([f"{place} without effect: {late}"] if late else []),
            *([f"{place} {lacking}"] if lacking else []),
            *(f"{place} {describe_unused_mark(name)}" for name in unnamed),
        ]

    async def take(self, version: HookVersion, eager: bool) -> None:
        """Use this version of the folder, and cancel the start of an earlier version.

        If the hook has changed its own code, the start continues, and the folder is checked again later.
        """
        if self.latest and version.is_same_as(self.latest):
            async with self._lock:  # the effects of this version may still be under way
                return
        self.latest = version
        self._begin_looking()
        if self._rest:
            self._rest.cancel()
        if not (self.current and version.is_same_code_as(self.current)):
            if rest := self._own_changes.find_rest(version):
                self._rest = anyio.CancelScope()
                self._services.tasks.start_soon(self._wait_for_rest, self._rest, rest)
                return
            self.process.cancel_start()
        async with self._lock:
            if self._is_over or version is not self.latest:
                return
            if self.is_up and self.current and version.is_same_code_as(self.current):
                self._use(version)
                self.process.enter("loaded")  # an edit that was taken back leaves no fault
            else:
                await self._change_to(version, eager)

    def _begin_looking(self) -> None:
        if self._needs_look and not self._is_looking:
            self._is_looking = True
            self._services.tasks.start_soon(self._look_again)

    @property
    def _needs_look(self) -> bool:
        return not self._is_over and (self._is_short or bool(self.latest and self.latest.is_unread))

    async def _look_again(self) -> None:
        """Check, after ever longer pauses, a folder that cannot be read, or that the system had no process for."""
        attempts = Attempts(LOOKS)
        while self._needs_look:
            await anyio.sleep(attempts.pause())
            if self._is_short:
                self._is_short = False
                await self.restart(afresh=True)
            elif version := self._look(self.name):
                await self.take(version, eager=True)
        self._is_looking = False

    async def _wait_for_rest(self, scope: anyio.CancelScope, rest: float) -> None:
        with scope:
            with anyio.move_on_after(rest):
                async with self._lock:
                    if self.is_up:
                        self._keep_running(f"{self._own_changes.describe()}; it is looked at again in {rest:.0f} s")
                await anyio.sleep_forever()
            self.process.cancel_start()
        if not scope.cancel_called:
            await self.restart(afresh=True)

    async def restart(self, afresh: bool = False) -> None:
        """Start a registered or dead hook; `afresh` also replaces a running process."""
        async with self._lock:
            if self._is_over or (self.is_up and not afresh):
                return
            if (version := self._look(self.name)) is not None:
                self.latest = version
                await self._change_to(version, eager=True)

    async def end(self) -> None:
        """End the hook, because its folder is gone or the gateway stops."""
        self._is_over = True
        if self._rest:
            self._rest.cancel()
        self.subscription.end()
        self.calls.end()
        self.queue.end()
        await self.process.end()

    async def _change_to(self, version: HookVersion, eager: bool) -> None:
        if self.is_up and self.is_here and version.state in _KEEPS_RUNNING:
            self._keep_running(version.reason)
        elif not version.is_ready:
            self._fail(version, version.state, version.reason)
            await self.process.stop()
        elif eager or self.is_up or self.process.state == "waiting":
            await self._start(version)
        else:
            self._use(_expect(version, self._kept))
            self.process.enter("registered", "it starts at its first event")

    @property
    def _can_rest(self) -> bool:
        """Tell whether the hook's process may end while no event comes: it can start again unchanged."""
        version, is_settled = self.current, self.process.state == "loaded" and not self.process.reason
        if version is None or not is_settled or self._is_over or self._lock.locked():
            return False
        if self.calls.questions or find_idle_rule(version, self._services) == "kept":
            return False
        now = self._look(self.name)
        return now is not None and now.is_same_code_as(version)

    async def _start(self, version: HookVersion) -> None:
        assert version.manifest
        was_up, before, self._is_short = self.is_up, self.current, False
        is_back = self.process.is_resting and before is not None and version.is_same_code_as(before)
        if not was_up:
            if not is_back:  # the registrations of a hook that comes back are known
                self._use(_expect(version, self._kept))
            self.process.enter("starting")
        try:
            is_restricted = version.reach is not None
            serve = self.rights.make_capability(version.manifest, version.store_name, is_restricted=is_restricted)
            with self._own_changes.loading(version):
                wire = await self.process.start(version, serve)
        except HookError as error:
            why = f"it does not start: {self.explain(str(error), version)}"
            if self.is_up:
                self._is_short = isinstance(error, HookFailed) and error.kind == "short"
                self._keep_running(why)
                self._begin_looking()
            elif not self.process.retry_start(error):
                self._fail(version, "broken", why)
            return
        if wire is None:
            return
        started = add_registrations(version, wire)
        self._use_started(started, wire)
        if version.dialect.describe_doubt(version.manifest):
            self._kept.keep_known(started)
            await self._kept.save()
        if before is None or before.digest != version.digest:
            self.calls.breaker.reset()
        if not is_back:
            self.calls.outcomes.tell("hook:loaded", "reloaded" if was_up else "loaded")

    def _use_started(self, version: HookVersion, wire: Wire) -> None:
        if version is not self.current:
            self._use(version)
        self._tell_lacking(wire)

    def _tell_lacking(self, wire: Wire) -> None:
        """Warn once of the variables that the hook asks for and does not get: the hook may depend on them."""
        if isinstance(wire, WorkerHandle):
            wire.on_asked = partial(self._tell_lacking, wire)
        lacking = _describe_lacking(wire, self.current, self._services)
        if lacking and lacking != self._lacking:
            log.warning("%s: %s", self.name, lacking, extra={"hook": self.name})
        self._lacking = lacking

    def _use(self, version: HookVersion) -> None:
        assert version.manifest
        self.current = version
        self._kept.keep(version)
        self.calls.use(version)
        is_durable = self.queue.follow(version.manifest, version.store_name)
        self.subscription.update(version.manifest, is_durable, is_restricted=version.reach is not None)

    def _fail(self, version: HookVersion, state: HookState, reason: str) -> None:
        doubt = version.dialect.describe_doubt(version.manifest) if version.manifest else ""
        self.current = version = _expect(version, self._kept)
        meanwhile = "" if version.is_off and not version.is_guarded_elsewhere else _describe_meanwhile(version, doubt)
        self.process.enter(state, f"{reason}; {meanwhile}" if meanwhile else reason)
        if version.denied:
            why = self._services.redact(f"it is {state}: {reason[:MAX_REFUSAL]}")
            self.subscription.guard(version, version.denied, why, doubt, self._services.environment.ports.match)
        else:
            self.subscription.end()
        if version.is_off or not self.is_here:  # events stay pending at the gateway that has the folder
            self.queue.end()
        else:
            if version.manifest:  # events stay pending even if the hook never ran
                self.queue.follow(version.manifest, version.store_name)
            self.queue.rest()
        if state != "disabled":
            log.warning("%s is %s: %s", self.name, state, reason, extra={"hook": self.name})
            self.calls.outcomes.tell("hook:failed", reason)

    def _keep_running(self, why: str) -> None:
        self.process.enter(self.process.state, f"the last change does not count, the version before runs on: {why}")
        log.warning("%s: %s", self.name, self.process.reason, extra={"hook": self.name})
        self.calls.outcomes.tell("hook:failed", self.process.reason)

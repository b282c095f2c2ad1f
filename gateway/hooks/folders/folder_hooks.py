"""The hooks in folders: through this module, the gateway and its commands run, list, try and switch them.

    async with FolderHooks(registry, fork_server, engine, settings, environment).running(sources, grant) as hooks:
        for status in await hooks.status():
            print(status.name, status.state, status.reason)

The gateway starts up to `hooks.eager` hooks at once, in the background, and each further hook at its first event. An
event that comes before its hook is up waits for the hook. Listing and checking never import a handler.
"""

import difflib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Self

import anyio
import anyio.lowlevel
import msgspec

from gateway.config.settings import PLUGIN_PREFIX, HooksSettings
from gateway.engine.interface import Engine
from gateway.errors import EngineError, HookError
from gateway.hooks.durable.dead_letters import DeadLetters, subject_token_of
from gateway.hooks.folders.durable import DurableDelivery
from gateway.hooks.folders.folder_set import FolderSet
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.folders.readiness import find_trust_digest, is_listed
from gateway.hooks.folders.shared_switches import SharedSwitches
from gateway.hooks.folders.trial import HookTrial, make_event, run_trials, try_call, verb_of
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.reach import NO_LIMITS_KNOWN, HookLimits
from gateway.hooks.places.other_hooks import OtherHooks
from gateway.hooks.places.sources import HookVersion, Source
from gateway.hooks.registry import HookRegistry
from gateway.hooks.services import HookEnvironment, HookServices, RequestServer
from gateway.hooks.stats import (
    CLOSED_STATES,
    NOTHING_OWED,
    HookInfo,
    HookState,
    HookStats,
    HookStatus,
    OwedFacts,
)
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.process_handle import read_memory
from gateway.hooks.wires.program import LastingProgram, OneshotProgram
from gateway.hooks.wires.wire import HookAnswer, HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.records.records import HookFolder, HookGuard
from gateway.threads import run_in_thread
from gateway.worker.protocol import CallMeta, PluginContents, describe_session
from gateway.yaml_source.units import format_count


class PluginTools(msgspec.Struct, eq=False):
    """The tools, commands and skills of the plugins.

    `plugins` returns the current plugins, by name; `settled` waits until the initial hooks are up or failed.
    """

    _plugins: Callable[[], Mapping[str, FolderHook]]
    settled: Callable[[], Awaitable[None]]

    def missing(self) -> Iterator[FolderHook]:
        """Yield the plugins that are not running although no one has switched them off."""
        for hook in self._plugins().values():
            if hook.latest and hook.latest.dialect.starts_early and hook.process.state != "disabled" and not hook.is_up:
                yield hook

    async def wait_until_up(self, name: str, patience: float) -> PluginContents:
        """Return the plugin's offers once the plugin runs. Raises HookError if the plugin fails or is late."""
        hook = self._plugins().get(name)
        if hook is None:
            raise HookError(f"the plugin {name} is gone")
        await hook.process.get_wire(patience)
        return hook.process.targets.offers if hook.process.targets else PluginContents()

    def all(self) -> Iterator[tuple[FolderHook, PluginContents]]:
        """Yield the running plugins with their offers, in the order of their names."""
        for hook in self._plugins().values():
            if hook.is_up and hook.process.targets and hook.current and hook.current.manifest:
                yield hook, hook.process.targets.offers

    async def use(
        self,
        name: str,
        target: str,
        fields: Mapping[str, Any],
        timeout: float,
        answers: Mapping[str, Any] | None = None,
    ) -> HookAnswer:
        """Call `tool:<name>` or `command:<name>` of this plugin. Raises HookError if the plugin fails or is gone.

        `answers` are a person's answers, by question; if `answers` is None, the plugin cannot ask a person.
        """
        hook, begun = self._plugins().get(name), time.perf_counter()
        if hook is None:
            raise HookError(f"the plugin {name} is gone")
        try:
            wire = await hook.process.get_wire(timeout)
            with hook.process.using(wire), hook.rights.serving(fields) as doing:
                meta = CallMeta(event=doing, decides=True, target=target, session=describe_session(fields))
                meta = meta if answers is None else msgspec.structs.replace(meta, answers=dict(answers))
                answer = await wire.call(target, fields, meta, timeout)
        except HookFailed as failed:
            hook.calls.record.failed(target, time.perf_counter() - begun, failed)
            raise
        hook.calls.record.answered("ok", (target, time.perf_counter() - begun))
        return answer


class FolderHooks:
    """The hooks in folders: the gateway, its commands and its page use them through this class."""

    def __init__(
        self,
        registry: HookRegistry,
        fork_server: ForkServerClient,
        engine: Engine | None,
        settings: HooksSettings,
        environment: HookEnvironment,
        others: OtherHooks | None = None,
    ) -> None:
        self._parts = (registry, fork_server, engine, settings, environment)
        self.shared_switches = SharedSwitches(engine) if engine else None
        self.others = others or OtherHooks()

    @asynccontextmanager
    async def running(
        self,
        sources: Sequence[Source],
        grant: RequestServer,
        check: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
        find_places: Callable[[], Coroutine[Any, Any, None]] = anyio.lowlevel.checkpoint,
        *,
        is_told: bool = True,
    ) -> AsyncIterator[Self]:
        """Find the hooks of these sources and run them within the context; `grant` answers requests of hooks.

        `check` runs before any hook receives an event, even a pending event; it may inspect the hooks, and fail. If
        `is_told` is False, this gateway only records the events for durable hooks, and another gateway delivers them.
        When a folder appears that may hold hooks, `find_places` runs, and passes all sources to `follow` again.
        """
        registry, fork_server, engine, settings, environment = self._parts
        async with anyio.create_task_group() as self._tasks:
            self._services = HookServices(settings, environment, registry, fork_server, grant, self._tasks)
            self._durable = durable = DurableDelivery(engine, self._services, self.others) if engine else None
            self._set = FolderSet(sources, self._services, durable, find_places)
            self._letters = DeadLetters(engine, self.info) if engine else None
            try:
                if self.shared_switches:
                    await self.shared_switches.join(self._set.sources.switches, self._set.touch_decided)
                if durable:
                    durable.begin()
                self.others.on_guards = self._set.touch
                await self._set.begin()
                if durable:
                    await durable.wait_until_standing()
                await check()
                if durable:
                    await durable.forget_gone_hooks(self._set.list_store_names)
                    if is_told:
                        durable.deliver()
                    tell, guards = self.others.tell, partial(_find_guards, self._set.hooks)
                    self._tasks.start_soon(tell, self.settled, lambda: (self.folders, durable.list_owed(), guards()))
                yield self
            finally:
                self.others.telling.cancel()  # a hook that ends with the gateway still gets later events
                with anyio.CancelScope(shield=True):
                    if durable:
                        await durable.drain()
                    await self._set.end()
                self._tasks.cancel_scope.cancel()

    @property
    def dead_letters(self) -> DeadLetters:
        """Return the dead letters. Raises HookError if the gateway has no journal."""
        if self._letters is None:
            raise HookError("no journal here, and so no dead letters")
        return self._letters

    @property
    def plugin_tools(self) -> PluginTools:
        """Return the tools, commands and skills of the plugins."""
        return PluginTools(lambda: self._set.plugins, self.settled)

    @property
    def find_limits(self) -> Callable[[str], HookLimits]:
        """Return a function that finds the current limits of a hook by its name."""
        return lambda name: hook.limits if (hook := self._set.hooks.get(name)) else NO_LIMITS_KNOWN

    @property
    def trouble(self) -> str:
        """Say why changes of hooks go unnoticed, installed hooks are unknown, or events are not delivered."""
        watching = self._set.watcher.trouble if self._set.watcher else ""
        newer = self._durable.too_new.describe() if self._durable else ""
        return "; ".join(filter(None, (watching, self._services.lock.trouble, newer and f"events: {newer}")))

    @property
    def folders(self) -> dict[str, HookFolder]:
        """Return the hook folders by name, without the hooks of skills; an unread folder has the digest ""."""
        return {
            name: HookFolder(one.digest, one.manifest.version if one.manifest else "")
            for name, hook in _list_placed(self._set.hooks)
            if (one := hook.latest)
        }

    @property
    def scheduled(self) -> list[tuple[Manifest, HookState, bool]]:
        """List the hooks with a schedule: the manifest, the state, and whether the hook is off."""
        hooks = [(one, hook.process.state) for hook in self._set.hooks.values() if (one := hook.current)]
        return [(one.manifest, state, one.is_off) for one, state in hooks if one.manifest and one.manifest.schedule]

    @property
    def stats(self) -> dict[str, HookStats]:
        """Return the call statistics of each hook that was called, by the name of the hook."""
        return {hook.called: hook.calls.record for hook in self._set.hooks.values() if hook.calls.record.calls}

    @property
    def called_from_outside(self) -> list[Manifest]:
        """Return the manifests of hooks whose webhook takes requests: the hook gets the events now, or when it runs."""
        found = []
        for hook in self._set.hooks.values():
            manifest = hook.current.manifest if hook.current else None
            if manifest and manifest.webhook and hook.current and not hook.current.is_off:
                found += [manifest] if manifest.delivery == "memory" or hook.queue.is_standing else []
        return found

    async def settled(self) -> None:
        """Wait until each hook found at the start runs, or has reported why it does not run."""
        await self._set.settled.wait()

    def has(self, name: str) -> bool:
        """Tell whether commands know a hook by this name."""
        return any(hook.called == name for hook in self._set.hooks.values())

    async def status(self, *, asks_journal: bool = True, with_offered: bool = True) -> list[HookStatus]:
        """Return the status of each hook, sorted by name; `add_memory` adds the memory of the processes.

        If `asks_journal` is False, pending events and dead letters count as 0. `with_offered` includes built-in hooks
        that are off.
        """
        dead = Counter[str]()
        with suppress(EngineError):  # the journal is ill; all else is known
            dead = await self._letters.count() if self._letters and asks_journal else dead
        called, offered, found = group_by_label(self._set.hooks), group_by_content(self._set.plugins), []
        for _, hook in sorted(self._set.hooks.items(), key=lambda item: item[0].removeprefix(PLUGIN_PREFIX)):
            if hook.process.state == "disabled" and hook.latest and hook.latest.source.is_ours and not with_offered:
                continue
            owed = await _read_owed(hook) if asks_journal else NOTHING_OWED
            found.append(_status_of(hook, owed, dead[subject_token_of(hook.store_name)], called, offered))
            await anyio.lowlevel.checkpoint()  # a thousand hooks do not hold the loop
        return found

    async def info(self, name: str) -> HookInfo:
        """Return all facts about one hook. Raises HookError if the hook does not exist."""
        hook = await _find_fresh_hook(self._set, name)
        dead = len(await self._letters.list_owed_to(hook.store_name)) if self._letters else 0
        called, offered = group_by_label(self._set.hooks), group_by_content(self._set.plugins)
        found = _status_of(hook, await _read_owed(hook), dead, called, offered)
        (weighed,) = await add_memory([found])
        known = msgspec.structs.asdict(weighed)
        return HookInfo(**known, stored_as=hook.store_name, given=hook.calls.record.given)

    async def kept(self, name: str) -> dict[str, Any]:
        """Return the values that this hook has stored."""
        store, ask = _find_hook(self._set.hooks, name).store_name, self._services.serve_request
        return {
            key: await ask(store, "store.get", {"key": key}, "") for key in await ask(store, "store.keys", {}, "") or ()
        }

    def find_by_process(self, pids: Collection[int]) -> HookVersion | None:
        """Find the hook that runs in one of these processes."""
        for hook in self._set.hooks.values():
            if hook.current and not set(pids).isdisjoint(_processes_of(hook)):
                return hook.current
        return None

    async def reload(self, name: str = "") -> None:
        """Read the hook's folder and restart the hook, or read all folders. Raises HookError for an unknown hook."""
        if name:
            name = _check_hook(self._set, name).name
            await self._set.refresh(name)
            await _find_hook(self._set.hooks, name).restart(afresh=True)
        else:
            for each in dict.fromkeys([*self._set.hooks, *self._set.sources.list()]):
                await self._set.refresh(each)

    async def reset(self, name: str) -> None:
        """Close the hook's breaker, drop failed decisions, start a dead hook. Raises HookError for an unknown hook."""
        hook = _find_hook(self._set.hooks, name)
        hook.calls.breaker.reset()
        hook.calls.undecided.forget()
        if not hook.is_up and not hook.waits:
            await hook.restart(False)

    async def switch(self, name: str, enabled: bool) -> None:
        """Switch the hook on or off for good. Raises HookError if the hook is unknown, or config.yaml decides."""
        version = _check_hook(self._set, name)
        found = self._set.sources.find(version.name)
        if enabled and found and not found.is_ready:
            raise HookError(f"{name} cannot be switched on: {found.reason}")
        settings, own = self._services.settings, self._services.settings_of(version.name, version.short).enabled
        is_off = own is False or {version.name, version.short} & {*settings.disabled}
        if is_off if enabled else own or is_listed(version, settings.enabled):
            raise HookError(f"config.yaml decides about {name}: change hooks.{name}.enabled or the lists there")
        self._set.sources.switches.enable(version.store_name, enabled)
        await self._set.refresh(version.name)
        if self.shared_switches:
            await self.shared_switches.write({version.store_name: enabled}, {})

    async def trust(self, name: str) -> str:
        """Trust the current contents of the folder, and return their hash. Raises HookError if the hook is unknown."""
        version = _check_hook(self._set, name)
        if not version.digest:
            raise HookError(f"{name} cannot be trusted: it is {version.state}: {version.reason}")
        digest = await run_in_thread(find_trust_digest, version)
        self._set.sources.switches.trust(version.name, digest)
        kept = self._set.sources.kept
        kept.forget(version.name) if version.source.why_disabled(version) else kept.accept(version.name, version.digest)
        await self._set.refresh(version.name)
        if self.shared_switches:
            await self.shared_switches.write({}, {version.name: digest})
        return digest

    async def forget(self, name: str) -> None:
        """Go on without a hook that cannot run: until the hook works again, the gateway denies nothing for it.

        Raises HookError if the hook is unknown, can run, or has no kept manifest.
        """
        hook = _find_hook(self._set.hooks, name)
        if self._set.sources.kept.get(hook.name) is None or not hook.latest or hook.latest.is_ready:
            raise HookError(f"nothing waits for {name}; to switch it off: hermes-gateway hooks disable {name}")
        self._set.sources.kept.forget(hook.name)
        await self._set.refresh(hook.name)

    async def fire(self, name: str, event: str, fields: Mapping[str, Any] | None = None) -> HookTrial:
        """Deliver one event to the hook in its usual process. Raises HookError if the hook is unknown or is down."""
        hook = await _find_fresh_hook(self._set, name)
        if hook.current is None or hook.current.manifest is None or hook.process.state in CLOSED_STATES:
            raise HookError(f"{name} is {hook.process.state}: {hook.process.reason}")
        sample = make_event(event, fields)
        is_decision = verb_of(hook.current.manifest, event) == "intercept"
        call = partial(hook.calls.decide, sample) if is_decision else partial(hook.calls.deliver, event, sample)
        return await try_call(hook.current, sample, call, self._services.redact)

    async def test(self, name: str, event: str = "", fields: Mapping[str, Any] | None = None) -> Sequence[HookTrial]:
        """Run the hook in a separate process, with samples of all its events, or with this one event.

        Raises:
            HookError: the hook is unknown, or does not start.
        """
        version = _check_hook(self._set, name)
        if version.state not in ("registered", "disabled") or version.manifest is None:
            raise HookError(f"{name} is {version.state}: {version.reason}")
        return await run_trials(version, self._services, event, fields)

    async def follow(self, sources: Sequence[Source], settings: HooksSettings | None = None) -> None:
        """Use new sources, after a skill with hooks was loaded or unloaded, and new settings, unless None."""
        if settings is not None:
            before, self._services.settings = self._services.settings, settings
            self._set.touch(self._set.hooks)
            for name, hook in self._set.hooks.items():
                short = hook.latest.short if hook.latest else ""
                isolations = {each.find_overrides(name, short).isolation for each in (before, settings)}
                if hook.is_up and len(isolations) > 1:
                    self._tasks.start_soon(hook.restart, True)
        await self._set.change_sources(sources)


def _check_hook(there: FolderSet, name: str) -> HookVersion:
    """Inspect the hook's folder again. Raises HookError if the hook was not found."""
    version = there.sources.check(name) or there.sources.check(PLUGIN_PREFIX + name)
    if version is None:
        _find_hook(there.hooks, name)
        raise HookError(f"the folder of {name} is gone")
    return version


async def _find_fresh_hook(there: FolderSet, name: str) -> FolderHook:
    """Find the hook, also in a folder that has just appeared. Raises HookError if the hook was not found."""
    if not (there.hooks.keys() & {name, PLUGIN_PREFIX + name}):
        await there.refresh(_check_hook(there, name).name)
    return _find_hook(there.hooks, name)


def _find_hook(hooks: Mapping[str, FolderHook], name: str) -> FolderHook:
    """Find the hook of this name; a hook takes precedence over a plugin. Raises HookError if no hook was found."""
    if found := hooks.get(name) or hooks.get(PLUGIN_PREFIX + name):
        return found
    near = difflib.get_close_matches(name, (hook.called for hook in hooks.values()), n=1)
    raise HookError(f"hook {name[:100]!r} not found" + (f"; did you mean {near[0]!r}?" if near else ""))


def _list_placed(hooks: Mapping[str, FolderHook]) -> Iterator[tuple[str, FolderHook]]:
    """Yield the hooks of this gateway that belong to no skill."""
    for name, hook in hooks.items():
        if hook.is_here and hook.latest and hook.latest.source.conversations is None:
            yield name, hook


def _find_guards(hooks: Mapping[str, FolderHook]) -> dict[str, HookGuard]:
    """Return, by hook name, the events that the gateway denies while a hook cannot answer."""
    found = {name: (hook, hook.current.guard) for name, hook in _list_placed(hooks) if hook.current}
    return {
        name: HookGuard(guard.intercepts, guard.when, guard.order, hook.store_name)
        for name, (hook, guard) in found.items()
        if guard
    }


def group_by_label(hooks: Mapping[str, FolderHook]) -> dict[str, list[str]]:
    """Return the hooks of each label: hooks with the same label all run, and people may confuse them."""
    folders: dict[str, list[str]] = {}
    for name, hook in hooks.items():
        folders.setdefault(_label_of(hook), []).append(name)
    return folders


def group_by_content(plugins: Mapping[str, FolderHook]) -> dict[str, list[str]]:
    """Return, by tool, command or skill, the running plugins that offer it."""
    brought: dict[str, list[str]] = {}
    for hook in plugins.values():
        for offer in _list_offers(hook) if hook.is_up else ():
            brought.setdefault(offer, []).append(hook.called)
    return brought


def _label_of(hook: FolderHook) -> str:
    """Return the hook's label; the label of a plugin has a prefix, so that it differs from the labels of hooks."""
    prefix = PLUGIN_PREFIX if hook.name.startswith(PLUGIN_PREFIX) else ""
    return prefix + (hook.label or hook.name)


async def _read_owed(hook: FolderHook) -> OwedFacts:
    manifest = hook.current.manifest if hook.current else None
    return await hook.queue.read_owed() if manifest and manifest.delivery == "durable" else NOTHING_OWED


def _status_of(
    hook: FolderHook,
    owed: OwedFacts,
    dead: int,
    called: Mapping[str, Sequence[str]],
    offered: Mapping[str, Sequence[str]],
) -> HookStatus:
    warnings = [*_warn_of_rivals(hook, offered)] if offered else []
    if namesakes := [name for name in called.get(_label_of(hook), ()) if name != hook.name]:
        said = f"warning: {', '.join(namesakes)} is also called {hook.label!r}; all run, give each its own `name`"
        warnings.insert(0, f"{hook.name}/HOOK.yaml: {said}")
    return build_status(hook, owed, dead, warnings)


def build_status(
    hook: FolderHook, owed: OwedFacts = NOTHING_OWED, dead: int = 0, warnings: Sequence[str] = ()
) -> HookStatus:
    """Build the status of one hook.

    `owed` are the hook's pending events in the journal; `dead` counts its dead letters; `warnings` are about other
    hooks with the same label or the same offers.
    """
    latest, current, record, breaker = hook.latest, hook.current, hook.calls.record, hook.calls.breaker
    assert latest
    manifest = (current and current.manifest) or latest.manifest or Manifest(folder=hook.name, name=hook.name)
    state, called, undecided = _state(hook), hook.called, hook.calls.undecided.describe(hook.called)
    whom, why = (current or latest).dialect.label, (current or latest).owner_reason
    pid, hangs = _process_facts(hook)
    return HookStatus(
        name=called,
        label=manifest.name,
        description=manifest.description,
        version=manifest.version,
        origin=latest.source.origin,
        path=str(latest.path),
        state=state,
        reason=_reason(hook, state, undecided),
        wire=manifest.wire,
        events=manifest.events,
        intercepts=manifest.intercepts,
        order=manifest.order,
        on_error=_describe_on_error(current or latest, manifest),
        delivery=manifest.delivery,
        schedule=manifest.schedule,
        hermes=whom == "Hermes",
        written_for=f"{whom}: {why}" if why else "",
        found=manifest.reading.found,
        files=manifest.reading.files,
        findings=(*map(str, latest.findings), *hook.remarks(), *warnings),
        offers=_list_offers(hook) if hook.process.targets else (),
        digest=current.digest if current else "",
        loaded_at=hook.process.loaded_at,
        restarts=hook.process.restarts,
        last_fired=record.last_fired,
        calls=record.calls,
        failures=record.failures,
        skipped=record.skipped,
        queued=hook.subscription.queued,
        owed=owed.owed,
        behind=round(owed.behind, 1),
        dropped=hook.subscription.dropped,
        dead=dead,
        p50=record.percentile(50) if record.calls else None,
        p95=record.percentile(95) if record.calls else None,
        breaker=breaker.state,
        breaker_opens_in=round(breaker.remaining, 1),
        last_error=record.last_error,
        undecided=undecided,
        traces=record.traces,
        pid=pid,
        hangs=hangs,
        **hook.reach_facts._asdict(),
    )


def _describe_on_error(version: HookVersion, manifest: Manifest) -> str:
    """Describe the effect of a failure: a guard denies, even if its manifest says otherwise or is unreadable."""
    if version.manifest is None and version.denied:
        return "deny"
    if not manifest.reading.guards or manifest.on_error == "deny":
        return manifest.on_error
    is_all = set(manifest.intercepts) <= set(manifest.reading.guards)
    return "deny" if is_all else f"deny at {', '.join(manifest.reading.guards)}, {manifest.on_error} elsewhere"


def _warn_of_rivals(hook: FolderHook, offered: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for offer in _list_offers(hook):
        if others := [name for name in offered.get(offer, ()) if name != hook.called]:
            yield f"{hook.called}: {offer} is also brought by {', '.join(others)}; one of them counts"


def _list_offers(hook: FolderHook) -> tuple[str, ...]:
    targets = hook.process.targets
    if targets is None:
        return ()
    offers = targets.offers
    return (
        *(f"/{one.name}" for one in offers.commands),
        *(f"tool {one.name}" for one in offers.tools),
        *(f"skill {hook.label}:{one.name}" for one in offers.skills),
    )


def _state(hook: FolderHook) -> HookState:
    state = hook.process.state
    if state not in ("loaded", "registered", "waiting", "starting", "broken"):
        return state
    if hook.idle_reason and (state in ("loaded", "registered") or _only_patches(hook)):
        return "without effect"
    return "tripped" if hook.calls.breaker.state != "closed" and state != "broken" else state


def _only_patches(hook: FolderHook) -> bool:
    """Tell whether the hook fails to start, and would have no effect here even if it started."""
    version = hook.current
    return bool(hook.process.state == "broken" and version and not version.denied and hook.idle_reason)


def _reason(hook: FolderHook, state: HookState, undecided: str) -> str:
    breaker, error = hook.calls.breaker, hook.calls.record.last_error
    if state == "without effect":
        return "; ".join(filter(None, (hook.idle_reason, hook.process.reason if _only_patches(hook) else "")))
    if error is None or state != "tripped":
        wire = hook.process.wire
        vain = wire.remarks if isinstance(wire, WorkerHandle) else ()
        return "; ".join(filter(None, (hook.process.reason, undecided, *vain)))
    said = hook.explain(error.message, hook.current) if hook.current else error.message
    again = f"is tried again in {breaker.remaining:.0f} s" if breaker.remaining else "is tried again at its next event"
    return f"failed {format_count(breaker.failures, 'time')} in a row and {again}; the last time: {said}"


def _processes_of(hook: FolderHook) -> Collection[int]:
    wire = hook.process.wire
    if isinstance(wire, WorkerHandle):
        return (wire.process.pid,)
    return wire.pids if isinstance(wire, LastingProgram | OneshotProgram) else ()


async def add_memory(found: Sequence[HookStatus]) -> list[HookStatus]:
    """Return the statuses with the memory of each process.

    The kernel takes long to count memory: a thread asks the kernel, and only for hooks that a command shows.
    """
    sizes = await run_in_thread(lambda: [read_memory(one.pid) if one.pid else 0 for one in found])
    return [msgspec.structs.replace(one, memory=size) for one, size in zip(found, sizes, strict=True)]


def _process_facts(hook: FolderHook) -> tuple[int, str]:
    """Return the id of the hook's process, and the place in the code where the process last hung."""
    wire = hook.process.wire
    if isinstance(wire, WorkerHandle):
        return wire.process.pid, wire.process.hangs
    if isinstance(wire, LastingProgram):
        return wire.pid, ""
    return 0, ""

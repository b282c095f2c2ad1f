"""The folder hooks of a gateway: found, started, watched, and spoken about.

    async with FolderHooks(registry, fork_server, engine, settings, environment).running(sources, grant) as hooks:
        for status in await hooks.status():
            print(status.name, status.state, status.reason)

Up to `hooks.eager` hooks are started at once, in the background; further ones at their first event. What is told
before a hook is up waits for it. Listing and checking never import a handler.
"""

import difflib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import anyio.lowlevel

from gateway.config.settings import HookOverrides, HooksSettings
from gateway.engine.interface import Engine
from gateway.errors import HookError
from gateway.events import Pause, outcome_to_dict
from gateway.hooks.folders.dead_letters import DeadLetters, subject_token_of
from gateway.hooks.folders.durable import DurableDelivery
from gateway.hooks.folders.folder_set import FolderSet
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.plugin_tools import PluginTools
from gateway.hooks.folders.services import HookEnvironment, HookServices, RequestServer
from gateway.hooks.folders.sources import HookVersion, Source
from gateway.hooks.folders.stats import HookState, HookStatus
from gateway.hooks.folders.status import build_status
from gateway.hooks.folders.trial import HookTrial, as_plain, make_event, run_trials, verb_of
from gateway.hooks.registry import HookRegistry
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.wire import HookFailed


class FolderHooks:
    """What the gateway, its commands and its page ask of the folder hooks."""

    def __init__(
        self,
        registry: HookRegistry,
        fork_server: ForkServerClient,
        engine: Engine | None,
        settings: HooksSettings,
        environment: HookEnvironment,
    ) -> None:
        self._parts = (registry, fork_server, engine, settings, environment)

    @asynccontextmanager
    async def running(self, sources: Sequence[Source], grant: RequestServer) -> AsyncIterator[Self]:
        """Find the hooks in these places and serve them while inside; `grant` answers what they ask of the gateway."""
        registry, fork_server, engine, settings, environment = self._parts
        async with anyio.create_task_group() as self._tasks:
            durable = None
            if engine:
                retries, redact, state = environment.retries, environment.redactor.clean, environment.state
                durable = DurableDelivery(registry, engine, self._tasks, retries, redact, state)
            self._services = HookServices(
                settings, environment, registry, fork_server, engine, durable, grant, self._tasks
            )
            self._set = FolderSet(sources, self._services)
            self._letters = DeadLetters(engine) if engine else None
            try:
                await self._set.begin()
                if durable:
                    await durable.forget_gone_hooks(self._set.hooks)
                yield self
            finally:
                with anyio.CancelScope(shield=True):
                    await self._set.end()
                self._tasks.cancel_scope.cancel()

    @property
    def dead_letters(self) -> DeadLetters:
        """Raises HookError where there is no journal."""
        if self._letters is None:
            raise HookError("there is no journal here, and so no dead letters")
        return self._letters

    @property
    def plugin_tools(self) -> PluginTools:
        """What the plugins among them offer."""
        return PluginTools(lambda: self._set.hooks)

    @property
    def trouble(self) -> str:
        """What stands against noticing changes of hooks, if anything does."""
        return self._set.watcher.trouble if self._set.watcher else ""

    @property
    def scheduled(self) -> list[tuple[Manifest, HookState]]:
        """Those that the clock calls, and how each is."""
        hooks = [(hook.current.manifest, hook.process.state) for hook in self._set.hooks.values() if hook.current]
        return [(manifest, state) for manifest, state in hooks if manifest and manifest.schedule]

    async def settled(self) -> None:
        """Until all that was found at the start has been started, or has said why not."""
        await self._set.settled.wait()

    async def status(self) -> list[HookStatus]:
        dead: dict[str, int] = {}
        for letter in await self._letters.list() if self._letters else ():
            dead[letter.hook] = dead.get(letter.hook, 0) + 1
        called, found = group_by_label(self._set.hooks), []
        for name, hook in sorted(self._set.hooks.items()):
            found.append(await self._status(hook, dead.get(name, 0), called))
            await anyio.lowlevel.checkpoint()  # a thousand hooks do not hold the loop
        return found

    async def info(self, name: str) -> HookStatus:
        """Raises HookError when there is no such hook."""
        hook = self._hook(name)
        dead = len(await self._letters.list(name)) if self._letters else 0
        return await self._status(hook, dead, group_by_label(self._set.hooks))

    async def kept(self, name: str) -> dict[str, Any]:
        """What this hook keeps in its store."""
        keys = await self._services.grant(name, "store.keys", {}, "")
        return {key: await self._services.grant(name, "store.get", {"key": key}, "") for key in keys or ()}

    async def reload(self, name: str = "") -> None:
        """Look at the folder again, or at all of them, and start anew from what is there. HookError: no such hook."""
        if name:
            self._known(name)
            await self._set.refresh(name)
            await self._hook(name).restart(afresh=True)
        else:
            for each in dict.fromkeys([*self._set.hooks, *self._set.sources.list()]):
                await self._set.refresh(each)

    async def reset(self, name: str) -> None:
        """Its breaker closes; if it is not up, it is started. HookError: no such hook."""
        hook = self._hook(name)
        hook.calls.breaker.reset()
        if not hook.is_up and not hook.waits:
            await hook.restart(False)

    async def switch(self, name: str, enabled: bool) -> None:
        """On or off, and so after a restart too. HookError: no such hook, or the configuration says otherwise."""
        self._known(name)
        settings, own = self._services.settings, self._services.settings_of(name).enabled
        if (own is False or name in settings.disabled) if enabled else (own or name in settings.enabled):
            raise HookError(f"config.yaml decides about {name}: change hooks.{name}.enabled or the lists there")
        self._set.sources.switches.enable(name, enabled)
        await self._set.refresh(name)

    async def trust(self, name: str) -> str:
        """What stands in the folder now is trusted; its content hash. HookError: no such hook."""
        version = self._known(name)
        if not version.digest:
            raise HookError(f"{name} cannot be trusted: it is {version.state}: {version.reason}")
        self._set.sources.switches.trust(name, version.digest)
        await self._set.refresh(name)
        return version.digest

    async def fire(self, name: str, event: str, fields: Mapping[str, Any] | None = None) -> HookTrial:
        """Tell the hook, as it runs, of one event. HookError: no such hook."""
        hook = self._hook(name)
        if hook.current is None or hook.current.manifest is None or hook.process.state in ("broken", "disabled"):
            raise HookError(f"{name} is {hook.process.state}: {hook.process.reason}")
        told, begun = make_event(event, fields), time.perf_counter()
        before, verb, result, error, traceback = dict(told), verb_of(hook.current.manifest, event), None, "", ""
        try:
            if verb == "intercept":
                result = as_plain(await hook.calls.decide(told))
            else:
                await hook.calls.deliver(event, told)
        except Pause as pause:
            result = outcome_to_dict(pause)
        except HookFailed as failed:
            error, traceback = str(failed), failed.traceback
        changed = {field: value for field, value in told.items() if before.get(field, ...) != value}
        seconds = time.perf_counter() - begun
        return HookTrial(
            event=event, verb=verb, seconds=seconds, result=result, changed=changed, error=error, traceback=traceback
        )

    async def test(self, name: str, event: str = "", fields: Mapping[str, Any] | None = None) -> Sequence[HookTrial]:
        """Run it in a process of its own against samples of all that it subscribes to, or this one event.

        Raises:
            HookError: there is no such hook, or it does not start.
        """
        version = self._known(name)
        if version.state not in ("registered", "disabled") or version.manifest is None:
            raise HookError(f"{name} is {version.state}: {version.reason}")
        return await run_trials(version, self._services, event, fields)

    async def follow(self, sources: Sequence[Source], settings: HooksSettings | None = None) -> None:
        """Other places count from now on (a skill that brings hooks was loaded or unloaded), and other settings."""
        if settings is not None:
            before, self._services.settings = self._services.settings, settings
            self._set.touch(self._set.hooks)
            for name, hook in self._set.hooks.items():
                isolations = {each.get(name, HookOverrides()).isolation for each in (before.each, settings.each)}
                if hook.is_up and len(isolations) > 1:
                    self._tasks.start_soon(hook.restart, True)
        await self._set.change_sources(sources)

    def _hook(self, name: str) -> FolderHook:
        if name in self._set.hooks:
            return self._set.hooks[name]
        near = difflib.get_close_matches(name, self._set.hooks, n=1)
        raise HookError(f"there is no hook {name[:100]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))

    def _known(self, name: str) -> HookVersion:
        version = self._set.sources.check(name)
        if version is None:
            self._hook(name)
            raise HookError(f"the folder of {name} is gone")
        return version

    async def _status(self, hook: FolderHook, dead: int, called: Mapping[str, Sequence[str]]) -> HookStatus:
        engine = self._services.engine
        manifest = hook.current.manifest if hook.current else None
        owed = (
            await engine.depth(subject_token_of(hook.name))
            if engine and manifest and manifest.delivery == "durable"
            else 0
        )
        namesakes = [name for name in called.get(hook.label or hook.name, ()) if name != hook.name]
        return build_status(hook, owed, dead, namesakes)


def group_by_label(hooks: Mapping[str, FolderHook]) -> dict[str, list[str]]:
    """The folders of each label: they all run, and people may take one for another."""
    folders: dict[str, list[str]] = {}
    for name, hook in hooks.items():
        folders.setdefault(hook.label or name, []).append(name)
    return folders

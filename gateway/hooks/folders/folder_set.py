"""Which hooks there are: a folder is looked at when it is touched, and what follows from that is done."""

import logging
from collections.abc import Iterable, Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread

from gateway.hermes.config_hooks import CONFIG_KINDS
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.folders.readiness import Readiness
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.source_set import SourceSet
from gateway.hooks.folders.sources import Source, list_hook_folders
from gateway.hooks.folders.watcher import FolderWatcher, TouchedFolders

MAX_STARTS = 4  # imports that run side by side while the gateway starts

log = logging.getLogger("gateway.hooks")


class FolderSet:
    """`settled` is set once everything found at the start has been started or looked at to the end."""

    def __init__(self, sources: Sequence[Source], house: HookServices) -> None:
        self.places = SourceSet(sources, house)
        self.hooks: dict[str, FolderHook] = {}
        self.settled = anyio.Event()
        self.watcher: FolderWatcher | None = None
        self._house = house
        self._scope = anyio.CancelScope()
        self._dirty: dict[str, None] = {}
        self._starting: set[str] = set()
        self._woken = anyio.Event()

    async def begin(self) -> None:
        """Watch, then find, so that nothing falls between; what is found is subscribed when this returns."""
        await self._watch()
        folders = self.places.folders()
        is_small = len(folders) <= self._house.settings.eager
        for folder in folders.values():
            assessment = self.places.check_first(folder, is_small)
            if assessment:
                await self._hook(folder.name).take(assessment, eager=False)
        self._house.tasks.start_soon(self._settle)
        self._house.tasks.start_soon(self._refresh_all)

    def touch(self, names: Iterable[str]) -> None:
        """Look at these again, soon."""
        self._dirty.update(dict.fromkeys(names))
        self._woken.set()

    async def refresh(self, name: str) -> None:
        """Look at this one again, now."""
        assessment = self.places.check_readiness(name)
        if assessment is not None:
            await self._take(self._hook(name), assessment)
        elif hook := self.hooks.pop(name, None):
            log.info("%s is gone", name)
            await hook.end()

    async def change_sources(self, sources: Sequence[Source]) -> None:
        """Other places count from now on: what is new there is subscribed when this returns, what is not is gone."""
        before, self.places.sources = self.places.sources, list(sources)
        if {source.path for source in before} != {source.path for source in sources}:
            self._scope.cancel()
            await self._watch()
            self.touch([*self.hooks, *self.places.folders()])  # what happened while nobody watched
        for name in {folder.name for source in sources if source not in before for folder in list_hook_folders(source)}:
            if assessment := self.places.check_readiness(name):
                await self._hook(name).take(assessment, eager=False)
        left = [source for source in before if source not in sources]
        for hook in list(self.hooks.values()):
            if hook.latest and hook.latest.folder.source in left:
                await self.refresh(hook.name)

    async def end(self) -> None:
        self._scope.cancel()
        async with anyio.create_task_group() as tasks:
            for hook in self.hooks.values():
                tasks.start_soon(hook.end)
        await anyio.to_thread.run_sync(self.places.save)

    def _hook(self, name: str) -> FolderHook:
        if name not in self.hooks:
            self.hooks[name] = FolderHook(name, self._house, self.places.check_readiness)
        return self.hooks[name]

    async def _take(self, hook: FolderHook, assessment: Readiness) -> None:
        """Many that come at once may not start all at once."""
        up = {each.name for each in self.hooks.values() if each.is_up}
        eager = len(up | self._starting) < self._house.settings.eager
        if eager:
            self._starting.add(hook.name)
        try:
            await hook.take(assessment, eager)
        finally:
            self._starting.discard(hook.name)

    async def _settle(self) -> None:
        limiter = anyio.CapacityLimiter(MAX_STARTS)
        async with anyio.create_task_group() as tasks:
            waiting = [hook for hook in self.hooks.values() if hook.waits]
            for hook in waiting[: self._house.settings.eager] + [hook for hook in waiting if hook.needs_start]:
                tasks.start_soon(_start, hook, limiter)
        for hook in list(self.hooks.values()):
            if hook.waits and hook.latest and not hook.latest.digest:
                await self._refresh_registered(hook)
                await anyio.lowlevel.checkpoint()
        await anyio.to_thread.run_sync(self.places.save)
        self.settled.set()

    async def _refresh_registered(self, hook: FolderHook) -> None:
        """Only its manifest was read so far."""
        assessment = self.places.check_readiness(hook.name)
        if assessment and hook.waits:
            await hook.take(assessment, eager=False)

    async def _watch(self) -> None:
        watched = [source.path for source in self.places.sources if source.kind not in CONFIG_KINDS]
        self.watcher = FolderWatcher(watched, self._touched)
        self._scope = anyio.CancelScope()
        self._house.tasks.start_soon(self._follow, self.watcher, self._scope)
        await self.watcher.is_watching.wait()

    async def _follow(self, watcher: FolderWatcher, scope: anyio.CancelScope) -> None:
        with scope:
            await watcher.run()

    def _touched(self, folders: TouchedFolders) -> None:
        self.touch(sorted(folder.name for folder in folders))

    async def _refresh_all(self) -> None:
        """One after the other, so that a thousand that change at once do not hold the loop; they start side by side."""
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            dirty, self._dirty = self._dirty, {}
            for name in dirty:
                self._house.tasks.start_soon(self.refresh, name)
                await anyio.lowlevel.checkpoint()


async def _start(hook: FolderHook, limiter: anyio.CapacityLimiter) -> None:
    async with limiter:
        if hook.waits:
            await hook.restart(False)

"""Notices which hook folders were touched, a moment after it happened, when a burst of writes is over.

It reports too much rather than too little: its caller looks at the contents, and finds them changed or not. A source
that does not exist yet, or was removed, is waited for. Where the system has no more watches to give, the folders are
looked at several times a second instead, and `trouble` says so.
"""

import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from gateway.hooks.folders.folder_source import is_ignored_name
from gateway.hooks.folders.hook_files import is_ignored_file
from gateway.hooks.folders.sources import Source

POLL_STEP = 12  # ms between two looks at what the system has noticed
GATHER_TIME, NO_TIMEOUT = 1, 0  # ms that it gathers changes, ms that it waits for one
BURST_QUIET = 0.015  # seconds without a write until a burst is over
BURST_LIMIT = 0.2  # seconds that a burst may last
POLL_INTERVAL = 0.4  # seconds between two looks at the files themselves, where the system notices nothing

log = logging.getLogger(__name__)

TouchedFolders = frozenset[Path]


class FolderWatcher:
    """`run` until its `scope` is cancelled; `notify` gets the folders that were touched, or have come or gone.

    Once `is_watching` is set, nothing that happens in the sources goes unnoticed.
    """

    def __init__(
        self, sources: Sequence[Source], notify: Callable[[TouchedFolders], None], polls: bool = False
    ) -> None:
        self._sources = tuple(sources)
        self._paths = tuple(dict.fromkeys(source.path for source in sources))
        self._told_whole = frozenset(source.path for source in sources if source.told_files)
        self._notify = notify
        self._dirty: set[Path] = set()
        self._woken = anyio.Event()
        self.polls = polls
        self.trouble = ""
        self.is_watching = anyio.Event()
        self.scope = anyio.CancelScope()

    async def run(self) -> None:
        with self.scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._report_bursts)
                while not self.polls:
                    await self._watch()
                await self._poll()

    async def _watch(self) -> None:
        """Until a source comes or goes: then there is another set of places to watch."""
        present = [path for path in self._paths if path.is_dir()]
        missing = [path for path in self._paths if path not in present]
        try:
            async with anyio.create_task_group() as tasks:
                standing = [anyio.Event() for places in (present, missing) if places]
                if missing:
                    tasks.start_soon(self._await_sources, missing, tasks.cancel_scope, standing[-1])
                if present:
                    tasks.start_soon(self._follow, present, tasks.cancel_scope, standing[0])
                for each in standing:
                    await each.wait()
                if self.is_watching.is_set():
                    self._touch(_folders_of(present))  # what happened while no watch stood
                self.is_watching.set()
        except* FileNotFoundError:
            pass  # a source went between two looks: the next set of places is another one
        except* (OSError, WatchfilesRustInternalError) as failed:
            self.polls = True
            self.trouble = (
                f"the system gives no more watches ({failed.exceptions[0]}): hooks are looked at every "
                f"{POLL_INTERVAL:g} s instead; raise fs.inotify.max_user_watches or fs.inotify.max_user_instances"
            )
            log.warning("%s", self.trouble)

    async def _poll(self) -> None:
        """Look at the files themselves."""
        before = await anyio.to_thread.run_sync(_snapshot_of, self._sources)
        if self.is_watching.is_set():
            self._touch(before)
        self.is_watching.set()
        while True:
            await anyio.sleep(POLL_INTERVAL)
            after = await anyio.to_thread.run_sync(_snapshot_of, self._sources)
            self._touch(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
            before = after

    async def _follow(self, sources: list[Path], scope: anyio.CancelScope, standing: anyio.Event) -> None:
        async for burst in self._bursts(sources, True, standing):
            self._touch(self._touched(burst))
            if any(not source.is_dir() for source in sources):
                scope.cancel()

    async def _await_sources(self, missing: list[Path], scope: anyio.CancelScope, standing: anyio.Event) -> None:
        nearest = sorted({_nearest_parent_of(source) for source in missing})
        async for _ in self._bursts(nearest, False, standing):
            if any(source.is_dir() or _nearest_parent_of(source) not in nearest for source in missing):
                scope.cancel()

    async def _bursts(self, places: list[Path], deep: bool, standing: anyio.Event) -> AsyncIterator[set[str]]:
        """Paths that were touched. The first element is empty: from then on the watch stands."""
        names = [str(place) for place in places]
        notify = await anyio.to_thread.run_sync(RustNotify, names, False, False, 0, deep, True)
        standing.set()
        yield set()
        stop = threading.Event()
        try:
            while True:
                found = await anyio.to_thread.run_sync(
                    notify.watch, GATHER_TIME, POLL_STEP, NO_TIMEOUT, stop, abandon_on_cancel=True
                )
                if isinstance(found, set):
                    yield {path for _, path in found}
        finally:
            stop.set()  # within a step the thread lets go of the watch, and with it goes the watch itself

    def _touched(self, burst: Iterable[str]) -> set[Path]:
        paths = {Path(path) for path in burst}
        found = {folder for path in paths for folder in self._folders_around(path)}
        found |= _folders_of(paths & set(self._paths))  # who may write to a source decides about all that is in it
        # A folder that is linked to from two places is watched once: a change in one is a change in both.
        real = {folder.resolve() for folder in found if folder.is_symlink()}
        if real:
            found |= {folder for folder in _folders_of(self._paths) if folder.resolve() in real}
        return found

    def _folders_around(self, path: Path) -> Iterator[Path]:
        """The folders that a path lies in; one source may lie within another."""
        for source in self._paths:
            if path == source or not path.is_relative_to(source):
                continue
            folder, *below = path.relative_to(source).parts
            if not any(map(is_ignored_file, below)):
                yield source / folder

    def _touch(self, folders: Iterable[Path]) -> None:
        told = (one for one in folders if one.parent in self._told_whole or not is_ignored_name(one.name))
        self._dirty.update(told)
        if self._dirty:
            self._woken.set()

    async def _report_bursts(self) -> None:
        while True:
            await self._woken.wait()
            with anyio.move_on_after(BURST_LIMIT):
                while (rest := BURST_QUIET - _age_of(self._dirty)) > 0:  # noqa: ASYNC110 - a quiet file system sets no event
                    await anyio.sleep(rest)
            self._woken = anyio.Event()
            dirty, self._dirty = self._dirty, set()
            self._notify(frozenset(dirty))


def _snapshot_of(sources: Iterable[Source]) -> dict[Path, object]:
    """The folders, and of each what changes when it does."""
    found: dict[Path, object] = {}
    for version in (version for source in sources for version in source.list()):
        try:
            looks = [(entry.name, entry.stat()) for entry in version.path.iterdir() if not is_ignored_file(entry.name)]
        except OSError:
            looks = []
        found[version.path] = (version, sorted((name, look.st_mtime_ns, look.st_size) for name, look in looks))
    return found


def _age_of(folders: Iterable[Path]) -> float:
    """Seconds since the last write into these folders, as their own times tell: the notices come in steps."""
    newest = 0.0
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                times = [entry.stat().st_mtime for entry in entries if not is_ignored_file(entry.name)]
            newest = max(newest, folder.stat().st_mtime, *times)
        except OSError:
            continue
    return time.time() - newest


def _folders_of(sources: Iterable[Path]) -> set[Path]:
    found: set[Path] = set()
    for source in sources:
        try:
            found.update(source.iterdir())
        except OSError:
            continue
    return found


def _nearest_parent_of(path: Path) -> Path:
    """The nearest folder above that exists."""
    return next((parent for parent in path.parents if parent.is_dir()), Path("/"))

"""The watch on hook folders: the watcher reports touched folders a moment later, when a burst of writes is over.

The watcher reports too much rather than too little: its caller checks whether the contents have changed. It polls for a
source that does not exist yet, or was removed: a watch on the folder around the source would report each write into a
home. If the system has no more watches, the watcher polls the files instead, and `trouble` says so.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
from watchfiles import Change, awatch
from watchfiles._rust_notify import WatchfilesRustInternalError

from gateway.backoff import find_pause
from gateway.hooks.folders.kept_hooks import find_inode
from gateway.hooks.places.folder_source import is_ignored_name
from gateway.hooks.places.hook_files import is_ignored_file
from gateway.hooks.places.sources import HookVersion, Source
from gateway.threads import is_thread_error, run_in_thread, wait_for_threads

STEP = 100  # ms between two checks of the system's reports; a step without a write ends a burst
BURST_LIMIT = 200  # ms that a burst may last
POLL_INTERVAL = 0.4  # seconds between two checks of the files, if the system has no watches
MISSING_INTERVAL = 1.0  # seconds between two checks for missing sources
MOUNT_INTERVAL = 10.0  # seconds between two checks for mounts and links, which no system reports

is_folder = os.path.isdir  # false, and no error, for an unreadable path

log = logging.getLogger(__name__)

TouchedFolders = frozenset[Path]


class FolderWatcher:
    """The watcher of the sources' folders; `run` works until its `scope` is cancelled.

    `notify` gets the folders that were touched, added or removed, and the missing sources. Once `is_watching` is set,
    no change in the sources goes unnoticed.
    """

    def __init__(
        self, sources: Sequence[Source], notify: Callable[[TouchedFolders], None], polls: bool = False
    ) -> None:
        self._sources = tuple(sources)
        self._paths = tuple(dict.fromkeys(source.path for source in sources))
        self._told_whole = frozenset(
            source.path for source in sources if any(one.loads_any_name for one in source.dialects)
        )
        self._notify = notify
        self.polls = polls
        self.trouble = ""
        self.is_watching = anyio.Event()
        self.scope = anyio.CancelScope()

    async def run(self) -> None:
        with self.scope:
            while not self.polls:
                await self._watch()
            await self._poll()

    async def _watch(self) -> None:
        """Watch the existing sources until a source is added or removed: then the folders to watch change."""
        before = self._find_inodes()
        present = [path for path in self._paths if is_folder(path)]
        missing = [path for path in self._paths if path not in present]
        stop = anyio.Event()
        await wait_for_threads()  # without a thread, the library ends the process
        try:
            async with anyio.create_task_group() as tasks:
                if present:
                    tasks.start_soon(self._follow, present, stop)
                    await anyio.lowlevel.checkpoint()  # its first step makes the watch
                if self.is_watching.is_set():
                    self._tell({*_folders_of(present), *self._paths})  # changes from before the watch
                self.is_watching.set()
                try:
                    while not stop.is_set() and self._find_inodes() == before:
                        with anyio.move_on_after(find_pause(MISSING_INTERVAL if missing else MOUNT_INTERVAL)):
                            await stop.wait()
                finally:
                    stop.set()  # the thread of the watch is not to be cancelled: it checks `stop` at each step
        except* FileNotFoundError:
            pass  # a source was removed between two checks: the next round has other places
        except* (OSError, WatchfilesRustInternalError) as failed:
            self.polls = True
            self.trouble = (
                f"the system gives no more watches ({failed.exceptions[0]}): hooks are looked at every "
                f"{POLL_INTERVAL:g} s instead; raise fs.inotify.max_user_watches or fs.inotify.max_user_instances"
            )
            log.warning("%s", self.trouble)
        except* RuntimeError as failed:
            if not is_thread_error(failed.exceptions[0]):
                raise

    def _find_inodes(self) -> list[tuple[int, int]]:
        return [find_inode(path) for path in self._paths if is_folder(path)]

    async def _poll(self) -> None:
        """Poll the files themselves."""
        before = await run_in_thread(_snapshot_of, self._sources)
        if self.is_watching.is_set():
            self._tell(before)
        self.is_watching.set()
        while True:
            await anyio.sleep(POLL_INTERVAL)
            after = await run_in_thread(_snapshot_of, self._sources)
            self._tell(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
            before = after

    async def _follow(self, sources: Sequence[Path], stop: anyio.Event) -> None:
        watch = partial(awatch, watch_filter=None, debounce=BURST_LIMIT, step=STEP, ignore_permission_denied=True)
        async for burst in watch(*sources, stop_event=stop):
            self._tell(self._find_touched(path for _, path in burst))
            is_deleted = any(change == Change.deleted and Path(path) in sources for change, path in burst)
            if is_deleted or not all(map(is_folder, sources)):
                stop.set()  # the source may exist again, and the new folder is not watched

    def _find_touched(self, burst: Iterable[str]) -> set[Path]:
        paths = {Path(path) for path in burst}
        found = {folder for path in paths for folder in self._folders_around(path)}
        found |= _folders_of(paths & set(self._paths))  # a change of the source's own folder concerns all hooks in it
        # A folder that is linked to from two places is watched once: a change in one is a change in both.
        real = {folder.resolve() for folder in found if folder.is_symlink()}
        if real:
            found |= {folder for folder in _folders_of(self._paths) if folder.resolve() in real}
        return found

    def _folders_around(self, path: Path) -> Iterator[Path]:
        """Yield the hook folders that contain this path; one source may be inside another."""
        for source in self._paths:
            if path == source or not path.is_relative_to(source):
                continue
            folder, *below = path.relative_to(source).parts
            if not any(map(is_ignored_file, below)):
                yield source / folder

    def _tell(self, folders: Iterable[Path]) -> None:
        if told := frozenset(one for one in folders if one.parent in self._told_whole or not is_ignored_name(one.name)):
            self._notify(told)


def _snapshot_of(sources: Iterable[Source]) -> dict[Path, object]:
    """Return the folders, each with values that change when the folder changes."""
    found: dict[Path, object] = {}
    for version in (version for source in sources for version in _list_versions(source)):
        try:
            looks = [(entry.name, entry.stat()) for entry in version.path.iterdir() if not is_ignored_file(entry.name)]
        except OSError:
            looks = []
        found[version.path] = (version, sorted((name, look.st_mtime_ns, look.st_size) for name, look in looks))
    return found


def _list_versions(source: Source) -> list[HookVersion]:
    try:
        return list(source.list())
    except OSError:
        return []


def _folders_of(sources: Iterable[Path]) -> set[Path]:
    found: set[Path] = set()
    for source in sources:
        try:
            found.update(source.iterdir())
        except OSError:
            continue
    return found

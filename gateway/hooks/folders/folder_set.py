"""The set of hooks in folders: a touched folder is checked again, and its hook follows the newest state.

    the start             FolderWatcher       a decision, a tool that has ended      a reload, `hooks reload`
        │                     │ folders               │ names                             │ sources, or a name
        │                     └──► touch(names) ◄─────┘                                   │
        │                              │ each name once                                   │
        │                              ▼                                                  │
        │                  _refresh_touched: removed ones first                           │
        ▼                              ▼                                                  │
    check_first(version)         refresh(name) ◄──────────────────────────────────────────┘
        │                              │
        │  manifest, or all        SourceSet.check(name)
        │                              │  find     in the sources; a later source takes precedence
        │                              │  inspect  manifest, code and digest, from the cache if nothing changed
        │                              │  judge    may it run here: trust, switches, requirements, kept guards
        │                              │
        │                              ├── None: the hook is gone, so it is ended and forgotten
        ▼                              ▼
    FolderHook.take(version): subscribe, then start, restart or stop the hook as its version says

If a check fails because the system has no free descriptor, `_look_until_done` repeats the check. A guard that a tool
may have changed or removed waits for a person: `KeptHooks` knows the guards that the gateway has seen, and `_judge`
compares the folder with them.
"""

import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from gateway.backoff import Attempts
from gateway.config.settings import PLUGIN_PREFIX
from gateway.hooks.folders.durable import DurableDelivery
from gateway.hooks.folders.hook import LOOKS, FolderHook
from gateway.hooks.folders.kept_hooks import CHANGED, GONE, OFF, KeptHooks, KeptSource, describe_missing
from gateway.hooks.folders.readiness import check_readiness
from gateway.hooks.folders.watcher import FolderWatcher, TouchedFolders
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.own_guards import describe_new_guards
from gateway.hooks.places.folder_source import report_unreadable
from gateway.hooks.places.inspection import InspectionCache, find_program_files
from gateway.hooks.places.sources import UNREAD_STATES, HookVersion, Source
from gateway.hooks.places.switches import HookSwitches
from gateway.hooks.services import HookServices
from gateway.threads import run_in_thread
from gateway.yaml_source.tree import Finding, SourceLocation

MAX_READS = 3  # of a folder that changes while it is read
MAX_STARTS = 4  # imports that run side by side while the gateway starts

log = logging.getLogger("gateway.hooks")


class SourceSet:
    """The sources of hooks, in their order, and the search for a hook in these sources.

    A hook of a later source replaces the hook of the same name in an earlier source.
    """

    def __init__(self, sources: Sequence[Source], services: HookServices) -> None:
        self.sources = list(sources)
        self.switches = HookSwitches(services.environment.state)
        self.cache = InspectionCache(services.environment.state)
        self.kept = KeptHooks(services.environment, is_new=self.cache.is_new)
        self._services = services

    def list(self) -> dict[str, HookVersion]:
        """Return all hooks by name, in the order of the sources, with the kept hooks that no source has."""
        found = {name: version for name in self.kept if (version := self._find_kept(name))}
        for source in self.sources:
            for version in _list_versions(source):
                there = found.get(version.name)
                if there and there.source.is_elsewhere and not _is_present(version):
                    continue
                if there and not there.source.is_elsewhere:
                    words = "%s: the folder in %s replaces the one in %s"
                    log.info(words, version.name, source.origin, there.source.origin)
                found[version.name] = version
        return {name: self._configure(version, _namesake_of(version) in found) for name, version in found.items()}

    def find(self, name: str) -> HookVersion | None:
        """Return the hook with this name, or None. A name that is a path finds nothing."""
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            return None
        found = self._find(name)
        return found and self._configure(found, self._find(_namesake_of(found)) is not None)

    def _find(self, name: str) -> HookVersion | None:
        unread: list[HookVersion] = []
        asked = [source for source in reversed(self.sources) if name.startswith(source.prefix)]
        found = (version for source in asked if (version := _find_version(source, name, unread)))
        last = next(found, None)
        if last and not _is_present(last):
            return next((version for version in found if version.source.is_elsewhere), last)
        return last or self._find_kept(name) or next(iter(unread), None)

    def _find_kept(self, name: str) -> HookVersion | None:
        """Find a hook that is kept though no source has it: the source is unreadable, or a tool removed the hook."""
        kept = self.kept.get(name)
        if kept is None or not (what := describe_missing(kept, self.sources)):
            return None
        path, remedy = Path(kept.path), f"put it back; to go on without it: hermes-gateway hooks forget {name}"
        missing = Finding(SourceLocation(name), what, remedy)
        source, why = KeptSource(path.parent), f"{what}; {remedy}"
        return HookVersion(name, path, source, (), (missing,), "missing", why, stored_as=kept.stored_as)

    def hold_removed(self, name: str) -> None:
        """Hold a hook that was removed while a tool was at work; forget a hook that a person removed."""
        kept, found = self.kept.get(name), self._find(name)
        if kept is None or kept.held or not _is_missing(found):
            return
        # The folder around the hook, or the file that named the hook.
        places = [Path(kept.place), Path(kept.path).parent, *self._services.lock.list_files(Path(kept.path))]
        if any(map(self._is_tools_doing, map(_find_change_time, places))):
            self.kept.hold(name, GONE)
        elif found is None:
            log.warning("guard %s is gone; nothing is denied for it", name)
            self.kept.forget(name)

    def check(self, name: str) -> HookVersion | None:
        """Inspect the hook, and judge whether it may run; return None if the hook was not found."""
        version, why = self.find(name), OSError()
        for _ in range(MAX_READS):
            if version is None:
                return None
            try:
                judged = self._judge(self.cache.inspect(version))
            except OSError as error:  # a file was removed meanwhile; the folder may be gone, or being written
                version, why = self.find(name), error
                continue
            now = version if judged.is_ready else self.find(name)
            if now is None or now.path == version.path:
                return judged
            version = now  # the hook was installed again, in another folder, during the check
        return version and self._judge_unread(version, why)

    def check_first(self, version: HookVersion, is_whole: bool) -> HookVersion | None:
        """Check one hook at the start of the gateway.

        If `is_whole` is False, the check uses the cache, or reads only the manifest; new code is read later.
        """
        try:
            if is_whole:
                version = self.cache.inspect(version)
            else:
                version = self.cache.get(version) or version.source.inspect_manifest(version)
            return self._judge(version)
        except FileNotFoundError:
            return None
        except OSError as error:
            return self._judge_unread(version, error)

    def _judge_unread(self, version: HookVersion, error: OSError) -> HookVersion:
        version = self._find_kept_dialect(version)
        unread = replace(version, state="refused", reason=f"cannot be read: {error}", manifest=None, digest="")
        return check_readiness(unread, self._services, self.switches, self.kept.find_manifest(version.name))

    def _is_tools_doing(self, at: float) -> bool:
        tools = self._services.environment.ports.tools
        return tools is not None and tools.may_have_changed(at)

    def _judge(self, version: HookVersion) -> HookVersion:
        """Judge whether the hook may run; a guard that a tool may have changed waits for a person."""
        checked = self._judge_here(version)
        kept = self.kept.get(version.name)
        if kept and kept.manifest and _waits_for_people(checked) and (trouble := checked.source.trouble):
            # The file that switched the hook on cannot be read now.
            checked = self._find_kept_dialect(checked)
            missing = replace(checked, state="missing", reason=trouble, manifest=kept.manifest, digest="")
            return replace(missing, denied=kept.manifest.guard)
        is_off = checked.state == "disabled" and checked.reason == checked.source.why_disabled(checked)
        manifest = kept.manifest if kept else None
        if kept is None or manifest is None or not (is_off or (checked.is_ready and checked.digest)):
            return checked
        is_known = checked.digest == kept.digest and not is_off
        if not (is_known or kept.held) and manifest.guard and self._is_tools_doing(_latest_change(checked)):
            kept = self.kept.hold(version.name, OFF if is_off else CHANGED)
        elif is_known or not kept.held:
            self.kept.forget(version.name) if is_off else self.kept.accept(version.name, checked.digest)
            return checked
        why = (
            f"{kept.held} while a tool was at work; look at it, then run: hermes-gateway hooks "
            f"{'enable' if is_off else 'trust'} {checked.called}, or, to go on without it: "
            f"hermes-gateway hooks forget {checked.called}"
        )
        checked = self._find_kept_dialect(checked)
        return replace(checked, state="pending", reason=why, manifest=manifest, denied=manifest.guard)

    def _find_kept_dialect(self, version: HookVersion) -> HookVersion:
        """Return the hook with the dialect of its last good load, if a source still has this dialect."""
        kept = self.kept.get(version.name)
        if kept is None or not version.dialect.is_own:
            return version
        known = (dialect for source in (version.source, *self.sources) for dialect in source.dialects)
        return replace(version, dialect=next((one for one in known if one.name == kept.dialect), version.dialect))

    def _judge_here(self, version: HookVersion) -> HookVersion:
        """Judge the hook; until it may run here, the gateway denies the events that other gateways deny for it."""
        other = self._find_elsewhere(version.name)
        if other and version.is_ready and version.manifest is None and version.denied is None:
            version = replace(version, denied=other.denied, is_guarded_elsewhere=True)
        kept = self.kept.find_manifest(version.name)
        version = self._find_kept_dialect(version) if version.manifest is None else version
        checked = check_readiness(version, self._services, self.switches, kept)
        is_unread = checked.manifest is None and checked.state in UNREAD_STATES and os.path.lexists(version.path)
        if self.kept.is_lost and kept is None and is_unread:
            checked = check_readiness(version, self._services, self.switches, self.kept.assume(version))
        if other and checked.denied is None and _waits_for_people(checked):
            other = replace(other, has_namesake=version.has_namesake)
            denied = check_readiness(other, self._services, self.switches).denied
            checked = replace(checked, denied=denied, is_guarded_elsewhere=denied is not None)
        return checked

    def _find_elsewhere(self, name: str) -> HookVersion | None:
        """Find the hook of this name that other gateways describe."""
        found = (one for source in self.sources if source.is_elsewhere and (one := source.find(name)))
        return next(found, None)

    def _configure(self, version: HookVersion, has_namesake: bool) -> HookVersion:
        """Add the facts that are known before the hook is read: its namesake, and the setting `written_for`."""
        version = replace(version, has_namesake=has_namesake)
        return replace(version, written_for=self._services.settings_of(version.name, version.short).written_for)

    async def save(self) -> None:
        """Save the index of the hooks, so that the next start does not read the folders again."""
        try:
            await run_in_thread(self.cache.save)
        except OSError as error:
            log.warning("the index of hooks cannot be kept, the next start takes longer: %s", error)


def _list_versions(source: Source) -> Iterator[HookVersion]:
    """Yield the hooks of a source, or nothing if the source cannot be read: the kept hooks count then."""
    try:
        yield from source.list()
    except OSError as error:
        log.warning("%s cannot be read: %s; it is looked at again", source.path, error.strerror)


def _find_version(source: Source, name: str, unread: list[HookVersion]) -> HookVersion | None:
    """Find the hook in this source; if the source cannot be read, `unread` gets an unreadable version."""
    try:
        return source.find(name)
    except OSError as error:
        path = source.path / name.removeprefix(source.prefix)
        unread.append(report_unreadable(name, path, source, error))
        return None


def _latest_change(version: HookVersion) -> float:
    """Return the time of the last change of the hook, or of the place around the hook.

    The place counts because a tool may have moved an older folder into it.
    """
    words = find_program_files(version.path, version.manifest.command) if version.manifest else []
    paths = (version.path / name for name in ("", *words, *(file.name for file in version.files)))
    around = filter(None, (version.source.path, version.source.switch_file))
    return max(map(_find_change_time, (*around, *paths)))


def _find_change_time(path: Path) -> float:
    """Return the time of a path's last change, or the current time if the file system cannot tell.

    For a link, the later time counts: of the link itself, or of its target.
    """
    try:
        return max(path.lstat().st_ctime, path.stat().st_ctime)
    except OSError:
        return time.time()


def _is_missing(version: HookVersion | None) -> bool:
    return version is None or isinstance(version.source, KeptSource)


def _find_stamp(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0


def _is_present(version: HookVersion) -> bool:
    """Tell whether the hook's folder exists: without its folder, an installed hook replaces no guard."""
    return version.state != "refused" or os.path.lexists(version.path)


def _waits_for_people(version: HookVersion) -> bool:
    """Tell whether the hook still waits for a person to decide that it may run here."""
    if version.state == "disabled":
        off_at_first = version.dialect.off_at_first
        return bool(off_at_first) and version.reason.startswith(off_at_first)
    return version.state == "pending"


def _namesake_of(version: HookVersion) -> str:
    """Return the name of the plugin with the same short name as this hook, or of the hook if this is a plugin."""
    return version.bare_name if version.name != version.bare_name else PLUGIN_PREFIX + version.name


class FolderSet:
    """The hooks of all sources; each hook follows the changes of its folder.

    `settled` is set once every hook found at the start has started, or has been inspected in full. The set calls
    `find_places` when a folder appears that may hold hooks of its own.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        services: HookServices,
        durable: DurableDelivery | None,
        find_places: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self.sources = SourceSet(sources, services)
        self.hooks: dict[str, FolderHook] = {}
        self.plugins: dict[str, FolderHook] = {}  # the hooks that may offer something, in the order of their names
        self.settled = anyio.Event()
        self.watcher: FolderWatcher | None = None
        self._services = services
        self._durable = durable
        self._find_places = find_places
        self._dirty: dict[str, None] = {}
        self._starting: set[str] = set()
        self._woken = anyio.Event()

    async def begin(self) -> None:
        """Watch the folders first, so that no change is missed, then find the hooks and subscribe them."""
        await self._watch()
        found = self.sources.list()
        is_small = len(found) <= self._services.settings.eager
        for version in found.values():
            if checked := self.sources.check_first(version, is_small):
                if checked.is_ready and checked.source.is_forked and not checked.source.is_ours:
                    self._services.fork_server.begin()  # in parallel to the rest of the start
                await self._hook(version.name).take(checked, eager=False)
        for name in self.sources.kept:
            if _is_missing(found.get(name)):
                self.sources.hold_removed(name)
        if tools := self._services.environment.ports.tools:
            _list_named(self.hooks, changed := dict[Path, int]())
            tools.on_end = lambda: self.touch(_list_named(self.hooks, changed))
        for task in (self._settle, self._refresh_touched, self.sources.kept.run):
            self._services.tasks.start_soon(task)

    def list_store_names(self) -> list[str]:
        """List the names under which the hooks of this gateway store values and have pending events."""
        return [hook.store_name for hook in self.hooks.values() if hook.is_here]

    def touch(self, names: Iterable[str]) -> None:
        """Schedule a check of these hooks.

        A plugin of the same name may have lost its short name to a hook, or got the name back, so the plugin is checked
        too.
        """
        touched = {*names}
        namesakes = {name.removeprefix(PLUGIN_PREFIX) for name in touched} | {PLUGIN_PREFIX + name for name in touched}
        self._dirty.update(dict.fromkeys(sorted(touched | namesakes & self.hooks.keys())))
        self._woken.set()

    def touch_decided(self, names: Collection[str]) -> None:
        """Schedule a check of the hooks that a person decided about.

        `names` are the names of hooks' stores, or, if the decision was about trust, of the hooks themselves.
        """
        self.touch(name for name, hook in self.hooks.items() if name in names or hook.store_name in names)

    async def refresh(self, name: str) -> None:
        """Check this hook now, and follow its state. If many hooks change at once, only some of them start at once."""
        version = self.sources.check(name)
        if _is_missing(version):
            self.sources.hold_removed(name)
            version = self.sources.check(name)
        if version is None:
            self.plugins.pop(name, None)
            if hook := self.hooks.pop(name, None):
                log.info("%s is gone", name)
                await hook.end()
                if self._durable and hook.is_here:
                    await self._durable.note_gone(hook.store_name)
            return
        hook = self._hook(name)
        if eager := self._may_start_more():
            self._starting.add(name)
        before = hook.current
        try:
            await hook.take(version, eager)
        finally:
            self._starting.discard(name)
        self._tell_change(hook, before)

    def _may_start_more(self) -> bool:
        """Tell whether fewer than `hooks.eager` hooks are up or starting."""
        most = self._services.settings.eager
        if len(self.hooks) <= most:
            return True
        up = {each.name for each in self.hooks.values() if each.is_up}
        return len(up | self._starting) < most

    def _tell_change(self, hook: FolderHook, before: HookVersion | None) -> None:
        """Log that a folder is new or has changed, with its warnings, for the person who edited the folder."""
        now = hook.current
        if now and now.manifest and hook.process.state in ("loaded", "registered") and self.settled.is_set():
            if before is None:
                log.info("%s is new: %s; %s", hook.called, hook.process.state, ", ".join(now.manifest.subscriptions))
            elif before.digest != now.digest:
                log.info("%s has changed: %s", hook.called, hook.process.state)
            else:
                return
            for finding in now.findings:
                if finding.severity == "warning":
                    log.warning("%s", finding, extra={"hook": hook.name})

    async def change_sources(self, sources: Sequence[Source]) -> None:
        """Use these sources in place of the former sources.

        On return, new hooks are subscribed, and the hooks of dropped sources are gone.
        """
        before = self.sources.sources
        # An equal source stays the same object, with its cached contents.
        self.sources.sources = [next((old for old in before if old == source), source) for source in sources]
        if {source.path for source in before} != {source.path for source in sources}:
            await self._watch()
            self.touch([*self.hooks, *self.sources.list()])  # hooks may have changed while no watcher ran
        # A source that is not watched may have other hooks now, though it is the same source.
        changed = [source for source in sources if source not in before or not source.is_watched]
        for name in {version.name for source in changed for version in _list_versions(source)}:
            if (checked := self.sources.check(name)) and not checked.source.is_elsewhere:
                await self._hook(name).take(checked, eager=checked.dialect.starts_early)
        left = [source for source in before if source not in sources or not source.is_watched]
        for hook in list(self.hooks.values()):
            if hook.latest and hook.latest.source in left:
                await self.refresh(hook.name)

    async def end(self) -> None:
        if self.watcher:
            self.watcher.scope.cancel()
        async with anyio.create_task_group() as tasks:
            for hook in self.hooks.values():
                tasks.start_soon(hook.end)
        await self.sources.kept.save()
        await self.sources.save()

    def _hook(self, name: str) -> FolderHook:
        if name not in self.hooks:
            self.hooks[name] = FolderHook(name, self._services, self._durable, self.sources.check, self.sources.kept)
            if name.startswith(PLUGIN_PREFIX):
                self.plugins = dict(sorted({**self.plugins, name: self.hooks[name]}.items()))
        return self.hooks[name]

    async def _settle(self) -> None:
        limiter = anyio.CapacityLimiter(MAX_STARTS)
        async with anyio.create_task_group() as tasks:
            waiting = [hook for hook in self.hooks.values() if hook.waits]
            for hook in waiting[: self._services.settings.eager] + [hook for hook in waiting if hook.needs_start]:
                tasks.start_soon(_start, hook, limiter)
        for hook in list(self.hooks.values()):
            if hook.waits and hook.latest and not hook.latest.digest:  # only its manifest was read so far
                checked = self.sources.check(hook.name)
                if checked and hook.waits:
                    await hook.take(checked, eager=False)
                await anyio.lowlevel.checkpoint()
        await self.sources.save()
        self.sources.kept.is_lost = False  # a hook that appears later has guarded nothing so far
        if self.sources.cache.is_of_before and (new := describe_new_guards(_list_own_manifests(self.hooks))):
            log.warning("%s", new)
        self.settled.set()

    async def _watch(self) -> None:
        if self.watcher:
            self.watcher.scope.cancel()
        watched = [source for source in self.sources.sources if source.is_watched and not source.is_ours]
        self.watcher = FolderWatcher(watched, self._touched)
        self._services.tasks.start_soon(self.watcher.run)
        await self.watcher.is_watching.wait()

    def _touched(self, folders: TouchedFolders) -> None:
        sources = self.sources.sources
        self.touch(_list_touched(sources, folders))
        self.touch(name for name, hook in self.hooks.items() if hook.latest and hook.latest.source.path in folders)
        known = {source.path for source in sources}
        places = ((source, folder) for folder in folders - known for source in sources if source.path == folder.parent)
        if any(source.is_place(folder) for source, folder in places):
            self._services.tasks.start_soon(self._find_places)

    async def _refresh_touched(self) -> None:
        """Check touched hooks one by one, so that a thousand hooks do not block the loop; they start side by side."""
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            dirty, self._dirty = self._dirty, {}
            # Removed hooks come first: a renamed folder does not get again what it got under its old name.
            if len(dirty) > 1:
                dirty = dict.fromkeys(sorted(dirty, key=lambda name: self.sources.find(name) is not None))
            for name in dirty:
                self._services.tasks.start_soon(_look_until_done, self.refresh, name)
                await anyio.lowlevel.checkpoint()


def _list_named(hooks: Mapping[str, FolderHook], changed: dict[Path, int]) -> list[str]:
    """List the hooks that a tool may have changed through a file that names the hooks or switches them.

    `changed` maps each file that switches hooks to the time of its last known change.
    """
    sources = {name: one.latest.source for name, one in hooks.items() if one.latest}
    stamps = {file: _find_stamp(file) for one in sources.values() if (file := one.switch_file)}
    touched = {file for file, stamp in stamps.items() if changed.get(file) != stamp}
    changed.update(stamps)
    is_named = {name: not (one.is_ours or (one.is_placed and one.is_watched)) for name, one in sources.items()}
    return [name for name, one in sources.items() if is_named[name] or one.switch_file in touched]


def _list_own_manifests(hooks: Mapping[str, FolderHook]) -> dict[str, Manifest]:
    """Return, by hook name, the manifests of hooks in use that are in this gateway's own format."""
    used = ((name, one.current) for name, one in hooks.items() if one.current and one.current.dialect.is_own)
    return {name: version.manifest for name, version in used if version.manifest}


async def _look_until_done(look: Callable[[str], Awaitable[None]], name: str) -> None:
    """Check a hook; if the system has no descriptor for the check, repeat it after a pause."""
    attempts = Attempts(LOOKS)
    while True:
        try:
            return await look(name)
        except OSError as error:
            log.warning("%s could not be looked at: %s; it is looked at again", name, error)
            await anyio.sleep(attempts.pause())


def _list_touched(sources: Iterable[Source], folders: TouchedFolders) -> list[str]:
    touched: list[str] = []
    for source in sources:
        with suppress(OSError):  # running hooks go on; the next check reports the reason
            touched += source.list_touched(folders)
    return touched


async def _start(hook: FolderHook, limiter: anyio.CapacityLimiter) -> None:
    async with limiter:
        if hook.waits:
            await hook.restart(False)

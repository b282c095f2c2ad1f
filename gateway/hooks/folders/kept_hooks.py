"""The memory of hooks: the manifests of their last good loads, kept from one start to the next.

If a folder is unreadable or gone, the gateway cannot read which events its hook guards. The kept manifest has these
events, until a person removes the hook. If a folder changes or disappears while a tool that may change files is at
work, its hook is `held`: the hook waits for a person, whatever caused the change.

The memory also keeps the registrations of plugins whose source code does not show them: until such a plugin has run,
tools wait for the plugin. The registrations count until something changes on which they may depend: the whole folder,
the plugin's options, the variables that the plugin reads, and its own packages.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.config.secrets import is_public_value
from gateway.errors import HookError
from gateway.hooks.manifests.manifest import Manifest, Reading
from gateway.hooks.places.sources import HookVersion, MissingSource, Source
from gateway.hooks.places.switches import read_json, write_atomically
from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.hooks.services import HookEnvironment
from gateway.hooks.stats import MissedDecisions
from gateway.threads import run_in_thread

REGISTRATIONS_FILE = "registrations.json"
MAX_BYTES = 2 << 20  # of a folder that is hashed at each check
SAVE_PAUSE, RETRY_PAUSE = 0.1, 30.0  # seconds to collect changes, and to wait after a failed write
CHANGED, GONE, OFF = "its folder was changed", "its folder went", "it was switched off"

log = logging.getLogger("gateway.hooks")


class KeptHook(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one hook at its last good load.

    `place` is the folder or file that named the hook, with its `device` and `inode`. `dialect` is the dialect in which
    the hook was written. `key` is a hash of the circumstances of the hook's last run, and `known` the manifest of that
    run. `held` describes a change of the hook while a tool was at work.
    """

    key: str = ""
    known: Manifest | None = None
    manifest: Manifest | None = None
    dialect: str = ""
    path: str = ""
    place: str = ""
    device: int = 0
    inode: int = 0
    digest: str = ""
    stored_as: str = ""
    held: str = ""
    missed: MissedDecisions = MissedDecisions()


class KeptHooks:
    """The kept hooks by name, in memory and in one file of the home.

    `is_new`: the file may be missing. `is_lost`: the file has lost entries, so a hook that cannot be loaded guards
    every tool.
    """

    def __init__(self, environment: HookEnvironment, *, is_new: bool) -> None:
        self._path = environment.state / REGISTRATIONS_FILE
        self._environment = environment
        self._kept, is_whole = _read_entries(self._path)
        self.is_lost = not is_whole and not (is_new and not self._path.exists())
        self._changed = anyio.Event()
        if self.is_lost:
            log.warning("%s cannot be read: a hook that cannot be loaded denies every tool", self._path)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kept in self._kept.items() if kept.manifest])

    def get(self, name: str) -> KeptHook | None:
        """Return the kept hook; None if the hook guards nothing and is not durable."""
        kept = self._kept.get(name)
        return kept if kept and kept.manifest else None

    def find_manifest(self, name: str) -> Manifest | None:
        """Find the manifest of the hook's last good load."""
        kept = self._kept.get(name)
        return kept.manifest if kept else None

    def assume(self, version: HookVersion) -> Manifest:
        """Make the hook guard every tool, because the gateway does not know which tools it guarded."""
        manifest = Manifest(folder=version.name, name=version.name, intercepts=("tool:before",), on_error="deny")
        self._put(version.name, KeptHook(manifest=manifest, path=str(version.path), place=str(version.source.path)))
        return manifest

    def find_known(self, version: HookVersion) -> Manifest | None:
        """Find the manifest of the hook's last run, if nothing has changed on which the manifest may depend."""
        kept = self._kept.get(version.name)
        return kept.known if kept and kept.key and kept.key == self._key_of(version) else None

    def keep(self, version: HookVersion) -> None:
        """Keep the facts of this version, which is now in use. The hooks of skills are not kept."""
        manifest, before = version.manifest, self._kept.get(version.name) or KeptHook()
        assert manifest
        if not version.digest or version.source.conversations is not None:
            return
        counts = bool(manifest.guard or manifest.delivery == "durable")
        place = version.source.path
        device, inode = find_inode(place)
        self._put(
            version.name,
            msgspec.structs.replace(
                before,
                manifest=manifest if counts else None,
                dialect=version.dialect.name,
                path=str(version.path),
                place=str(place),
                device=device,
                inode=inode,
                digest=version.digest,
                stored_as=version.stored_as,
                held="",
            ),
        )

    def keep_known(self, version: HookVersion) -> None:
        """Keep the manifest with which this version runs."""
        before = self._kept.get(version.name) or KeptHook()
        self._put(version.name, msgspec.structs.replace(before, key=self._key_of(version), known=version.manifest))

    def find_missed(self, name: str) -> MissedDecisions:
        """Find the decisions that the hook failed to make, and that no person has seen."""
        kept = self._kept.get(name)
        return kept.missed if kept else MissedDecisions()

    def keep_missed(self, name: str, missed: MissedDecisions) -> None:
        """Keep these failed decisions, also over restarts."""
        self._put(name, msgspec.structs.replace(self._kept.get(name) or KeptHook(), missed=missed))

    def hold(self, name: str, what: str) -> KeptHook:
        """Let the hook wait for a person, because of this change."""
        self._put(name, msgspec.structs.replace(self._kept[name], held=what))
        return self._kept[name]

    def accept(self, name: str, digest: str) -> None:
        """Accept this content of the hook, which then waits for a person no longer."""
        if kept := self._kept.get(name):
            self._put(name, msgspec.structs.replace(kept, held="", digest=digest))

    def forget(self, name: str) -> None:
        """Forget the hook, and go on without it."""
        if self._kept.pop(name, None):
            self._changed.set()

    def _put(self, name: str, kept: KeptHook) -> None:
        if kept != self._kept.get(name):
            self._kept[name] = kept
            self._changed.set()

    async def run(self) -> None:
        """Write each change soon, until cancelled."""
        while True:
            await self._changed.wait()
            await anyio.sleep(SAVE_PAUSE)
            if not await self.save():
                await anyio.sleep(RETRY_PAUSE)

    async def save(self) -> bool:
        """Write the changes. Returns False if the file cannot be written."""
        if not self._changed.is_set():
            return True
        self._changed = anyio.Event()
        used = {name: kept for name, kept in self._kept.items() if kept.key or kept.manifest or kept.missed.count}
        data = msgspec.json.format(msgspec.json.encode(used))
        try:
            await run_in_thread(write_atomically, self._path, data)
        except OSError as error:
            words = "%s cannot be written: %s; what hooks guard now is not known at the next start"
            log.warning(words, self._path, error)
            self._changed.set()
            return False
        return True

    def _key_of(self, version: HookVersion) -> str:
        """Hash the hook's circumstances; "" if its files are unreadable. A secret counts only as set or not set."""
        assert version.manifest
        try:
            code = read_whole_folder(version.path, MAX_BYTES).digest if version.source.is_placed else version.digest
        except (HookError, OSError):
            return ""
        environ = self._environment.environ
        set_ones = {name: environ[name] for name in version.manifest.env if environ.get(name)}
        read = {name: value if is_public_value(value) else "..." for name, value in set_ones.items()}
        packages = _list_packages(self._environment.packages_of(version.name))
        around = msgspec.json.encode((version.options, read, packages), order="sorted", enc_hook=repr)
        return hashlib.sha256(code.encode() + around).hexdigest()


@dataclass(frozen=True)
class KeptSource(MissingSource):
    """The source of kept hooks: no other source has them now, and no person has removed them."""

    path: Path
    origin: str = "what was here"


def describe_missing(kept: KeptHook, sources: Iterable[Source]) -> str:
    """Say why a hook still counts although no source has it; "" if a person removed the hook or its place."""
    if kept.held:
        return f"{kept.held} while a tool was at work"
    place = Path(kept.place)
    around = [source for source in sources if place == source.path or source.path in place.parents]
    if not around:
        return ""
    if trouble := next(filter(None, (source.trouble for source in around)), ""):
        return trouble
    device, inode = find_inode(place)
    if device not in (0, kept.device) or (inode != kept.inode and _is_empty(place)):
        return f"{place} is another folder than before; mount the one that has the hook"
    return ""


def find_inode(place: Path) -> tuple[int, int]:
    """Return the device and the inode of a place; zeros if the place is missing."""
    try:
        found = os.stat(place)  # noqa: PTH116 - asked for every hook
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _is_empty(place: Path) -> bool:
    """Tell whether the place is an empty folder, like a mount point without its mount."""
    try:
        return next(place.iterdir(), None) is None
    except OSError:
        return False


def _read_entries(path: Path) -> tuple[dict[str, KeptHook], bool]:
    """Return the readable entries, and whether all entries are readable."""
    entries, found = read_json(path, dict[str, msgspec.Raw], {"": msgspec.Raw()}), dict[str, KeptHook]()
    for name, entry in entries.items():
        with suppress(msgspec.MsgspecError, ValueError):
            found[name] = msgspec.convert(_complete_entry(msgspec.json.decode(entry, type=dict[str, Any])), KeptHook)
    return found, len(found) == len(entries)


def _complete_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Give an entry of 0.1.0 its dialect, and its manifests their readings."""
    for manifest in (entry.get("known"), entry.get("manifest")):
        if isinstance(manifest, dict):
            read = {name: manifest[name] for name in Reading.__struct_fields__ if name in manifest}
            manifest.setdefault("reading", read)
            if manifest.get("hermes"):
                entry.setdefault("dialect", "hermes")
    return entry


def _list_packages(folder: Path) -> list[str]:
    """List the packages in this folder, with their versions."""
    try:
        return sorted(path.name for path in folder.iterdir() if path.suffix == ".dist-info")
    except OSError:
        return []

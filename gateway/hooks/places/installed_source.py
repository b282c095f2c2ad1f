"""Installed hooks: the hook NAME is in a folder `NAME@DIGEST` that `hooks.lock` names.

A folder that a person placed under the name NAME replaces the installed hook, and so does a hook that comes with the
gateway: otherwise a stranger's hook would get the options of that hook, and decide in its place. The replaced hook is
listed as `NAME@DIGEST`, with the reason.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

import hooks_builtin
from gateway.config.home import Home
from gateway.hooks.manifests.installed import HooksLock, InstalledHook
from gateway.hooks.places.dialect import Dialect
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.trusted_copy import PREFIX
from gateway.hooks.services import LOCK_FILE
from gateway.yaml_source.tree import Finding, SourceLocation

PACKAGES_FOLDER = ".packages"  # beside the hooks: the packages that came with each
SHORT_DIGEST = 12  # characters of the digest in the name of a folder
BUILT_IN_FOLDER = Path(hooks_builtin.__file__).parent
GONE = "it was installed, and its folder is gone"


@dataclass(frozen=True)
class InstalledSource(FolderSource):
    """The place of installed hooks.

    `placed` are the folders in which a hook of the same name replaces an installed hook.
    """

    lock: HooksLock = field(kw_only=True, compare=False)
    placed: tuple[Path, ...] = field(kw_only=True)

    @property
    def is_placed(self) -> bool:
        return False

    @property
    def trouble(self) -> str:
        path = self.lock.folder / LOCK_FILE
        return super().trouble or self.lock.trouble or ("" if path.exists() else f"{path} is not there")

    def list(self) -> Iterator[HookVersion]:
        for name, folder in self._find_folders().items():
            yield self._read_installed(name, folder)

    def find(self, name: str) -> HookVersion | None:
        bare = name.partition("@")[0]
        folder = self._find_folders().get(bare)
        version = self._read_installed(bare, folder) if folder else None
        return version if version and version.name == name else None

    def list_touched(self, folders: Iterable[Path]) -> Iterable[str]:
        """List the touched hooks, also a hook that a placed folder replaces, or no longer replaces."""
        known = self._find_folders()
        for folder in folders:
            if folder.parent == self.path:
                yield from (folder.name, _name_of(folder))
            elif folder.parent in self.placed and (own := known.get(folder.name)):
                yield own.name

    def _find_folders(self) -> Mapping[str, Path]:
        """Find the folders that the lock names.

        If the lock or one of its entries cannot be read, the folders that may be meant count too.
        """
        unreadable = dict(self.lock.list_unreadable())
        lying = sorted(self.path.glob("*@*")) if self.lock.trouble or unreadable else []
        unclear = {name: one for one in lying if (name := _name_of(one)) in unreadable or self.lock.trouble}
        found = ((name, self.lock.folder / one.path) for name, one in self.lock.list())
        return {**unclear, **{name: folder for name, folder in found if folder.parent == self.path}}

    def _read_installed(self, name: str, folder: Path) -> HookVersion:
        """Read an installed hook under its name, or under its folder's name if a placed folder replaces the hook."""
        own = self._own_findings() if self.path.is_dir() else ()
        found = self._read_folder(folder.name, folder.is_symlink(), own) or self._report_missing(folder)
        entry = self.lock.get(name)
        packages = find_packages(self.path, entry) if entry else None
        version = replace(found, packages=packages, stored_as=entry.stored_as if entry else "")
        if shadow := next((place / name for place in self.placed if (place / name).is_dir()), None):
            return replace(version, name=folder.name, state="disabled", reason=f"{shadow} replaces it")
        return replace(version, name=name)

    def _report_missing(self, folder: Path) -> HookVersion:
        remedy = f"install it again, or: hermes-gateway hooks remove {_name_of(folder)}"
        wrong = Finding(SourceLocation(str(folder)), GONE, remedy)
        return HookVersion(folder.name, folder, self, (), (wrong,), "refused", f"{GONE}; {remedy}")


def find_packages(installed: Path, entry: InstalledHook) -> Path | None:
    """Find the folder of the packages that came with a hook.

    The folder's name contains the hash of its contents, so that a new lock also switches to the new packages, in one
    step.
    """
    folder = installed / PACKAGES_FOLDER / packages_folder_of(Path(entry.path).name, entry.packages_digest)
    return folder if entry.packages and folder.is_dir() else None


def packages_folder_of(own: str, digest: str) -> str:
    """Return the name of the packages' folder; `own` is the name of the hook's folder."""
    return f"{own}-{digest.removeprefix(PREFIX)[:SHORT_DIGEST]}"


def _name_of(folder: Path) -> str:
    return folder.name.rpartition("@")[0] or folder.name


def make_installed_source(home: Home, dialects: tuple[Dialect, ...], dirs: Iterable[str] = ()) -> InstalledSource:
    """Return the installed hooks of this home; `dirs` are further folders in which people place hooks."""
    placed, lock = (home.hooks, *map(home.path, dirs), BUILT_IN_FOLDER), HooksLock(home.hooks_lock)
    return InstalledSource(home.installed_hooks, "installed", dialects=dialects, lock=lock, placed=placed)

"""The plugins that are Python packages: those with the entry point `hermes_agent.plugins`.

They are found and listed by the text that their installer left beside them; none is imported before a person has
switched it on by its name. A plugin folder of the same name replaces such a package: a package may be installed along
with another one, but a person put the folder there.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gateway.config.home import Home
from gateway.config.settings import PLUGIN_PREFIX
from gateway.files.folders import read_plain_file
from gateway.hermes.dialects import PluginDialect
from gateway.hermes.plugin_manifest import PLUGIN_RIGHTS, list_entries
from gateway.hermes.sources import make_hermes_config
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.manifest_keys import REMOTE_TIMEOUT
from gateway.hooks.places.folder_source import FolderSource, find_code_files
from gateway.hooks.places.sources import CodeFile, HookVersion
from gateway.yaml_source.tree import Finding, SourceLocation

GROUP = "hermes_agent.plugins"
ENTRY_POINTS_FILE, METADATA_FILE = "entry_points.txt", "METADATA"
MAX_BYTES = 200_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_SUMMARY = re.compile(r"^Summary: (.{1,500})$", re.MULTILINE)


class PluginPackage(NamedTuple):
    """One entry point.

    `value` is a module, or `module:name`; `info` is the folder in which the installer describes the package.
    """

    name: str
    value: str
    info: Path

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    @property
    def version(self) -> str:
        return self.info.name.removesuffix(".dist-info").partition("-")[2]


def read_text(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read."""
    try:
        return read_plain_file(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def find_plugin_packages(places: Iterable[Path]) -> dict[str, PluginPackage]:
    """Find the packages, by name; an earlier place takes precedence, as it does for imports."""
    found: dict[str, PluginPackage] = {}
    for place in places:
        with suppress(OSError):
            for package in _read_place(place, place.stat().st_mtime_ns):
                found.setdefault(package.name, package)
    return found


@cache
def _read_place(place: Path, _changed: int) -> tuple[PluginPackage, ...]:
    """Read the packages installed in this place; cached until something is added or removed."""
    infos = sorted(entry.name for entry in os.scandir(place) if entry.name.endswith(".dist-info"))
    texts = ((place / info, read_text(place / info / ENTRY_POINTS_FILE)) for info in infos)
    return tuple(
        PluginPackage(name, value, info)
        for info, text in texts
        if GROUP in text
        for name, value in _parse_entry_points(text)
    )


def _parse_entry_points(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        name, mark, value = (part.strip() for part in line.partition("="))
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and mark and value and _NAME.match(name):
            yield name, value.partition("[")[0].strip()


def _find_module_file(package: PluginPackage) -> tuple[Path, str] | None:
    """Find the folder of the package's code, and the entry file in it, without importing any of it."""
    top, *below = package.module.split(".")
    place = package.info.parent
    if not (place / top).is_dir() and not below and (place / f"{top}.py").is_file():
        return place, f"{top}.py"
    folder = place / top
    if not folder.is_dir():  # installed as a link to where its author works on it
        spec = importlib.util.find_spec(top)
        folder = Path(spec.origin or ".").parent if spec else folder
    entry = "/".join(below)
    for file in [f"{entry}.py", f"{entry}/__init__.py"] if entry else ["__init__.py"]:
        if (folder / file).is_file():
            return folder, file
    return None


@dataclass(frozen=True)
class PluginPackageSource(FolderSource):
    """The source of plugin packages.

    `path` has a folder of packages for each hook that `hooks deps` served; `places` are those of the interpreter.
    """

    places: tuple[str, ...] = field(kw_only=True)

    is_watched = False

    @property
    def is_placed(self) -> bool:
        return False

    @property
    def trouble(self) -> str:
        return ""  # such a folder need not exist

    def list(self) -> Iterator[HookVersion]:
        return (self._version_of(package) for package in self._find_packages().values())

    def find(self, name: str) -> HookVersion | None:
        package = self._find_packages().get(name.removeprefix(self.prefix)) if name.startswith(self.prefix) else None
        return package and self._version_of(package)

    def _read_manifest(self, version: HookVersion) -> HookVersion:
        if version.state == "refused":
            return version
        package, (_, entry) = self._locate(version)
        summary = _SUMMARY.search(read_text(package.info / METADATA_FILE))
        manifest = Manifest(
            folder=package.name,
            name=package.name,
            description=summary[1].strip() if summary else "",
            version=package.version,
            uses=PLUGIN_RIGHTS,
            entry=entry,
            decide_limit=REMOTE_TIMEOUT,
        )
        return replace(version, manifest=manifest)

    def facts_of(self, version: HookVersion, manifest: Manifest) -> Mapping[str, Any]:
        package, _ = self._locate(version)
        return {**super().facts_of(version, manifest), "source": "entrypoint", "entry_point": package.value}

    def places_of(self, version: HookVersion) -> tuple[str, ...]:
        place = str(self._locate(version)[0].info.parent)
        return () if place in self.places else (place,)

    def _find_packages(self) -> dict[str, PluginPackage]:
        own = (path for path in list_entries(self.path) if path.name[0] != ".")
        return find_plugin_packages([*map(Path, self.places), *own])

    def _locate(self, version: HookVersion) -> tuple[PluginPackage, tuple[Path, str]]:
        """Find the package and its entry file. Raises FileNotFoundError if it is gone."""
        package = self._find_packages().get(version.bare_name)
        found = _find_module_file(package) if package else None
        if package is None or found is None:
            raise FileNotFoundError(f"the package of {version.bare_name} is not installed any more")
        return package, found

    def _version_of(self, package: PluginPackage) -> HookVersion:
        name, place = self.prefix + package.name, package.info.parent
        if (found := _find_module_file(package)) is None:
            where, what = SourceLocation(str(package.info)), f"names {package.module}, which is not installed"
            wrong = Finding(where, what, f"install it again: hermes-gateway hooks deps {name} PACKAGE")
            why = f"{wrong.place} {what}; {wrong.remedy}"
            return HookVersion(name, place, self, (), (wrong,), "refused", why, dialect=self.dialects[0])
        folder, entry = found
        names = [entry] if folder == place else find_code_files(folder)
        described = os.path.relpath(package.info / ENTRY_POINTS_FILE, folder)
        files = ((name, os.stat(folder / name)) for name in (*names, described))  # noqa: PTH116 - as cheap as it can be
        code = tuple(CodeFile(file, stat.st_size, stat.st_ctime_ns, stat.st_ino) for file, stat in files)
        return HookVersion(name, folder, self, code, dialect=self.dialects[0])


def make_package_source(home: Home, environ: Mapping[str, str]) -> PluginPackageSource:
    """Return the plugin packages of this interpreter, and those that `hooks deps` installed."""
    places = tuple(place for place in sys.path if place)
    config = make_hermes_config(home, environ)
    path, dialects = home.hook_state / "packages", (PluginDialect(config),)
    return PluginPackageSource(path, "packages", dialects=dialects, prefix=PLUGIN_PREFIX, places=places)

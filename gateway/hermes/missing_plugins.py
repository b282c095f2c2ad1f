"""The plugins that Hermes's `config.yaml` switches on and that are missing: listed as broken, with the remedy.

Hermes brings plugins of its own and also looks into a project's folder. A person who moves here has neither, and a
guard among them would be lost without notice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config.home import Home
from gateway.config.settings import PLUGIN_PREFIX
from gateway.hermes.config import HermesConfig
from gateway.hermes.plugin_manifest import list_entries, read_plugin_manifest
from gateway.hermes.plugin_packages import PluginPackageSource, make_package_source
from gateway.hermes.sources import list_plugin_folders, make_hermes_config
from gateway.hooks.places.folder_source import is_ignored_name
from gateway.hooks.places.sources import HookVersion, MissingSource
from gateway.yaml_source.tree import Finding, SourceLocation


@dataclass(frozen=True)
class MissingPluginSource(MissingSource):
    """The source of missing plugins, before all others, so that an added plugin replaces the report of its absence."""

    path: Path
    home: Home
    config: HermesConfig
    packages: PluginPackageSource
    origin: str = "config.yaml"

    prefix = PLUGIN_PREFIX

    def list(self) -> Iterator[HookVersion]:
        return iter(self._find_missing().values())

    def find(self, name: str) -> HookVersion | None:
        return self._find_missing().get(name)

    def _find_missing(self) -> dict[str, HookVersion]:
        hermes = self.config.read()
        if not (named := hermes.enabled - hermes.disabled):
            return {}
        folders = [folder for place in list_plugin_folders(self.home) for folder in _list_folders(place)]
        names = {name for folder in folders for name in (folder.name, f"{folder.parent.name}/{folder.name}")}
        left = named - names - {one.bare_name for one in self.packages.list()}
        left -= {_name_of(folder) for folder in folders} if left else set()
        made = (self._describe(name) for name in sorted(left))
        return {version.name: version for version in made}

    def _describe(self, name: str) -> HookVersion:
        """Describe a missing plugin; of `category/name`, people use the last word."""
        what = f"plugins.enabled names {name}, and no plugin here is called so"
        finding = Finding(SourceLocation(str(self.path)), what, self._describe_remedy(name))
        return HookVersion(PLUGIN_PREFIX + name.rpartition("/")[2], self.path, self, findings=(finding,))

    def _describe_remedy(self, name: str) -> str:
        for place in list_plugin_folders(self.home):
            for folder in _list_folders(place, passed_over=True):
                if name in (folder.name, _name_of(folder)):
                    return f"rename {folder}: what begins with `_` or `.`, or ends with `.bak`, is passed over"
        return (
            "copy its folder into plugins/ beside, also where it came with hermes-agent (from `plugins/` of that "
            "package) or is in a project's .hermes/plugins; or take its name out"
        )


def _list_folders(place: Path, passed_over: bool = False) -> list[Path]:
    return [path for path in list_entries(place) if is_ignored_name(path.name) is passed_over and path.is_dir()]


def _name_of(folder: Path) -> str:
    manifest = read_plugin_manifest(folder).manifest
    return manifest.name if manifest else folder.name


def make_missing_source(home: Home, environ: Mapping[str, str]) -> MissingPluginSource:
    return MissingPluginSource(
        home.hermes_config, home, make_hermes_config(home, environ), make_package_source(home, environ)
    )

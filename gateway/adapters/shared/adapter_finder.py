"""The adapters of other authors: folders in `adapters.dirs`, and packages with an entry point.

Listing names loads nothing. An adapter's code is loaded only if `platforms.NAME.enabled` is set, and if only its owner
or root can have written it. A fault of one is reported, and disables that adapter only.
"""

import keyword
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from gateway.adapters import ADAPTERS
from gateway.adapters.shared.adapter_loading import load_spec, package_of
from gateway.config.environment import Environment, read_environment
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import check_owner, check_writers, make_finding
from gateway.config.platform_settings import PlatformPlace, PlatformSpec, UnknownSettings
from gateway.config.schema import SettingsSchema, ending_of
from gateway.errors import AdapterError
from gateway.yaml_source.node_paths import find_node, node_of
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlMapping, YamlNode, YamlScalar, YamlSequence, as_bool

GROUP = "hermes_gateway.adapters"
MARKER = "settings.py"
MOST_FILES = 5000
NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
ENABLED = re.compile(r"GATEWAY_PLATFORMS_([A-Z][A-Z0-9_]{0,30})_ENABLED(_[A-Z0-9_]{1,31})?")
DIRS = "GATEWAY_ADAPTERS_DIRS"
OWN = frozenset({"all", "api", "cli", "cron", "desk", "hook", "internal", "local", "terminal", "web", "webhook"})
TAKEN = OWN | set(ADAPTERS)
MISNAMED = "{} is not a valid name for a network, so it is skipped"
RENAME = "rename it: small letters, digits and _, and a name that is not taken"
LEADS_OUT = "is a link that leads out of the folder"
NOT_LOADED = "ids of a network whose code is not loaded"


class ListedAdapter(msgspec.Struct, frozen=True):
    """An adapter of another author, and its place; `finding`: why it cannot be used."""

    name: str
    place: PlatformPlace
    finding: Finding | None = None

    @property
    def is_named(self) -> bool:
        """True if a network can have this name."""
        return NAME.fullmatch(self.name) is not None and not keyword.iskeyword(self.name) and self.name not in TAKEN


class AdapterSources(msgspec.Struct, frozen=True):
    """The sources of adapters: a home, its configuration file, and the environment."""

    home: Home
    tree: YamlNode
    outside: Environment

    def find(self, *, all_packages: bool = False) -> list[ListedAdapter]:
        """List the adapters, each name once; packages are searched only if a network has an unknown name."""
        found: dict[str, ListedAdapter] = {}
        for directory in self.list_dirs():
            for one in _look_into(directory):
                found.setdefault(one.name, one)
        if all_packages or self._names() - {*found, *ADAPTERS}:
            for one in _list_packages():
                found.setdefault(one.name, one)
        return list(found.values())

    def is_enabled(self, name: str) -> bool:
        """Return True if the configuration enables the adapter, or one bot of it.

        A token alone does not enable others' code.
        """
        section = find_node(self.tree, ("platforms", name))
        accounts = find_node(self.tree, ("platforms", name, "accounts"))
        bots = {"": section}
        if isinstance(accounts, YamlMapping):
            bots |= {ending_of(account.text): node for account, node in accounts.pairs}
        written = {ending: node.get("enabled") for ending, node in bots.items() if isinstance(node, YamlMapping)}
        for variable, value in self.outside.values.items():
            if (known := ENABLED.fullmatch(variable)) and known[1].lower() == name:
                written[known[2] or ""] = node_of(value.text, value.place, "flag")
        return any(isinstance(node, YamlScalar) and as_bool(node.text) is True for node in written.values())

    def place_of(self, name: str) -> SourceLocation:
        """Return the place in the configuration that names the network."""
        for path in (("platforms", name, "enabled"), ("platforms", name), ("adapters", "dirs")):
            if (node := find_node(self.tree, path)) is not None:
                return node.place
        return SourceLocation(str(self.home.config))

    def list_dirs(self) -> Iterator[Path]:
        """List the directories in `adapters.dirs`."""
        outside = self.outside.values.get(DIRS)
        node = node_of(outside.text, outside.place, "list") if outside else find_node(self.tree, ("adapters", "dirs"))
        for one in node.items if isinstance(node, YamlSequence) else ():
            if isinstance(one, YamlScalar) and one.text:
                yield self.home.path(one.text)

    def _names(self) -> set[str]:
        section = find_node(self.tree, ("platforms",))
        written = set(section) if isinstance(section, YamlMapping) else set()
        return written | {known[1].lower() for name in self.outside.values if (known := ENABLED.fullmatch(name))}


def expand_schema(
    own: Mapping[str, PlatformSpec],
    places: Mapping[str, PlatformPlace],
    home: Home,
    tree: YamlNode,
    outside: Environment,
) -> SettingsSchema | None:
    """Return the settings with those of a home's own adapters; None if it has none."""
    sources = AdapterSources(home, tree, outside)
    found, empty = sources.find(), [*_check_dirs(sources)]
    if not found and not empty:
        return None
    read = [_read_adapter(sources, one) for one in found if one.is_named]
    specs = {**own, **{one.name: spec for one, spec, _ in read}}
    where = {**places, **{one.name: one.place for one, _, _ in read}}
    misnamed = [MISNAMED.format(one.place.origin) for one in found if not one.is_named]
    findings = [*empty, *(Finding(sources.place_of(""), what, RENAME, "warning") for what in misnamed)]
    findings += [finding for *_, finding in read if finding is not None]
    return SettingsSchema(specs, where, partial(expand_schema, own, places), findings)


def list_places(home: Home | None, *, all_packages: bool = False) -> dict[str, PlatformPlace]:
    """List the place of each network's code: ours, and a home's own. No code is loaded."""
    own = {name: PlatformPlace(package) for name, package in ADAPTERS.items()}
    if home is None:
        return own
    outside = read_environment(get_process_environment(), home.env)
    sources = AdapterSources(home, read_yaml(home.config).root, outside)
    return {**own, **{one.name: one.place for one in sources.find(all_packages=all_packages) if one.is_named}}


def _check_dirs(sources: AdapterSources) -> Iterator[Finding]:
    """Report directories of `adapters.dirs` without adapters. The value of a variable is not repeated."""
    for directory in sources.list_dirs():
        if not directory.is_dir() and DIRS in sources.outside.values:
            yield Finding(sources.place_of(""), f"{DIRS} names no directory", "make it, or unset it", "warning")
        elif (directory / MARKER).exists():
            what = f"{directory} is an adapter, and adapters.dirs names directories that contain adapters"
            yield Finding(sources.place_of(""), what, f"write {directory.parent}", "warning")
        elif not directory.is_dir():
            what = f"adapters.dirs: directory {directory} not found"
            yield Finding(sources.place_of(""), what, "make it, or leave it out", "warning")


def _read_adapter(sources: AdapterSources, found: ListedAdapter) -> tuple[ListedAdapter, PlatformSpec, Finding | None]:
    """Read an adapter's spec: from its code if that is enabled and safe to load."""
    if not sources.is_enabled(found.name):
        return found, make_unknown_spec(), None
    if found.finding is not None:
        return found, make_unknown_spec(f"{found.finding.what}; {found.finding.remedy}"), found.finding
    spec = load_spec(found.name, found.place)
    if isinstance(spec, AdapterError):
        what, _, remedy = str(spec).rpartition("; ")
        finding = Finding(
            sources.place_of(found.name), f"{found.name} cannot be used: {what}", remedy, severity="warning"
        )
        return found, make_unknown_spec(str(spec)), finding
    return found, spec, None


def make_unknown_spec(why_unusable: str = "") -> PlatformSpec:
    """Make the spec of a network of which only the name is known, and perhaps the fault."""
    settings = UnknownSettings
    if why_unusable:
        known = {"why_unusable": property(lambda _settings: why_unusable)}
        made = msgspec.defstruct("UnusableSettings", [], bases=(UnknownSettings,), namespace=known, frozen=True)
        settings = made  # type: ignore[assignment] # a subclass, which the signature of `defstruct` does not say
    return PlatformSpec(settings, NOT_LOADED, r"\S{1,200}", r"\S{1,200}", {})


def _look_into(directory: Path) -> Iterator[ListedAdapter]:
    try:
        with os.scandir(directory) as entries:
            names = sorted(one.name for one in entries if one.is_dir() and not one.name.startswith((".", "_")))
    except OSError:
        return
    for name in names:
        folder = directory / name
        if (folder / MARKER).exists():
            wrong = next((one for one in check_folder(folder) if one.severity == "error"), None)
            kept = msgspec.structs.replace(wrong, severity="warning") if wrong else None
            yield ListedAdapter(name, PlatformPlace(package_of(folder), folder, str(folder)), kept)


def check_folder(folder: Path) -> Iterator[Finding]:
    """Report files that another user could have written, and links that lead out of the folder."""
    yield from (*check_owner(folder.parent), *check_writers(folder.parent))
    whole = folder.resolve()
    for count, path in enumerate(_walk(folder)):
        if count > MOST_FILES:
            yield make_finding(folder, f"more than {MOST_FILES} files", "keep what is not code elsewhere")
            return
        if path.is_symlink() and not path.resolve().is_relative_to(whole):
            yield make_finding(path, LEADS_OUT, "put the file itself into the folder")
        else:
            yield from (*check_owner(path), *check_writers(path))


def _walk(folder: Path) -> Iterator[Path]:
    yield folder
    for directory, folders, files in os.walk(folder):
        yield from (Path(directory, name) for name in (*folders, *files))


def _list_packages() -> Iterable[ListedAdapter]:
    """List adapter packages of this environment; their writers could change the gateway itself too."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it costs a start 10 ms, and few homes need it

    for point in entry_points(group=GROUP):
        dist = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        yield ListedAdapter(point.name, PlatformPlace(point.value, None, f"the package {dist}"))

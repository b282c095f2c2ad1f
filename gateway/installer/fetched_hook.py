"""A hook before its installation: its files, read and not run, its requests, and their meaning in words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.agent.skills import FILE as SKILL_FILE
from gateway.errors import HookError
from gateway.hooks.manifests.installed import HookGrants
from gateway.hooks.manifests.manifest import MANIFEST_FILE, Manifest, read_manifest
from gateway.hooks.manifests.reach import describe_network
from gateway.hooks.places.dialect import Dialect
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.installed_source import BUILT_IN_FOLDER
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.trusted_copy import PREFIX, read_whole_folder
from gateway.installer.manifest_changes import describe_filter
from gateway.installer.packages import install_packages, lock_packages
from gateway.installer.source import HookSource, fetch

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}\Z")
PLUGIN_FILES = ("plugin.yaml", "plugin.yml")
SHORT = 12  # characters of a digest in the name of a folder


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedEntry:
    """A fetched hook or skill, with its files in `folder`. `index`: the one that named it."""

    name: str
    own_version: str  # the one that its own file names
    folder: Path
    digest: str
    size: int
    files: int
    source: str = ""
    commit: str | None = None
    index: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedHook(FetchedEntry):
    """A fetched hook.

    `packages`: its requirements, in `packages_folder`; `stored_as`: the name of the data that it takes over from
    another hook.
    """

    version: HookVersion
    manifest: Manifest
    packages: tuple[str, ...] = ()
    packages_folder: Path | None = None
    stored_as: str = ""

    @property
    def folder_name(self) -> str:
        """The name of its folder beside other versions of it."""
        return f"{self.name}@{cut_digest(self.digest)}"

    @property
    def grants(self) -> HookGrants:
        """The grants that approval of the hook means: exactly its requests."""
        manifest = self.manifest
        return HookGrants(
            events=manifest.events,
            intercepts=manifest.intercepts,
            uses=manifest.uses,
            env=list_variables(manifest),
            webhook=manifest.webhook,
            schedule=manifest.schedule or None,
            reads=manifest.reads,
            writes=manifest.writes,
            net=manifest.net,
            url=manifest.url,
            on_error=manifest.on_error,
        )


def cut_digest(digest: str) -> str:
    """Cut a digest for the name of a folder."""
    return digest.removeprefix(PREFIX)[:SHORT]


def fetch_hook(
    source: HookSource,
    work: Path,
    environ: Mapping[str, str],
    dialects: tuple[Dialect, ...],
    said: str = "",
    locked: tuple[str, ...] = (),
) -> FetchedHook:
    """Fetch a hook and read it. `said`: the source as it was written; `locked`: the exact packages to install.

    Raises:
        HookError: it is not available, is not a hook, or has a fault that would keep it from running.
    """
    files = fetch(source, work, environ, locked)
    if any((files.folder / one).exists() for one in PLUGIN_FILES) and not (files.folder / MANIFEST_FILE).exists():
        raise HookError(f"{files.name} is a plugin for Hermes, and no hook\nput its folder into plugins/ of the home")
    hook = read_hook(_name_folder(files.folder, files.name, work), dialects)
    packages, packages_folder, wanted = files.packages, files.packages_folder, hook.manifest.requires.python
    if packages_folder is None and wanted:
        packages_folder = work / "packages"
        packages = locked or lock_packages(wanted)
        install_packages(packages, packages_folder)
    return replace(
        hook, source=said or str(source), commit=files.commit, packages=packages, packages_folder=packages_folder
    )


def read_hook(folder: Path, dialects: tuple[Dialect, ...]) -> FetchedHook:
    """Read the hook in this folder.

    Raises HookError for none, or for one with a fault or a name that prevents its use.
    """
    if (BUILT_IN_FOLDER / folder.name).is_dir():
        what = f"{folder.name} is the name of a hook that comes with the gateway, and no other is installed under it"
        raise HookError(f"{what}\nwhoever wrote it can give it another `name:` in its {MANIFEST_FILE}")
    version = _inspect(folder, dialects)
    if version.manifest is None:
        raise HookError(f"{folder.name} cannot be read as a hook")
    whole = read_whole_folder(folder)
    return FetchedHook(
        name=folder.name,
        own_version=version.manifest.version,
        folder=version.path,
        version=version,
        manifest=version.manifest,
        digest=whole.digest,
        size=sum(len(data) for _, data in whole.files.values()),
        files=len(whole.files),
    )


def _name_folder(folder: Path, offered: str, work: Path) -> Path:
    """Rename the folder to the hook's name: the one in its manifest, or else that of its source.

    Raises:
        HookError: neither is a valid hook name.
    """
    said = read_manifest(folder, offered).manifest
    name = next((one for one in (said and said.name, offered.lower()) if one and NAME.match(one)), "")
    if not name:
        raise HookError(
            f"{offered!r} is not a valid hook name\nwrite `name:` into its {MANIFEST_FILE}: letters, digits, -"
        )
    target = work / "hook" / name
    target.parent.mkdir(mode=0o700)
    return folder.rename(target)


def _inspect(folder: Path, dialects: tuple[Dialect, ...]) -> HookVersion:
    """Inspect the hook; raise HookError with all its faults."""
    version = FolderSource(folder.parent, "", dialects=dialects).find(folder.name)
    if version is None:
        remedy = "\nit is a skill: hermes-gateway skills install" if (folder / SKILL_FILE).is_file() else ""
        raise HookError(f"{folder.name} is not a hook: it has no {MANIFEST_FILE}, handler, command or URL{remedy}")
    try:
        version = version.source.inspect(version)
    except OSError as error:
        raise HookError(f"{folder.name} cannot be read: {error.strerror}") from None
    if wrong := [str(one) for one in version.findings if one.severity == "error"]:
        raise HookError("\n".join((f"{folder.name} would not run:", *wrong)))
    return version


def list_variables(manifest: Manifest) -> tuple[str, ...]:
    """List the variables of the environment that the hook gets."""
    secret = (manifest.secret_env,) if manifest.secret_env else ()
    return tuple(dict.fromkeys((*manifest.env, *secret)))


def describe_request(name: str, manifest: Manifest, packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Describe what the hook does and requests, in words for the person who decides."""
    fails = "; while it cannot answer, they are denied" if manifest.is_guard else ""
    fails = "; where it fails, so do they" if manifest.on_error == "raise" else fails
    called, env = (f"schedule:{name}", f"webhook:{name}"), ", ".join(list_variables(manifest))
    yield "observes", ", ".join(one for one in manifest.events if one not in called)
    yield "decides on", ", ".join(manifest.intercepts) and f"{', '.join(manifest.intercepts)}{fails}"
    yield "only when", describe_filter(manifest.when)
    yield "may", ", ".join(manifest.uses)
    yield "is given", env and f"{env}, of the environment"
    yield "is called", f"at /webhooks/{name}, signed as {manifest.webhook.verify}" if manifest.webhook else ""
    yield "runs at", manifest.schedule
    yield "is at", manifest.url
    yield "starts", " ".join(manifest.command)
    yield "reads", ", ".join(("its own folder", *manifest.reads))
    yield "writes", ", ".join(("a folder of its own for data", *manifest.writes))
    yield "network", describe_network(manifest.net, manifest.url)
    yield "packages", ", ".join(line.partition(" ")[0] for line in packages)


def describe_changes(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the requests that the new version dropped, and those that it has instead, a line each."""
    told = dict(before)
    for label, now in after:
        if (then := told.get(label, "")) != now:
            yield from (f"{sign} {label}: {text}" for sign, text in (("-", then), ("+", now)) if text)

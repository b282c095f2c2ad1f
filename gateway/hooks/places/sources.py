"""The versions of hooks, and the sources: a source finds hooks, reads them, and opens the wires to their processes.

A `HookVersion` is one hook as one check has found it. The source finds the hook, reads it and opens the wire to its
process; in between, `check_readiness` decides whether the hook may run. Each step of the inspection returns a copy of
the version that knows more.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from gateway.config.settings import PLUGIN_PREFIX
from gateway.errors import HookError
from gateway.hooks.manifests.manifest import Guard, Manifest
from gateway.hooks.manifests.manifest_keys import WrittenFor
from gateway.hooks.manifests.reach import HookReach
from gateway.hooks.places.dialect import OURS, Dialect
from gateway.hooks.services import HookServices
from gateway.hooks.stats import HookState
from gateway.hooks.wires.wire import Capability, Wire
from gateway.yaml_source.tree import Finding

UNREAD_STATES = frozenset({"refused", "broken", "missing"})


class CodeFile(msgspec.Struct, frozen=True):
    """One file of a hook's code: its path inside the folder, and the facts that `stat` reports."""

    name: str
    size: int
    changed: int  # ns; the time of the last change of content or rights, which no program can set back
    inode: int


class HookVersion(msgspec.Struct, frozen=True):
    """One hook, as one check has found it.

    A check by `stat` alone fills only the first fields. If a finding is an error, the hook is `refused`, and the
    gateway uses nothing of it. `name` is the name of the folder, for a plugin with the prefix `plugin:`. Unless a hook
    has the same name (`has_namesake`), a plugin also has the name `short`, without the prefix. Reading the hook adds
    the manifest and the `digest`, the hash of everything that decides which code runs; the digest is empty while only
    the manifest was read. `state` is `registered` if the hook may start; otherwise `reason` says why not. `denied` has
    the events to deny while the hook cannot answer. `reach`: the paths and ports that a restricted hook may reach.
    `pinned`: the hash of the current contents, if the hook runs only as it was trusted. `packages`: the folder of the
    packages that were installed with the hook. `stored_as`: the name of the hook's store, if it differs from `name`.
    `is_guarded_elsewhere`: `denied` comes from other gateways. `is_approved`: the owner has approved exactly this
    version in the program that the hook was written for. `is_unknown`: no person has ever approved the hook. `dialect`:
    the dialect of the hook; `owner_reason`: how it was recognized. If the hook cannot be read, `manifest` comes from
    its last good load.
    """

    name: str
    path: Path
    source: "Source"
    files: tuple[CodeFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    state: HookState = "registered"
    reason: str = ""
    manifest: Manifest | None = None
    denied: Guard | None = None
    digest: str = ""
    options: Mapping[str, Any] = {}
    written_for: WrittenFor | None = None  # from our configuration, known before the hook is read
    has_namesake: bool = False
    reach: HookReach | None = None
    pinned: str = ""
    packages: Path | None = None
    stored_as: str = ""
    is_guarded_elsewhere: bool = False
    is_unknown: bool = False
    is_approved: bool = False
    dialect: Dialect = OURS
    owner_reason: str = ""

    @property
    def guard(self) -> Guard | None:
        """Return the guard that the hook itself declares."""
        if self.is_guarded_elsewhere:
            return None
        return self.manifest.guard if self.is_ready and self.manifest else self.denied

    @property
    def store_name(self) -> str:
        """Return the name of the hook's store and queue; the name of an installed hook includes its origin."""
        return self.stored_as or self.name

    @property
    def short(self) -> str:
        bare = self.name.removeprefix(PLUGIN_PREFIX)
        return "" if self.has_namesake or bare == self.name else bare

    @property
    def called(self) -> str:
        """Return the shortest name that commands and the configuration know."""
        return self.name if self.has_namesake else self.name.removeprefix(PLUGIN_PREFIX)

    @property
    def bare_name(self) -> str:
        return self.name.removeprefix(PLUGIN_PREFIX)

    @property
    def is_ready(self) -> bool:
        return self.state == "registered"

    @property
    def is_off(self) -> bool:
        """Tell whether the journal keeps no events for the hook."""
        return self.state == "disabled" or self.is_unknown

    @property
    def is_unread(self) -> bool:
        """Tell whether the hook could not be read completely, so that a second check may help."""
        return self.state in UNREAD_STATES and not self.digest and not self.source.is_elsewhere

    def is_same_as(self, other: "HookVersion") -> bool:
        """Tell whether both versions are equal, except for their sources and the facts from `stat`."""
        return replace(self, source=other.source, files=other.files) == other

    def is_same_code_as(self, other: "HookVersion") -> bool:
        """Tell whether a running process can go on: of the manifest, at most the filter `when` differs."""
        if not self.is_ready or self.manifest is None or other.manifest is None:
            return False
        as_other = replace(self, manifest=other.manifest, denied=other.denied, has_namesake=other.has_namesake)
        with_when = msgspec.structs.replace(self.manifest, when=other.manifest.when)
        return as_other.is_same_as(other) and with_when == other.manifest


def find_dialect(version: HookVersion, name: str) -> Dialect:
    """Return the dialect of this name in the hook's source, or else the hook's own dialect."""
    return next((one for one in version.source.dialects if one.name == name), version.dialect)


class HookPlace(Protocol):
    """A place of hooks. `origin` is the place's name for people, `path` the folder or file that holds the hooks."""

    origin: str
    path: Path
    prefix: str = ""  # begins the names of its hooks
    is_watched: bool = True  # changes in `path` show that its hooks have changed

    def list(self) -> Iterator[HookVersion]:
        """List the hooks here, by `stat` alone; none if the place is missing. Raises OSError if it is unreadable."""

    def find(self, name: str) -> HookVersion | None:
        """Find the hook of this name, by `stat` alone, or return None. Raises OSError if the place is unreadable."""

    @property
    def switch_file(self) -> Path | None:
        """Return another program's file that switches the hooks of this place on and off."""
        return None

    @property
    def trouble(self) -> str:
        """Say why the place may list too few hooks; "" if the place lists all."""
        try:
            with os.scandir(self.path):
                return ""
        except OSError as error:
            return f"{self.path} cannot be read: {error.strerror}"

    def is_place(self, folder: Path) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether a folder in this place is not a hook itself, but contains hooks."""
        return False

    def list_touched(self, folders: Iterable[Path]) -> Iterable[str]:
        """List the hooks to check again after these folders were touched."""
        return [self.prefix + folder.name for folder in folders if folder.parent == self.path]


class Source(HookPlace, Protocol):
    """A place with its hooks. Two equal sources list the same hooks."""

    conversations: frozenset[str] | None = None  # its hooks get the events of these sessions alone
    is_ours: bool = False  # its hooks come with the gateway: they are off at first, and their `isolation` counts
    is_named: bool = False  # the owner's own configuration names each of its hooks
    dialects: tuple[Dialect, ...] = ()  # the first applies to a hook that cannot be read
    is_forked: bool = False  # most of its hooks run in processes of the fork server
    is_elsewhere: bool = False  # its hooks belong to other gateways, and are missing here

    @property
    def is_placed(self) -> bool:
        """Tell whether the owner put the hooks there by hand, so that no gateway, skill or package brought them."""
        return False

    def inspect_manifest(self, version: HookVersion) -> HookVersion:
        """Read the manifest, and add it to the version."""

    def inspect(self, version: HookVersion) -> HookVersion:
        """Read the whole hook, and add the contents to the version. Raises OSError if a file is removed meanwhile."""

    def review(self, version: HookVersion) -> Iterator[Finding]:  # noqa: ARG002 - for subclasses
        """Yield more findings, for a person who asks for all of them."""
        return iter(())

    def why_disabled(self, version: HookVersion) -> str:
        """Say why the hook is off if neither the configuration nor a command decides; "" if the hook is on."""

    def places_of(self, version: HookVersion) -> tuple[str, ...]:
        """List the folders of the packages that come with the hook."""
        return (str(version.packages),) if version.packages else ()

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:
        """Open the wire to the hook. Raises HookError with the reason; no process is left then."""

    def describe_failure(self, version: HookVersion, said: str, packages: Sequence[str]) -> str:  # noqa: ARG002 - for subclasses
        """Return the remedy for a failure, or ""; `packages` are the folders of the hook's interpreter."""
        return ""


class MissingSource(Source):
    """A source of hooks that are missing here: it opens no wire, and by default finds no hook."""

    is_watched = False

    def list(self) -> Iterator[HookVersion]:
        return iter(())

    def find(self, name: str) -> HookVersion | None:  # noqa: ARG002 - for subclasses
        return None

    @property
    def trouble(self) -> str:
        return ""

    def inspect_manifest(self, version: HookVersion) -> HookVersion:
        return version

    def inspect(self, version: HookVersion) -> HookVersion:
        return version

    def why_disabled(self, version: HookVersion) -> str:  # noqa: ARG002 - a missing hook is not off
        return ""

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:  # noqa: ARG002 - there is none
        raise HookError(f"{version.called} is not here")


def describe_first_error(findings: tuple[Finding, ...]) -> str:
    """Describe the first error, and count the other errors; "" without errors."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return ""
    more = f" (and {len(errors) - 1} more: hermes-gateway hooks check)" if len(errors) > 1 else ""
    return f"{errors[0].place}: {errors[0].what}; {errors[0].remedy}{more}"

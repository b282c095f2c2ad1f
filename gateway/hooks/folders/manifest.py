"""A hook's manifest, `HOOK.yaml`, as a value: what the folder subscribes to, how it is called, what it needs.

Reading imports nothing and runs nothing. Everything that is wrong is found in one reading, each with its place and its
remedy; what is only odd is a warning. A folder that was written for Hermes, with no key of ours in it, is read as
Hermes reads it, save that mistakes which there fall silent are told here.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gateway.errors import HookError
from gateway.events import OnError
from gateway.yaml_source import Duration, Finding
from gateway.yaml_source.tree import to_printable

MANIFEST_FILE = "HOOK.yaml"
HANDLER_FILE = "handler.py"
MAX_MANIFEST_BYTES = 64_000
MAX_NAME = 100

ObserveMode = Literal["queued", "parallel"]
DeliveryMode = Literal["memory", "durable"]
HookRight = Literal["emit", "send", "store", "submit"]
PluginRight = HookRight | Literal["tool", "llm"]  # plugins have these too

OBSERVE_TIMEOUT, DECIDE_TIMEOUT, REMOTE_TIMEOUT = 120.0, 10.0, 30.0

ShortText = Annotated[str, msgspec.Meta(max_length=1000)]
TimeoutSeconds = Annotated[Duration, msgspec.Meta(gt=0, le=86_400)]


class ManifestRequires(msgspec.Struct, frozen=True, kw_only=True):
    """What must be there before the hook can work."""

    bins: str | tuple[str, ...] = ()
    env: str | tuple[str, ...] = ()
    python: str | tuple[str, ...] = ()
    platforms: str | tuple[str, ...] = ()


class ManifestKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of `HOOK.yaml` and the types of their values; a list of one may be written as the one."""

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    description: ShortText = ""
    version: Annotated[str, msgspec.Meta(max_length=100)] = ""
    events: str | tuple[str, ...] = ()
    intercepts: str | tuple[str, ...] = ()
    when: dict[str, Any] = {}
    order: float = 0
    mode: ObserveMode = "queued"
    max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    timeout: TimeoutSeconds | None = None
    on_error: OnError = "skip"
    delivery: DeliveryMode = "memory"
    isolation: Literal["process", "none"] = "process"
    requires: ManifestRequires = ManifestRequires()
    env: str | tuple[str, ...] = ()
    uses: HookRight | tuple[HookRight, ...] = ()
    schedule: Annotated[str, msgspec.Meta(max_length=200)] = ""
    options: dict[str, Any] = {}
    command: str | tuple[str, ...] = ()
    protocol: Literal["lines", "oneshot"] = "lines"
    url: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    dialect: Literal["gateway", "sherma"] = "gateway"
    secret_env: str = ""
    enabled: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder says about itself, made whole: every list is a tuple, every default stands."""

    folder: str
    name: str
    description: str = ""
    version: str = ""
    events: tuple[str, ...] = ()
    intercepts: tuple[str, ...] = ()
    when: dict[str, Any] = {}
    order: float = 0
    mode: ObserveMode = "queued"
    max: int = 1
    timeout: float | None = None
    on_error: OnError = "skip"
    delivery: DeliveryMode = "memory"
    isolated: bool = True
    needs_bins: tuple[str, ...] = ()
    needs_env: tuple[str, ...] = ()
    needs_python: tuple[str, ...] = ()
    needs_platforms: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    uses: tuple[PluginRight, ...] = ()
    found: tuple[str, ...] = ()  # which of `env` and `uses` were not declared but stand in a Hermes folder's source
    schedule: str = ""
    options: dict[str, Any] = {}
    command: tuple[str, ...] = ()
    oneshot: bool = False
    url: str = ""
    dialect: Literal["gateway", "sherma"] = "gateway"
    secret_env: str = ""
    enabled: bool = True
    hermes: bool = False
    entry: str = HANDLER_FILE  # the file that its worker runs
    decide_limit: float = DECIDE_TIMEOUT  # seconds that it may take to decide, where `timeout` does not say
    guards: tuple[str, ...] = ()  # of `intercepts`: what is denied when it fails, whatever `on_error` says

    @property
    def guard(self) -> "Guard | None":
        """What is denied while the hook cannot answer."""
        names = self.intercepts if self.on_error == "deny" else self.guards
        return Guard(names, self.when, self.order) if names else None

    def denies(self, event: str) -> bool:
        """Whether this event is denied when the hook fails at it."""
        return self.on_error == "deny" or event in self.guards

    @property
    def wire(self) -> Literal["worker", "command", "url"]:
        return "command" if self.command else "url" if self.url else "worker"

    @property
    def subscriptions(self) -> tuple[str, ...]:
        return (*self.intercepts, *(name for name in self.events if name not in self.intercepts))

    @property
    def observe_timeout(self) -> float:
        return self.timeout or (REMOTE_TIMEOUT if self.url else OBSERVE_TIMEOUT)

    @property
    def decide_timeout(self) -> float:
        return self.timeout or (REMOTE_TIMEOUT if self.url else self.decide_limit)


class Guard(msgspec.Struct, frozen=True):
    """What a hook with `on_error: deny` stands before: while it cannot answer, these are denied."""

    intercepts: tuple[str, ...]
    when: dict[str, Any] = {}
    order: float = 0


class ParsedManifest(msgspec.Struct, frozen=True):
    """A manifest and what was found in it: where a finding is an error only `guard`, as far as it can be read."""

    manifest: Manifest | None
    findings: tuple[Finding, ...] = ()
    guard: Guard | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def required(self, folder: Path) -> Manifest:
        """The manifest, or a HookError that tells all findings at once."""
        if self.manifest is None:
            found = "\n".join(f"  {finding}" for finding in self.errors)
            raise HookError(f"the hook {folder.name} cannot be read:\n{found}")
        return self.manifest


def label_of(name: str) -> str:
    """A folder's name, fit for one line: letters of every script stay, what is not printable is escaped."""
    return to_printable(name if name.isprintable() else ascii(name)[1:-1], MAX_NAME)


def find_misnamed_manifest(path: Path) -> str:
    """What was probably meant as the manifest: `hook.yml` and the like."""
    try:
        with os.scandir(path) as entries:
            return next((entry.name for entry in entries if entry.name.lower() in ("hook.yaml", "hook.yml")), "")
    except OSError:
        return ""

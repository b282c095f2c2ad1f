"""The places of hooks written for Hermes: plugins, and the shell hooks and webhooks of its `config.yaml`.

A shell hook runs only after a person has agreed to its present content. The content hash covers its event, its command
and every file that the command names, so an edited script needs a new agreement.
"""

import hashlib
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.settings import PLUGIN_PREFIX
from gateway.hermes.config import HermesConfig, OutboundEntry, ShellEntry
from gateway.hermes.dialects import SHELL, WEBHOOK, PluginDialect
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, HermesHook, describe_unsupported
from gateway.hermes.plugin_manifest import has_plugins, list_entries
from gateway.hermes.shell_commands import (
    check_command_files,
    find_command_variables,
    is_approved_in_hermes,
    read_command_files,
    shell_digest_of,
    split_command,
)
from gateway.hermes.tool_guards import check_tool_pattern
from gateway.hermes.wires import TOOL_HOOKS, OutboundWebhook, ShellHookFormat
from gateway.hooks.manifests.manifest import Manifest, Reading
from gateway.hooks.manifests.manifest_keys import ManifestRequires
from gateway.hooks.places.dialect import Dialect
from gateway.hooks.places.folder_source import FolderSource, make_message_id, program_spec_of
from gateway.hooks.places.hook_files import find_kept_files
from gateway.hooks.places.sources import HookVersion, Source
from gateway.hooks.remote import Remote, RemoteSpec
from gateway.hooks.services import HookServices
from gateway.hooks.wires.program import OneshotProgram
from gateway.hooks.wires.wire import Capability, Wire
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

SAFE_MODE_VARIABLE = "HERMES_SAFE_MODE"

Entry = TypeVar("Entry", ShellEntry, OutboundEntry)

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ConfigSource(Source):
    """Hooks that are entries of Hermes's `config.yaml`; each counts as soon as it is there."""

    path: Path
    config: HermesConfig
    origin: str = "config.yaml"

    is_watched = False

    @property
    def is_placed(self) -> bool:
        return True

    @property
    def trouble(self) -> str:
        self.config.read()
        return self.config.trouble

    def entries(self) -> Mapping[str, Any]:
        """Return the entries by the names of their hooks."""
        raise NotImplementedError

    def list(self) -> Iterator[HookVersion]:
        return (HookVersion(name, self.path, self, dialect=self.dialects[0]) for name in self.entries())

    def find(self, name: str) -> HookVersion | None:
        is_there = name in self.entries()
        return HookVersion(name, self.path, self, dialect=self.dialects[0]) if is_there else None

    def inspect_manifest(self, version: HookVersion) -> HookVersion:
        return self.inspect(version)

    def why_disabled(self, version: HookVersion) -> str:  # noqa: ARG002 - none of them is
        return ""

    def _entry_of(self, version: HookVersion) -> Any:
        """Return the hook's entry. Raises FileNotFoundError if it is gone."""
        if (entry := self.entries().get(version.name)) is None:
            raise FileNotFoundError(f"{version.name} is not in {self.path} any more")
        return entry


@dataclass(frozen=True)
class ShellHookSource(ConfigSource):
    """The shell hooks, `hooks.<event>`: programs, each run for one event."""

    is_named = True
    prefix = "shell-"
    dialects: tuple[Dialect, ...] = (SHELL,)

    def entries(self) -> Mapping[str, ShellEntry]:
        return _name_entries(self.config.read().shell)

    def inspect(self, version: HookVersion) -> HookVersion:
        entry, home = self._entry_of(version), self.path.parent
        findings = tuple(_check_events(version, (entry.event,)))
        digest = shell_digest_of(entry, home)
        try:
            words = split_command(entry.command)
            re.compile(entry.matcher)
        except (ValueError, re.error) as error:
            what = f"`{to_printable(entry.command)}` cannot be run at {entry.event}: {error}"
            wrong = Finding(_place_of(version), what, "correct it in Hermes's config.yaml")
            return replace(version, findings=(*findings, wrong), digest=digest)
        findings += tuple(check_command_files(_place_of(version), words, home))
        if entry.event in TOOL_HOOKS and entry.matcher:
            findings += tuple(check_tool_pattern(_place_of(version), entry.matcher))
        row = HERMES_HOOKS.get(entry.event)
        manifest = Manifest(
            folder=version.name,
            name=version.name,
            description=entry.command,
            events=row.events if row and not row.decides else (),
            intercepts=row.events if row and row.decides else (),
            timeout=entry.timeout,
            env=find_command_variables(entry.command, home),
            options={"event": entry.event, "matcher": entry.matcher},
            command=words,
            requires=ManifestRequires(bins=() if "/" in words[0] else words[:1]),
            protocol="oneshot",
            reading=Reading(
                files=find_kept_files(b"\n".join(read_command_files(entry.command, home))),
                starts_programs=True,
                guards=row.events if row and row.guards and entry.fail_closed else (),
                shut=row.events if row and row.guards and not entry.fail_closed else (),
                rewords=bool(row and row.rewords),
            ),
        )
        is_approved = is_approved_in_hermes(entry, home)
        return replace(
            version,
            manifest=manifest,
            findings=findings,
            digest=digest,
            is_approved=is_approved,
            owner_reason="a shell hook of its config.yaml",
        )

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:  # noqa: ARG002 - it can ask for nothing
        manifest = version.manifest
        assert manifest

        def current_digest() -> str:
            entry = self.entries().get(version.name)
            return shell_digest_of(entry, self.path.parent) if entry else ""

        options = manifest.options
        match = services.environment.ports.match
        dialect = ShellHookFormat(
            version.name, options["event"], options["matcher"], version.digest, current_digest, match
        )
        return OneshotProgram(program_spec_of(version, manifest, services.environment.home, services, log), dialect)


@dataclass(frozen=True)
class WebhookSource(ConfigSource):
    """The webhooks, `hooks.outbound`: URLs, each for some events."""

    prefix = "webhook-"
    dialects: tuple[Dialect, ...] = (WEBHOOK,)

    def entries(self) -> Mapping[str, OutboundEntry]:
        return _name_entries(self.config.read().outbound)

    def inspect(self, version: HookVersion) -> HookVersion:
        entry = self._entry_of(version)
        rows: list[HermesHook] = [HERMES_HOOKS[name] for name in entry.events if name in HERMES_HOOKS]
        manifest = Manifest(
            folder=version.name,
            name=version.name,
            description=entry.url,
            events=tuple(dict.fromkeys(event for row in rows for event in row.events)),
            timeout=entry.timeout,
            delivery="durable",
            options={"events": [row.name for row in rows], "matcher": entry.matcher},
            url=entry.url,
            secret_env=entry.secret_env,
        )
        digest = hashlib.sha256(repr(entry).encode()).hexdigest()
        findings, why = tuple(_check_events(version, entry.events)), "a webhook of its config.yaml"
        return replace(version, manifest=manifest, findings=findings, digest=digest, owner_reason=why)

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:  # noqa: ARG002 - it can ask for nothing, and prints nothing
        manifest = version.manifest
        assert manifest
        key = services.environment.environ[manifest.secret_env].encode() if manifest.secret_env else None
        remote = await Remote.open(RemoteSpec(manifest.folder, manifest.url, is_local=True), time.time, make_message_id)
        return OutboundWebhook(
            remote, manifest.options["events"], manifest.options["matcher"], key, services.environment.ports.match
        )


def make_hermes_config(home: Home, environ: Mapping[str, str]) -> HermesConfig:
    """Return Hermes's configuration; it does not count in Hermes's safe mode."""
    return HermesConfig(home.hermes_config, environ.get(SAFE_MODE_VARIABLE, "") not in ("", "0", "false"))


def list_hermes_sources(home: Home, environ: Mapping[str, str]) -> tuple[Source, ...]:
    """List the places that Hermes has in addition to its `hooks/`."""
    config = make_hermes_config(home, environ)
    plugins = (make_plugin_source(path, "plugins", config) for path in list_plugin_folders(home))
    return (*plugins, ShellHookSource(config.path, config), WebhookSource(config.path, config))


def list_plugin_folders(home: Home) -> list[Path]:
    """List `plugins/`, and the categories in it: folders that are no plugin, but contain some."""
    return [home.plugins, *filter(has_plugins, list_entries(home.plugins))]


def make_plugin_source(path: Path, origin: str, config: HermesConfig) -> FolderSource:
    """Return the plugins in this folder."""
    return FolderSource(path, origin, dialects=(PluginDialect(config),), prefix=PLUGIN_PREFIX)


def add_hermes_variables(configuration: Configuration) -> dict[str, str]:
    """Return the environment of hooks, with our own settings under Hermes's names (`TELEGRAM_HOME_CHANNEL`)."""
    found = dict(configuration.environ)
    for name in configuration.schema.hermes_variables:
        value: Any = configuration.settings
        for key in name.path:
            value = getattr(value, key)
        text = ",".join(value) if isinstance(value, tuple) else value
        if isinstance(text, str) and text:
            found.setdefault(name.variable, text)
    return found


def create_hermes_folders(home: Home) -> None:
    """Make the folders that hooks written for Hermes expect; some open a log file while they are imported."""
    home.hermes_logs.mkdir(mode=0o700, parents=True, exist_ok=True)


def _name_entries(entries: Iterable[Entry]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        name = wanted = _ODD.sub("-", _name_of(entry))[:80].strip("-.")
        free = (f"{wanted}-{number}" for number in itertools.count(2))
        while name in found:
            name = next(free)
        found[name] = entry
    return found


def _name_of(entry: ShellEntry | OutboundEntry) -> str:
    if isinstance(entry, OutboundEntry):
        return f"webhook-{entry.url.partition('://')[2].partition('?')[0]}"
    words = entry.command.split()
    script = next((word for word in reversed(words) if "/" in word or "." in word), words[0])
    return f"shell-{entry.event}-{Path(script).stem}"


def _check_events(version: HookVersion, names: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        if name not in HERMES_HOOKS:
            what = f"the hook {to_printable(name)} never fires here: {describe_unsupported(name)}"
            yield Finding(_place_of(version), what, "nothing need be done", "warning")


def _place_of(version: HookVersion) -> SourceLocation:
    return SourceLocation(f"{version.path}: {version.name}")

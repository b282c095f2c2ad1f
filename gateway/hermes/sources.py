"""Where hooks written for Hermes come from: folders, plugins, and the shell hooks and webhooks of its `config.yaml`.

A handler of Hermes lies in a folder as ours do; its source shows what it has no key to declare. A plugin is a folder
of another make. Shell hooks and webhooks are no folders: Hermes's own `config.yaml` names them. A shell hook runs only
when somebody has said that it may, as it is now: its content hash is over its event, its command and every file that
the command names, so that an edited script asks again.
"""

import hashlib
import importlib
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from gateway.access.access_control import INTERNAL
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.settings import PLUGIN_PREFIX
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.events import Event
from gateway.files.folders import read_plain_file
from gateway.hermes.config import HermesConfig, OutboundEntry, ShellEntry
from gateway.hermes.handler_source import find_answer, has_answers
from gateway.hermes.imports import find_former_packages, select_imports
from gateway.hermes.modules import AGENT_SESSIONS
from gateway.hermes.patches import PatchReport, find_patches
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, HermesHook, describe_unsupported
from gateway.hermes.plugin_manifest import (
    PLUGIN_ENTRY_FILE,
    PLUGIN_MANIFEST_FILES,
    apply_registrations,
    find_environment_names,
    find_files,
    infer_plugin_manifest,
    join_python_files,
    read_plugin_facts,
    read_plugin_manifest,
)
from gateway.hermes.shell_commands import (
    check_command_files,
    find_command_variables,
    is_approved_in_hermes,
    read_command_files,
    shell_digest_of,
    split_command,
)
from gateway.hermes.shim.event_shapes import show_fields
from gateway.hermes.tool_guards import check_tool_guards, check_tool_pattern
from gateway.hermes.unsupported_imports import check_own_imports, find_unsupported_imports
from gateway.hermes.wires import TOOL_HOOKS, OutboundWebhook, ShellHookDialect, build_payload
from gateway.hermes.written_for import DECISIONS, infer_written_for
from gateway.hooks.folders.folder_source import (
    START_TIMEOUT,
    FolderSource,
    make_message_id,
    program_spec_of,
    worker_spec_of,
)
from gateway.hooks.folders.manifest import (
    HANDLER_FILE,
    MANIFEST_FILE,
    Guard,
    Manifest,
    ParsedManifest,
    describe_patches,
    label_of,
)
from gateway.hooks.folders.manifest_keys import ManifestRequires
from gateway.hooks.folders.services import HookServices, MatchPattern
from gateway.hooks.folders.sources import HookVersion, Source
from gateway.hooks.remote import Remote, RemoteSpec
from gateway.hooks.wires.program import OneshotProgram
from gateway.hooks.wires.wire import Capability, HookFailed, Wire
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.context import ShowFields
from gateway.worker.protocol import PluginContents
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

WORK_FOLDER = "TERMINAL_CWD"  # where Hermes's terminal begins, for all conversations
SAFE_MODE_VARIABLE = "HERMES_SAFE_MODE"
PACKAGE_READER = "gateway.hermes.package_files"  # imported when something is missing: it knows three file formats
DECIDE_SECONDS = 5.0  # that all handlers written for Hermes have together to decide about a command

Entry = TypeVar("Entry", ShellEntry, OutboundEntry)

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
# What of Hermes's modules acts, and the right that it takes here.
_RIGHTS_BY_IMPORT = {
    "send": re.compile(rb"\bsend_message_tool\b"),
    "submit": re.compile(rb"\bAIAgent\b"),
    "emit": re.compile(rb"\bHookRegistry\b"),
    "session": re.compile(rb"\bSessionStore\b"),
}
_DECIDES = re.compile(rb"""["']decision["']""")


@dataclass(frozen=True)
class HermesFolderSource(FolderSource):
    """A folder of hooks, which may be written for us or for Hermes."""

    told_files = frozenset({MANIFEST_FILE, HANDLER_FILE})

    def infer(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        """Who declares nothing of ours has what the source shows, whoever it was written for."""
        if self.is_ours:
            return msgspec.structs.replace(manifest, hermes=False, written_for_reason="it comes with it")
        manifest = infer_written_for(manifest, files, lambda: _has_answers(manifest, files))
        former = find_former_packages(manifest.folder, manifest.entry, files)
        manifest = msgspec.structs.replace(manifest, files=find_files(b"\n".join(files.values())), former=former)
        return infer_hermes_manifest(manifest, files) if manifest.hermes or not manifest.own_key else manifest

    def check_files(self, version: HookVersion, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        own = _check_source(version, manifest, files) if manifest.hermes else _check_answers(manifest, files)
        return (*own, *check_command_names(manifest), *check_own_imports(version.path, files))

    def describe_failure(self, version: HookVersion, said: str, packages: Sequence[str]) -> str:
        return _describe_missing_module(version, said, packages)

    def wants(self, manifest: Manifest, event: Event) -> bool:
        """In Hermes no handler sees what an `AIAgent` does, and `agent:*` has no `agent:init`."""
        is_ours = event.name == "agent:init" and event.name not in manifest.subscriptions
        return super().wants(manifest, event) and not (manifest.hermes and (is_in_agent_session(event) or is_ours))

    def show_fields_of(self, manifest: Manifest) -> ShowFields | None:
        return show_fields if manifest.hermes else None

    def read_answer(self, manifest: Manifest, answer: Any) -> Any:
        return decision_of(answer) if manifest.hermes else answer


@dataclass(frozen=True)
class PluginSource(FolderSource):
    """A folder of Hermes plugins. What they subscribe to they say when they run; Hermes's configuration has a say."""

    config: HermesConfig = field(kw_only=True)

    MARKER_FILES: ClassVar = frozenset({*PLUGIN_MANIFEST_FILES, PLUGIN_ENTRY_FILE})
    prefix = PLUGIN_PREFIX
    off_at_first = "is off, as every plugin that nothing switches on"
    decides_after = True  # under Hermes one callback of a conversation follows the other
    together = frozenset({"tool:before"})  # what most guards pass, in a process each
    needs_start = True

    @property
    def switch_file(self) -> Path:
        return self.config.path

    @property
    def trouble(self) -> str:
        self.config.read()
        return super().trouble or self.config.trouble

    def is_place(self, folder: Path) -> bool:
        return _is_category(folder)

    def read_manifest(self, folder: Path) -> ParsedManifest:
        return read_plugin_manifest(folder)

    def infer(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        return infer_plugin_manifest(manifest, files)

    def infer_guard(self, version: HookVersion, files: Mapping[str, bytes]) -> Guard | None:
        bare = Manifest(folder=version.bare_name, name=version.bare_name, entry=PLUGIN_ENTRY_FILE, hermes=True)
        return infer_plugin_manifest(bare, files).guard

    def check_files(self, version: HookVersion, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return (*_check_source(version, manifest, files), *check_tool_guards(manifest.folder, files))

    def _read_folder(self, name: str, is_link: bool, own: tuple[Finding, ...]) -> HookVersion | None:
        """A folder of helpers for plugins is none: it has code, and neither a manifest nor a `register`."""
        version = super()._read_folder(name, is_link, own)
        if version is None or any(file.name in PLUGIN_MANIFEST_FILES for file in version.files):
            return version
        try:
            is_meant = b"def register(" in read_plain_file(version.path / PLUGIN_ENTRY_FILE)
        except OSError:
            is_meant = False
        return version if is_meant else None

    def wants(self, manifest: Manifest, event: Event) -> bool:  # noqa: ARG002 - all of them are Hermes's
        return is_for_plugins(event)

    def why_disabled(self, version: HookVersion) -> str:
        """As in Hermes: off unless its configuration names it, by folder or by name; `plugins.disabled` wins."""
        hermes, manifest = self.config.read(), version.manifest
        folder = version.bare_name
        names = {folder, f"{self.path.name}/{folder}", *([manifest.name] if manifest else [])}
        if names & hermes.disabled:
            return "switched off in Hermes's config.yaml (plugins.disabled)"
        if names & hermes.enabled:
            return ""
        return f"{self.off_at_first}; to switch it on: hermes-gateway hooks enable {version.called}"

    def options_of(self, version: HookVersion) -> Mapping[str, Any]:
        """What Hermes's configuration has for it (`plugins.entries`)."""
        entries = self.config.read().entries
        return entries.get(version.bare_name) or (version.manifest and entries.get(version.manifest.name)) or {}

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:
        manifest = version.manifest
        assert manifest
        spec = worker_spec_of(version, manifest, services, self.facts_of(version, manifest), self.places_of(version))
        return await services.fork_server.start(spec, serve, log, START_TIMEOUT)

    def facts_of(self, version: HookVersion, manifest: Manifest) -> Mapping[str, Any]:
        """What it finds as `ctx.manifest`; `guards`: the events at which its failures deny.

        `callbacks`: hooks that it may register when it has long been running; `patches`: what of Hermes it changes.
        """
        return {
            **read_plugin_facts(version.path),
            "name": manifest.name,
            "version": manifest.version,
            "description": manifest.description,
            "key": _key_of(manifest, self.path, self.config.path.parent / "plugins"),
            "path": str(version.path),
            "source": "user",
            "guards": manifest.guards,
            "callbacks": manifest.callbacks,
            "patches": manifest.patches,
        }

    def describe_failure(self, version: HookVersion, said: str, packages: Sequence[str]) -> str:
        return _describe_missing_module(version, said, packages)

    def check_contents(self, contents: PluginContents) -> Iterator[str]:
        words = {word for command in BUILT_IN for word in (command.name, *command.aliases)}
        for one in contents.commands:
            if one.name in words:
                yield f"the command /{one.name} is not this plugin's: the gateway has one of that name"

    def complete(self, manifest: Manifest, wire: Wire) -> Manifest:
        return apply_registrations(manifest, wire.loaded) if isinstance(wire, WorkerHandle) else manifest


def _key_of(manifest: Manifest, place: Path, plugins: Path) -> str:
    """What Hermes knows a plugin in this place by: its module is called so, and its events."""
    return f"{place.name}/{manifest.folder}" if place.parent == plugins else manifest.name


@dataclass(frozen=True)
class ConfigSource(Source):
    """Hooks that are entries of Hermes's `config.yaml`; they count as soon as they stand there."""

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
        """By the names under which they are listed."""
        raise NotImplementedError

    def list(self) -> Iterator[HookVersion]:
        return (HookVersion(name, self.path, self) for name in self.entries())

    def find(self, name: str) -> HookVersion | None:
        return HookVersion(name, self.path, self) if name in self.entries() else None

    def inspect_manifest(self, version: HookVersion) -> HookVersion:
        return self.inspect(version)

    def wants(self, manifest: Manifest, event: Event) -> bool:  # noqa: ARG002 - all of them are Hermes's
        return is_for_plugins(event)

    def why_disabled(self, version: HookVersion) -> str:  # noqa: ARG002 - none of them is
        return ""

    def _entry_of(self, version: HookVersion) -> Any:
        """FileNotFoundError when it has gone."""
        if (entry := self.entries().get(version.name)) is None:
            raise FileNotFoundError(f"{version.name} is not in {self.path} any more")
        return entry


@dataclass(frozen=True)
class ShellHookSource(ConfigSource):
    """`hooks.<event>`: programs, each run for one event."""

    needs_trust = True
    is_named = True
    decides_after = True

    def entries(self) -> Mapping[str, ShellEntry]:
        return _name_entries(self.config.read().shell)

    async def guards(self, manifest: Manifest, event: Event, match: MatchPattern | None) -> bool:
        """Tell if its matcher names this tool."""
        row = HERMES_HOOKS.get(manifest.options["event"])
        try:
            return row is None or await build_payload(row, event, manifest.options["matcher"], "", match) is not None
        except HookFailed:
            return True

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
            files=find_files(b"\n".join(read_command_files(entry.command, home))),
            options={"event": entry.event, "matcher": entry.matcher},
            command=words,
            requires=ManifestRequires(bins=() if "/" in words[0] else words[:1]),
            protocol="oneshot",
            hermes=True,
            written_for_reason="a shell hook of its config.yaml",
            starts_programs=True,
            guards=row.events if row and row.guards and entry.fail_closed else (),
            shut=row.events if row and row.guards and not entry.fail_closed else (),
            rewords=bool(row and row.rewords),
        )
        is_approved = is_approved_in_hermes(entry, home)
        return replace(version, manifest=manifest, findings=findings, digest=digest, is_approved=is_approved)

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:  # noqa: ARG002 - it can ask for nothing
        manifest = version.manifest
        assert manifest

        def current_digest() -> str:
            entry = self.entries().get(version.name)
            return shell_digest_of(entry, self.path.parent) if entry else ""

        options = manifest.options
        match = services.environment.ports.match
        dialect = ShellHookDialect(
            version.name, options["event"], options["matcher"], version.digest, current_digest, match
        )
        return OneshotProgram(program_spec_of(version, manifest, services.environment.home, services, log), dialect)


@dataclass(frozen=True)
class WebhookSource(ConfigSource):
    """`hooks.outbound`: URLs, each for some events."""

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
            hermes=True,
            written_for_reason="a webhook of its config.yaml",
        )
        digest = hashlib.sha256(repr(entry).encode()).hexdigest()
        return replace(version, manifest=manifest, findings=tuple(_check_events(version, entry.events)), digest=digest)

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:  # noqa: ARG002 - it can ask for nothing, and prints nothing
        manifest = version.manifest
        assert manifest
        key = services.environment.environ[manifest.secret_env].encode() if manifest.secret_env else None
        remote = await Remote.open(RemoteSpec(manifest.folder, manifest.url, is_local=True), time.time, make_message_id)
        return OutboundWebhook(
            remote, manifest.options["events"], manifest.options["matcher"], key, services.environment.ports.match
        )


def make_hermes_config(home: Home, environ: Mapping[str, str]) -> HermesConfig:
    """Hermes's configuration, which does not count in its safe mode."""
    return HermesConfig(home.hermes_config, environ.get(SAFE_MODE_VARIABLE, "") not in ("", "0", "false"))


def is_in_agent_session(event: Event) -> bool:
    """Whether it is of a turn that an `AIAgent` began."""
    return f":{INTERNAL}:dm:{AGENT_SESSIONS}" in str(event.get("session_key") or "")


def is_for_plugins(event: Event) -> bool:
    """Of an `AIAgent` plugins see what its model and its tools do, and nothing of the gateway, in which it is not."""
    return event.name.partition(":")[0] not in ("message", "command") or not is_in_agent_session(event)


def list_hermes_sources(home: Home, environ: Mapping[str, str]) -> tuple[Source, ...]:
    """What Hermes has besides its `hooks/`."""
    config = make_hermes_config(home, environ)
    plugins = (PluginSource(path, "plugins", config=config) for path in list_plugin_folders(home))
    return (*plugins, ShellHookSource(config.path, config), WebhookSource(config.path, config))


def list_plugin_folders(home: Home) -> list[Path]:
    """`plugins/`, and the categories in it: folders that are no plugin, but have some."""
    return [home.plugins, *filter(_is_category, list_entries(home.plugins))]


def list_entries(folder: Path) -> list[Path]:
    """What lies in it; nothing, where it is none or has just gone: people move and remove folders while we look."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_category(folder: Path) -> bool:
    entries = list_entries(folder)
    return not _has_manifest(entries) and any(_has_manifest(list_entries(entry)) for entry in entries)


def _has_manifest(entries: Iterable[Path]) -> bool:
    return any(entry.name in PLUGIN_MANIFEST_FILES for entry in entries)


def add_hermes_variables(configuration: Configuration) -> dict[str, str]:
    """What a hook may ask for; under Hermes's names also what stands in our own file (`TELEGRAM_HOME_CHANNEL`)."""
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
    """What hooks written for Hermes find there before they are imported; real ones open a log file at once."""
    home.hermes_logs.mkdir(mode=0o700, parents=True, exist_ok=True)


def infer_hermes_manifest(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """The manifest with what the source shows besides, where no key declares it."""
    source = join_python_files(files)
    env = find_environment_names(source)
    uses = tuple(verb for verb, words in _RIGHTS_BY_IMPORT.items() if words.search(source))
    commands = tuple(name for name in manifest.events if name.partition(":")[0] == "command")
    if not (commands and _decides(manifest, files, source)):
        commands = ()
    patched = _find_patches(manifest, files) if manifest.hermes else PatchReport((), acts=True)
    return msgspec.structs.replace(
        manifest,
        env=tuple(dict.fromkeys((*manifest.env, *env))),
        uses=tuple(dict.fromkeys((*manifest.uses, *uses))),
        found=tuple(name for name in (*env, *uses) if name not in (*manifest.env, *manifest.uses)),
        events=tuple(name for name in manifest.events if name not in commands),
        intercepts=(*manifest.intercepts, *(name for name in commands if name not in manifest.intercepts)),
        decide_together=DECIDE_SECONDS if manifest.hermes else None,
        patches=tuple(patch.name for patch in patched.patches),
        acts=bool(patched.acts or commands),
    )


def _decides(manifest: Manifest, files: Mapping[str, bytes], source: bytes) -> bool:
    """Whether its handler's answers about commands count; in a folder of ours only where they always did."""
    if manifest.hermes:
        return _has_answers(manifest, files)
    return manifest.written_for is None and _DECIDES.search(source) is not None


def _has_answers(manifest: Manifest, files: Mapping[str, bytes]) -> bool:
    return has_answers(select_imports(manifest.folder, manifest.entry, files))


def _find_patches(manifest: Manifest, files: Mapping[str, bytes]) -> PatchReport:
    starts_only = set(manifest.subscriptions) == {"gateway:startup"}
    return find_patches(manifest.folder, files, manifest.entry, starts_only=starts_only)


def _check_source(version: HookVersion, manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[Finding]:
    found = _find_patches(manifest, files).patches if manifest.patches else ()
    if found and not manifest.acts:
        remedy = "what it changes in Hermes is not here; switch it off, or use an event that does the same"
        yield Finding(found[0].place, f"without effect: {describe_patches(manifest.patches)}", remedy, "warning")
        return
    yield from (patch.finding for patch in found)
    reached = find_unsupported_imports(version.path, manifest.entry, files, manifest.patches)
    yield from (reach.finding for reach in reached)
    if WORK_FOLDER in manifest.env:
        what = f"it reads {WORK_FOLDER}, which is not set: the tools of each conversation begin in a folder of its own"
        remedy = f"if one is meant for all, put it into .env: {WORK_FOLDER}=FOLDER"
        yield Finding(SourceLocation(f"{label_of(manifest.folder)}/{manifest.entry}"), what, remedy, "warning")


def check_command_names(manifest: Manifest) -> Iterator[Finding]:
    """Commands that it waits for and that nobody can type here."""
    named = [name for name in manifest.subscriptions if name.startswith("command:") and "*" not in name]
    for name in named:
        word = name.partition(":")[2]
        command = next((one for one in BUILT_IN if word == one.name or word in one.aliases), None)
        place = SourceLocation(f"{label_of(manifest.folder)}/{MANIFEST_FILE}")
        if command is None:
            what, remedy = f"{name} never happens: there is no /{word} here", "unless a plugin brings that command"
            yield Finding(place, what, remedy, "warning")
        elif command.name != word:
            yield Finding(place, f"{name} never happens", f"/{word} is told as command:{command.name}", "warning")


def _check_answers(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """What a hook of ours answers about commands that it only observes; `written_for` says that it is meant."""
    unread = [name for name in manifest.events if name.startswith("command:")]
    if unread and not manifest.intercepts and manifest.wire == "worker" and manifest.written_for is None:
        code = select_imports(manifest.folder, manifest.entry, files)
        if found := find_answer(code):
            place = SourceLocation(f"{label_of(manifest.folder)}/{found[0]}", found[1], 1)
            what = f"it returns something at {', '.join(unread)}, which nobody reads"
            yield Finding(place, what, "add the event to `intercepts:`, or `written_for: hermes`", "warning")


def _describe_missing_module(version: HookVersion, said: str, packages: Sequence[str]) -> str:
    if "No module named" not in said:
        return ""
    reader = importlib.import_module(PACKAGE_READER)
    helps: str = reader.describe_missing_module(said, version.called, version.path, packages)
    return helps


def decision_of(answer: Any) -> dict[str, Any] | None:
    """What Hermes takes of a handler's answer at `command:*`: four words, and it passes over all else.

    A handler that answers other things too has worked there for years; here it must not be taken for one that fails. A
    message that is no text is none.
    """
    if not isinstance(answer, Mapping):
        return None
    word = str(answer.get("decision", "")).strip().lower()
    if word not in DECISIONS:
        return None
    fields = {key: answer[key] for key in ("command_name", "raw_args") if key in answer and word == "rewrite"}
    if isinstance(message := answer.get("message"), str) and message:
        fields["message"] = message
    return None if word == "allow" else {"decision": word, **fields}


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

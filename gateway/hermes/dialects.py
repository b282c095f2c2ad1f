"""The dialects of Hermes: handlers in folders, plugins, and the shell hooks and webhooks of its `config.yaml`.

A handler is a folder with a `HOOK.yaml`, as our hooks are, and declares little: its source shows the rest. A plugin
registers its hooks only when it runs, and Hermes's own configuration switches it on and off.
"""

import importlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gateway.access.access_control import INTERNAL
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.events import Event
from gateway.files.folders import read_plain_file
from gateway.hermes.config import HermesConfig
from gateway.hermes.handler_source import find_answer, has_answers
from gateway.hermes.imports import FORMER_IMPORT, find_former_packages, select_imports
from gateway.hermes.modules import AGENT_SESSIONS
from gateway.hermes.patches import (
    IDLE,
    PATCHES,
    PatchReport,
    describe_patches,
    find_patches,
    make_patch_notes,
    why_idle,
)
from gateway.hermes.plugin.hook_table import HERMES_HOOKS
from gateway.hermes.plugin_manifest import (
    CALLBACKS,
    HIDDEN,
    PLUGIN_ENTRY_FILE,
    PLUGIN_MANIFEST_FILES,
    add_open_registrations,
    apply_registrations,
    find_environment_names,
    has_plugins,
    infer_plugin_manifest,
    join_python_files,
    read_plugin_facts,
    read_plugin_manifest,
)
from gateway.hermes.shim.event_shapes import show_fields
from gateway.hermes.tool_guards import check_tool_guards
from gateway.hermes.unsupported_imports import check_own_imports, find_unsupported_imports
from gateway.hermes.wires import build_payload
from gateway.hermes.written_for import DECISIONS, find_owner
from gateway.hooks.manifests.manifest import (
    MANIFEST_FILE,
    Guard,
    Manifest,
    ParsedManifest,
    label_of,
)
from gateway.hooks.places.dialect import Dialect, FolderClaim, Turn
from gateway.hooks.services import MatchPattern
from gateway.hooks.wires.wire import HookFailed
from gateway.worker.protocol import LoadedHandlers, PluginContents
from gateway.yaml_source.tree import Finding, SourceLocation

WORK_FOLDER = "TERMINAL_CWD"  # the folder in which Hermes's terminal starts, for all conversations
PACKAGE_READER = "gateway.hermes.package_files"  # imported when something is missing: it knows three file formats
DECIDE_SECONDS = 5.0  # that all handlers written for Hermes have together to decide about a command

# The parts of Hermes's modules that act, by the right that they need here.
_RIGHTS_BY_IMPORT = {
    "send": re.compile(rb"\bsend_message_tool\b"),
    "submit": re.compile(rb"\bAIAgent\b"),
    "emit": re.compile(rb"\bHookRegistry\b"),
    "session": re.compile(rb"\bSessionStore\b"),
}
_DECIDES = re.compile(rb"""["']decision["']""")
# Words that make it look at a folder of ours, too: commands, names that we offer, and packages that came with us.
_SPOKEN_OF = re.compile(rb"\bcommand:[^\s]|\bgateway\.hooks\b|" + FORMER_IMPORT.pattern, re.MULTILINE)


class HermesDialect(Dialect):
    """The rules that all hooks written for Hermes share."""

    label = "Hermes"
    is_told_first = True
    refuses = ("message:received", "command:")
    # The variables that Hermes's gateway sets for all its programs.
    environ: Mapping[str, str] = {"_HERMES_GATEWAY": "1", "HERMES_QUIET": "1", "HERMES_EXEC_ASK": "1"}

    def wants(self, manifest: Manifest, event: Event) -> bool:  # noqa: ARG002 - all of them are Hermes's
        return is_for_plugins(event)

    def why_idle(self, manifest: Manifest, patches: Sequence[str] = (), remarks: Iterable[str] = ()) -> str:
        return why_idle(manifest, patches, remarks)

    def explain_failure(self, said: str, called: str, folder: Path, packages: Sequence[str]) -> str:
        """Name the package that is missing, and the command that installs it; hooks of other dialects get this, too."""
        return _describe_missing_module(said, called, folder, packages)


class HandlerDialect(HermesDialect):
    """The dialect of Hermes's handlers: `HOOK.yaml` and `handler.py`."""

    name = "hermes"
    loads_any_name = True
    mentions = _SPOKEN_OF
    turn = Turn(("*",), DECIDE_SECONDS)
    shapes = "gateway.hermes.shim.handlers"

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:
        return find_owner(manifest, files, lambda: _has_answers(manifest, files))

    def find(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        return infer_hermes_manifest(_find_former(manifest, files), files)

    def check(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return (*_check_source(manifest, files), *check_command_names(manifest))

    def find_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        """Read the source of a folder without a key of ours, although it was not written for Hermes."""
        manifest = _find_former(manifest, files)
        return manifest if manifest.own_key else infer_hermes_manifest(manifest, files, is_owner=False)

    def check_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return (*_check_answers(manifest, files), *check_command_names(manifest))

    def review(self, manifest: Manifest, folder: Path, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return (*_check_imports(manifest, folder, files), *check_own_imports(folder, files))

    def wants(self, manifest: Manifest, event: Event) -> bool:
        """Skip the events that Hermes's handlers never get: those of an `AIAgent`, and `agent:init`."""
        is_ours = event.name == "agent:init" and event.name not in manifest.subscriptions
        return Dialect.wants(self, manifest, event) and not (is_in_agent_session(event) or is_ours)

    def show_fields(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        return show_fields(event, fields)

    def read_answer(self, answer: Any) -> Any:
        return decision_of(answer)


HERMES = HandlerDialect()


@dataclass(frozen=True)
class PluginDialect(HermesDialect):
    """The dialect of Hermes's plugins."""

    config: HermesConfig

    name = "hermes-plugin"
    markers = frozenset({*PLUGIN_MANIFEST_FILES, PLUGIN_ENTRY_FILE})
    off_at_first = "is off, as every plugin that nothing switches on"
    waits_for_told = True  # in Hermes, the callbacks of a conversation run one after the other
    turn = Turn(("tool:before",), can_change=True)  # most guards decide about it, each in its own process
    starts_early = True
    shapes = "gateway.hermes.plugin.plugin"

    @property
    def switch_file(self) -> Path:
        return self.config.path

    @property
    def trouble(self) -> str:
        self.config.read()
        return self.config.trouble

    def is_place(self, folder: Path) -> bool:
        return has_plugins(folder)

    def is_hook(self, folder: Path, names: Collection[str]) -> bool:
        """Skip a folder of helpers for plugins: it has code, and neither a manifest nor a `register`."""
        if not {*PLUGIN_MANIFEST_FILES}.isdisjoint(names):
            return True
        try:
            return b"def register(" in read_plain_file(folder / PLUGIN_ENTRY_FILE)
        except OSError:
            return False

    def read_manifest(self, folder: Path, name: str) -> ParsedManifest:  # noqa: ARG002 - it is the folder's
        return read_plugin_manifest(folder)

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:  # noqa: ARG002 - its files say it
        return FolderClaim(is_owner=True, reason="a plugin")

    def find(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        return infer_plugin_manifest(manifest, files)

    def find_guard(self, name: str, files: Mapping[str, bytes]) -> Guard | None:
        return self.widen(infer_plugin_manifest(Manifest(folder=name, name=name, entry=PLUGIN_ENTRY_FILE), files)).guard

    def check(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return _check_source(manifest, files)

    def review(self, manifest: Manifest, folder: Path, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return (*_check_imports(manifest, folder, files), *check_tool_guards(manifest.folder, files))

    def why_disabled(self, name: str, called: str, place: Path, manifest: Manifest | None) -> str:
        """Say why Hermes's configuration does not switch it on, by folder or by name; `plugins.disabled` wins."""
        hermes = self.config.read()
        names = {name, f"{place.name}/{name}", *([manifest.name] if manifest else [])}
        if names & hermes.disabled:
            return "switched off in Hermes's config.yaml (plugins.disabled)"
        if names & hermes.enabled:
            return ""
        return f"{self.off_at_first}; to switch it on: hermes-gateway hooks enable {called}"

    def options_of(self, name: str, manifest: Manifest | None) -> Mapping[str, Any]:
        """Return the plugin's options in Hermes's configuration (`plugins.entries`)."""
        entries = self.config.read().entries
        return entries.get(name) or (manifest and entries.get(manifest.name)) or {}

    def facts_of(self, folder: Path, manifest: Manifest, place: Path) -> Mapping[str, Any]:
        """Return the plugin's `ctx.manifest`; `guards` are the events that are denied when it fails.

        `callbacks`: hooks that it may register when it has long been running; `patches`: the parts of Hermes that it
        changes.
        """
        return {
            **read_plugin_facts(folder),
            "name": manifest.name,
            "version": manifest.version,
            "description": manifest.description,
            "key": _key_of(manifest, place, self.config.path.parent / "plugins"),
            "path": str(folder),
            "source": "user",
            "guards": self.widen(manifest).reading.guards,
            "callbacks": manifest.reading.noted.get(CALLBACKS, ()),
            "patches": manifest.reading.noted.get(PATCHES, ()),
        }

    def check_contents(self, contents: PluginContents) -> Iterator[str]:
        words = {word for command in BUILT_IN for word in (command.name, *command.aliases)}
        for one in contents.commands:
            if one.name in words:
                yield f"the command /{one.name} is not this plugin's: the gateway has one of that name"

    def widen(self, manifest: Manifest, known: Manifest | None = None, last: Manifest | None = None) -> Manifest:
        return add_open_registrations(manifest, known, last)

    def describe_doubt(self, manifest: Manifest) -> str:
        place, *_ = manifest.reading.noted.get(HIDDEN, ("",))
        return f"what it registers at {place} is known only when it runs" if place else ""

    def complete(self, manifest: Manifest, loaded: LoadedHandlers) -> Manifest:
        return apply_registrations(manifest, loaded)


class ShellDialect(HermesDialect):
    """The dialect of programs that Hermes's configuration names, each run for one event."""

    name = "hermes-shell"
    needs_trust = True
    waits_for_told = True

    async def guards(self, manifest: Manifest, event: Event, match: MatchPattern | None) -> bool:
        """Tell if the hook's matcher names this tool."""
        row = HERMES_HOOKS.get(manifest.options["event"])
        try:
            return row is None or await build_payload(row, event, manifest.options["matcher"], "", match) is not None
        except HookFailed:
            return True


class WebhookDialect(HermesDialect):
    """The dialect of URLs that Hermes's configuration names."""

    name = "hermes-webhook"


SHELL, WEBHOOK = ShellDialect(), WebhookDialect()


def _key_of(manifest: Manifest, place: Path, plugins: Path) -> str:
    """Return the name that Hermes has for a plugin in this place, for its module and in its events."""
    return f"{place.name}/{manifest.folder}" if place.parent == plugins else manifest.name


def is_in_agent_session(event: Event) -> bool:
    """Tell if the event belongs to a turn that an `AIAgent` began."""
    return f":{INTERNAL}:dm:{AGENT_SESSIONS}" in str(event.get("session_key") or "")


def is_for_plugins(event: Event) -> bool:
    """Tell if plugins get this event: from a turn of an `AIAgent` they get only the work of its model and its tools."""
    return event.name.partition(":")[0] not in ("message", "command") or not is_in_agent_session(event)


def _find_former(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    former = find_former_packages(manifest.folder, manifest.entry, files)
    return manifest.add_reading(former=former)


def infer_hermes_manifest(manifest: Manifest, files: Mapping[str, bytes], *, is_owner: bool = True) -> Manifest:
    """Add to the manifest what the source shows and no key declares."""
    source = join_python_files(files)
    env = find_environment_names(source)
    uses = tuple(verb for verb, words in _RIGHTS_BY_IMPORT.items() if words.search(source))
    commands = tuple(name for name in manifest.events if name.partition(":")[0] == "command")
    if not (commands and _decides(manifest, files, source, is_owner=is_owner)):
        commands = ()
    patched = _find_patches(manifest, files) if is_owner else PatchReport((), acts=True)
    return msgspec.structs.replace(
        manifest,
        env=tuple(dict.fromkeys((*manifest.env, *env))),
        uses=tuple(dict.fromkeys((*manifest.uses, *uses))),
        events=tuple(name for name in manifest.events if name not in commands),
        intercepts=(*manifest.intercepts, *(name for name in commands if name not in manifest.intercepts)),
    ).add_reading(
        found=tuple(name for name in (*env, *uses) if name not in (*manifest.env, *manifest.uses)),
        noted=make_patch_notes([patch.name for patch in patched.patches], acts=bool(patched.acts or commands)),
    )


def _decides(manifest: Manifest, files: Mapping[str, bytes], source: bytes, *, is_owner: bool) -> bool:
    """Tell if the handler's answers about commands count; in a folder of ours only if an earlier version read them."""
    if is_owner:
        return _has_answers(manifest, files)
    return manifest.written_for is None and _DECIDES.search(source) is not None


def _has_answers(manifest: Manifest, files: Mapping[str, bytes]) -> bool:
    return has_answers(select_imports(manifest.folder, manifest.entry, files))


def _find_patches(manifest: Manifest, files: Mapping[str, bytes]) -> PatchReport:
    starts_only = set(manifest.subscriptions) == {"gateway:startup"}
    return find_patches(manifest.folder, files, manifest.entry, starts_only=starts_only)


def _check_source(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[Finding]:
    names = manifest.reading.noted.get(PATCHES, ())
    found = _find_patches(manifest, files).patches if names else ()
    if found and IDLE in manifest.reading.noted:
        remedy = "what it changes in Hermes is not here; switch it off, or use an event that does the same"
        yield Finding(found[0].place, f"without effect: {describe_patches(names)}", remedy, "warning")
        return
    yield from (patch.finding for patch in found)
    if WORK_FOLDER in manifest.env:
        what = f"it reads {WORK_FOLDER}, which is not set: the tools of each conversation begin in a folder of its own"
        remedy = f"if one is meant for all, put it into .env: {WORK_FOLDER}=FOLDER"
        yield Finding(SourceLocation(f"{label_of(manifest.folder)}/{manifest.entry}"), what, remedy, "warning")


def check_command_names(manifest: Manifest) -> Iterator[Finding]:
    """Yield a warning for each command that the hook waits for and that does not exist here."""
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
    """Warn of a hook of ours that answers commands which it only observes; `written_for` switches the warning off."""
    unread = [name for name in manifest.events if name.startswith("command:")]
    if unread and not manifest.intercepts and manifest.wire == "worker" and manifest.written_for is None:
        code = select_imports(manifest.folder, manifest.entry, files)
        if found := find_answer(code):
            place = SourceLocation(f"{label_of(manifest.folder)}/{found[0]}", found[1], 1)
            what = f"it returns something at {', '.join(unread)}, which no event reads"
            yield Finding(place, what, "add the event to `intercepts:`, or `written_for: hermes`", "warning")


def _check_imports(manifest: Manifest, folder: Path, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield the unsupported imports, unless the whole hook is without effect."""
    if not why_idle(manifest):
        reached = find_unsupported_imports(folder, manifest.entry, files, manifest.reading.noted.get(PATCHES, ()))
        yield from (reach.finding for reach in reached)


def _describe_missing_module(said: str, called: str, folder: Path, packages: Sequence[str]) -> str:
    if "No module named" not in said:
        return ""
    reader = importlib.import_module(PACKAGE_READER)
    helps: str = reader.describe_missing_module(said, called, folder, packages)
    return helps


def decision_of(answer: Any) -> dict[str, Any] | None:
    """Return the part of a handler's answer at `command:*` that Hermes reads: four words, and nothing else.

    A handler that also answers other things has worked there for years; here it must not count as failed. A message
    that is not text is left out.
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

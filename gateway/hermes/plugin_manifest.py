"""A Hermes plugin as a hook: its `plugin.yaml` becomes a manifest, and its source shows its subscriptions.

Only `register(ctx)`, in the process of the plugin, tells its real subscriptions. Until then the names in its source
count, so a guard guards from the start; afterwards its registrations count.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gateway.hermes.callback_source import can_guard
from gateway.hermes.config import get_items, get_text
from gateway.hermes.imports import find_former_packages, select_imports
from gateway.hermes.patches import IDLE, find_patches, make_patch_notes
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, HermesHook, describe_unsupported
from gateway.hermes.plugin.open_calls import MIDDLEWARE
from gateway.hermes.registration_source import read_registrations
from gateway.hooks.manifests.manifest import (
    MAX_MANIFEST_BYTES,
    Manifest,
    ParsedManifest,
    Reading,
    check_reach,
    label_of,
)
from gateway.hooks.manifests.manifest_keys import REACH_KEYS, REMOTE_TIMEOUT, ManifestRequires, PluginRight, ReachKeys
from gateway.worker.protocol import LoadedHandlers
from gateway.yaml_source.binder import bind
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlMapping, YamlNode, YamlScalar, to_plain

PLUGIN_MANIFEST_FILES = ("plugin.yaml", "plugin.yml")
PLUGIN_ENTRY_FILE = "__init__.py"
_GUARDS = tuple(row for row in HERMES_HOOKS.values() if row.guards)
PLUGIN_KINDS = ("standalone", "backend", "exclusive", "platform", "model-provider")
SUPPORTED_KINDS = (PLUGIN_KINDS[0], "")
PLUGIN_RIGHTS: tuple[PluginRight, ...] = ("emit", "send", "store", "submit", "tool", "llm", "session")

_LITERAL_NAME = re.compile(rb"""["']([A-Z][A-Z0-9_]{1,199})["']""")
_READS_ENVIRON = re.compile(rb"\b(environ|getenv|environs|decouple|dotenv_values|get_env_value)\b")
ANY_TOOL = "*"
# The manifest notes the hooks that its source registers, perhaps only later, the tools that it may replace, and, if it
# hides registrations, their place and the guards among which they may be; also the commands that it names.
CALLBACKS, OVERRIDES, HIDDEN, COMMANDS = "callbacks", "overrides", "hidden", "commands"
_TOOL_NAME = re.compile(rb"""\bregister_tool\b(?:\(\s*(?:name\s*=\s*)?["']([^"']+)["']\s*[,)])?""")
_COMMAND_NAME = re.compile(rb"""register_command\(\s*(?:name\s*=\s*)?["']/?([\w-]+)["']""")


def read_plugin_manifest(folder: Path) -> ParsedManifest:
    """Read `plugin.yaml`, and pass over the keys without a meaning here, as Hermes does."""
    file = _find_manifest_file(folder)
    if file is None:
        place = SourceLocation(f"{label_of(folder.name)}/{PLUGIN_MANIFEST_FILES[0]}")
        return ParsedManifest(None, (Finding(place, "is missing", "write one; its least is: name: my-plugin"),))
    tree = read_yaml(file, MAX_MANIFEST_BYTES, name=f"{label_of(folder.name)}/{file.name}")
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(tree.root.place)
    said = YamlMapping(root.place, tuple(pair for pair in root.pairs if pair[0].text in REACH_KEYS))
    reach, bound = bind(said, ReachKeys)
    findings = [*tree.findings, *_check_kind(root), *_check_provided_hooks(root), *bound, *check_reach(root)]
    if reach is None or any(finding.severity == "error" for finding in findings):
        return ParsedManifest(None, tuple(findings))
    manifest = Manifest(
        folder=folder.name,
        name=get_text(root, "name") or folder.name,
        description=get_text(root, "description"),
        version=get_text(root, "version"),
        requires=ManifestRequires(python=_words_of(root.get("pip_dependencies"))),
        reading=Reading(noted={"kinds": (get_text(root, "kind").lower(),)}),
        env=(*_words_of(root.get("requires_env")), *_words_of(root.get("optional_env"))),
        uses=PLUGIN_RIGHTS,
        entry=PLUGIN_ENTRY_FILE,
        decide_limit=REMOTE_TIMEOUT,
        says_reach=bool(said.pairs),
        **msgspec.structs.asdict(reach),
    )
    return ParsedManifest(manifest, tuple(findings))


def read_plugin_facts(folder: Path) -> dict[str, Any]:
    """Return the other values of `plugin.yaml` that a plugin finds in `ctx.manifest`."""
    file = _find_manifest_file(folder)
    root = read_yaml(file, MAX_MANIFEST_BYTES).root if file else None
    said = to_plain(root) if isinstance(root, YamlMapping) else {}
    kind = str(said.get("kind") or "").strip().lower()
    return {
        "author": said.get("author", ""),
        "kind": kind if kind in PLUGIN_KINDS else PLUGIN_KINDS[0],
        **{key: said.get(key, []) for key in ("requires_env", "provides_tools", "provides_hooks")},
    }


def _find_manifest_file(folder: Path) -> Path | None:
    return next((folder / name for name in PLUGIN_MANIFEST_FILES if (folder / name).exists()), None)


def _check_kind(root: YamlMapping) -> Iterable[Finding]:
    kind = get_text(root, "kind").lower()
    if kind not in SUPPORTED_KINDS:
        what = f"is a plugin of the kind `{kind}`, which only Hermes itself can use"
        remedy = "its hooks, tools and commands work here; what else it registers is passed over"
        yield Finding((root.get("kind") or root).place, what, remedy, "warning")


def list_entries(folder: Path) -> list[Path]:
    """List the entries of a folder; none if it has just gone, since people move and remove folders while we look."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def has_plugins(folder: Path) -> bool:
    """Tell if a folder is no plugin, but contains some."""
    entries = list_entries(folder)
    return not _has_manifest(entries) and any(_has_manifest(list_entries(entry)) for entry in entries)


def _has_manifest(entries: Iterable[Path]) -> bool:
    return any(entry.name in PLUGIN_MANIFEST_FILES for entry in entries)


def join_python_files(files: Mapping[str, bytes]) -> bytes:
    return b"\n".join(files[name] for name in sorted(files) if name.endswith(".py"))


def find_overrides(source: bytes) -> tuple[str, ...]:
    """Return the names under which a plugin registers tools; a name that the text hides may be any tool's.

    These tools wait for a plugin that may replace them, and are refused if it does not come up.
    """
    names = [found[1].decode(errors="replace") if found[1] else ANY_TOOL for found in _TOOL_NAME.finditer(source)]
    return tuple(dict.fromkeys(names)) or (ANY_TOOL,)


def find_environment_names(source: bytes) -> tuple[str, ...]:
    """Return the variables that the code may read: all names in capitals, if it reads any variable."""
    if not _READS_ENVIRON.search(source):
        return ()
    return tuple(dict.fromkeys(map(bytes.decode, _LITERAL_NAME.findall(source))))


def infer_plugin_manifest(manifest: Manifest, sources: Mapping[str, bytes]) -> Manifest:
    """Add to the manifest all that the source shows."""
    text = join_python_files(sources)
    env = dict.fromkeys((*manifest.env, *find_environment_names(text)))
    code = select_imports(manifest.folder, manifest.entry, sources)
    seen = read_registrations(manifest.folder, manifest.entry, code)
    rows = [row for name, row in HERMES_HOOKS.items() if re.search(rf"""["']{name}["']""".encode(), text)]
    around = find_tool_callbacks(code)
    rows += around
    declared = b"\n".join(source for name, source in sources.items() if name in PLUGIN_MANIFEST_FILES)
    guards = [*find_guards(declared, code), *around]
    # Hermes's networks and models register by computed names; they guard nothing unless they name a guard.
    is_open = not {*manifest.reading.noted.get("kinds", ())}.difference(SUPPORTED_KINDS) or bool(guards)
    hides = [row for row in _GUARDS if seen.place and is_open and (not seen.is_name or can_guard(code, row.name))]
    hidden = {HIDDEN: (str(seen.place), *(row.name for row in hides))} if hides else {}
    found = tuple(name for name in env if name not in manifest.env)
    patched = find_patches(manifest.folder, sources, manifest.entry)
    return msgspec.structs.replace(_subscribe(manifest, rows, guards), env=tuple(env)).add_reading(
        found=found,
        noted={
            CALLBACKS: tuple(sorted({*seen.names, *(row.name for row in rows if seen.place)})),
            OVERRIDES: find_overrides(join_python_files(code)),
            COMMANDS: tuple(dict.fromkeys(name.decode().lower() for name in _COMMAND_NAME.findall(text))),
            **hidden,
            **make_patch_notes([patch.name for patch in patched.patches], acts=patched.acts),
        },
        former=find_former_packages(manifest.folder, manifest.entry, sources),
    )


def _subscribe(manifest: Manifest, rows: Iterable[HermesHook], guards: Sequence[HermesHook]) -> Manifest:
    """Return the manifest with the events that these hook names mean."""
    rows = list(dict.fromkeys((*rows, *guards)))
    decides = {name for row in rows for name in (*row.notes, *(row.events if row.decides else ()))}
    observes = dict.fromkeys(name for row in rows for name in row.events if name not in decides)
    guarded = dict.fromkeys(name for row in guards for name in row.events)
    return msgspec.structs.replace(
        manifest,
        events=tuple(observes),
        intercepts=tuple(sorted(decides)),
    ).add_reading(guards=tuple(guarded), rewords=any(row.rewords for row in rows))


def add_open_registrations(manifest: Manifest, known: Manifest | None, last: Manifest | None) -> Manifest:
    """Add what the plugin last subscribed to, and what its source hides: if that is not `known`, it may be anything."""
    _, *hidden = manifest.reading.noted.get(HIDDEN, ("",))
    every = _subscribe(manifest, HERMES_HOOKS.values(), [HERMES_HOOKS[name] for name in hidden]) if hidden else None
    more = [one for one in ((known,) if known else (every, last)) if one]
    intercepts = dict.fromkeys(name for one in (manifest, *more) for name in one.intercepts)
    observes = dict.fromkeys(name for one in (manifest, *more) for name in one.events if name not in intercepts)
    guards = dict.fromkeys(name for one in (manifest, *more) for name in one.reading.guards)
    is_settled = manifest.says_on_error and manifest.on_error != "deny"  # then its failures deny nothing
    wide = msgspec.structs.replace(
        manifest,
        events=tuple(observes),
        intercepts=tuple(intercepts),
    ).add_reading(
        guards=manifest.reading.guards if is_settled else tuple(guards),
        rewords=any(one.reading.rewords for one in (manifest, *more)),
        noted={what: names for what, names in manifest.reading.noted.items() if what != HIDDEN},
    )
    return manifest if wide == manifest else wide


def find_guards(declared: bytes, code: Mapping[str, bytes]) -> Sequence[HermesHook]:
    """Find the guards that the code or `plugin.yaml` names, without those whose callbacks only observe."""
    text = b"\n".join((declared, join_python_files(code)))
    named = (row for row in _GUARDS if re.search(rf"\b{row.name}\b".encode(), text))
    return [row for row in named if can_guard(code, row.name)]


def find_tool_callbacks(code: Mapping[str, bytes]) -> list[HermesHook]:
    """Find the middleware that the code may register: while the plugin is broken, each kind may have stopped a call."""
    text = join_python_files(code)
    if b"register_middleware" not in text:
        return []
    return [row for name, row in MIDDLEWARE.items() if name.encode() in text.lower()]


def apply_registrations(manifest: Manifest, loaded: LoadedHandlers) -> Manifest:
    """Replace the subscriptions from the source by the registered ones."""
    decides = {name for mark in loaded.marks if mark.target in loaded.offers.decides for name in mark.names}
    observes = dict.fromkeys(name for mark in loaded.marks for name in mark.names if name not in decides)
    guards = tuple({name for mark in loaded.marks if mark.on_error == "deny" for name in mark.names})
    offers = loaded.offers
    acts = offers.tools or offers.commands or offers.skills or (IDLE not in manifest.reading.noted and loaded.marks)
    noted = {what: names for what, names in manifest.reading.noted.items() if what not in (HIDDEN, IDLE)}
    return msgspec.structs.replace(
        manifest,
        events=tuple(observes),
        intercepts=tuple(sorted(decides)),
    ).add_reading(
        guards=guards,
        rewords=any(name in HERMES_HOOKS and HERMES_HOOKS[name].rewords for name in offers.decides),
        noted={**noted, **make_patch_notes((), acts=bool(acts))},
    )


def _check_provided_hooks(root: YamlMapping) -> Iterable[Finding]:
    """Yield a warning for each hook name of the manifest that never fires here."""
    for key in ("provides_hooks", "hooks"):
        for node in get_items(root.get(key)):
            if isinstance(node, YamlScalar) and node.text not in HERMES_HOOKS:
                yield Finding(
                    node.place, f"the hook {node.text} never fires here", describe_unsupported(node.text), "warning"
                )


def _words_of(node: YamlNode | None) -> tuple[str, ...]:
    """Return a list of names, each written as a text or as a mapping with a `name`."""
    named = [item.get("name") if isinstance(item, YamlMapping) else item for item in get_items(node)]
    return tuple(one.text for one in named if isinstance(one, YamlScalar) and one.text)

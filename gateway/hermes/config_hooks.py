"""Hooks that are no folders: shell hooks and outbound webhooks, as Hermes's own `config.yaml` names them.

A shell hook runs only when somebody has said that it may, as it is now: its content hash is over its event, its command
and every file that the command names, so that an edited script asks again.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from gateway.hermes.config import HermesHooks, OutboundEntry, ShellEntry
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, HermesHook, describe_unsupported
from gateway.hooks.folders.inspection import Inspection
from gateway.hooks.folders.manifest import Guard, Manifest
from gateway.hooks.folders.sources import FoundHook, Source
from gateway.yaml_source import Finding, SourceLocation
from gateway.yaml_source.tree import to_printable

CONFIG_KINDS = frozenset({"shell", "outbound"})
MAX_SCRIPT_BYTES = 4_000_000
SYSTEM_PATHS = ("/usr/", "/bin/", "/sbin/", "/lib")

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_VARIABLE = re.compile(rb"(?:\$\{?|environ(?:\.get\(|\[)|getenv\()[\"']?([A-Z][A-Z0-9_]{1,199})")

ConfigEntry = ShellEntry | OutboundEntry


def read_config_entries(source: Source) -> dict[str, ConfigEntry]:
    """By the names under which they are listed."""
    hermes = source.hermes.read() if source.hermes else HermesHooks()
    found: dict[str, ConfigEntry] = {}
    for entry in hermes.shell if source.kind == "shell" else hermes.outbound:
        name = wanted = _ODD.sub("-", _name_of(entry))[:80].strip("-.")
        number = 1
        while name in found:
            number += 1
            name = f"{wanted}-{number}"
        found[name] = entry
    return found


def list_config_hooks(source: Source) -> Iterator[FoundHook]:
    return (FoundHook(name, source.path, source) for name in read_config_entries(source))


def find_config_hook(source: Source, name: str) -> FoundHook | None:
    return FoundHook(name, source.path, source) if name in read_config_entries(source) else None


def inspect_config_hook(folder: FoundHook) -> Inspection:
    entry = read_config_entries(folder.source).get(folder.name)
    if entry is None:
        raise FileNotFoundError(f"{folder.name} is not in {folder.source.path} any more")
    if isinstance(entry, OutboundEntry):
        return _inspect_outbound_webhook(folder, entry)
    return _inspect_shell_hook(folder, entry)


def shell_digest_of(entry: ShellEntry, home: Path) -> str:
    """Of all that decides what runs."""
    total = hashlib.sha256(f"{entry.event}\0{entry.command}\0{entry.matcher}".encode())
    for path in _files_of(entry.command, home):
        total.update(f"\0{path}\0".encode())
        try:
            with path.open("rb") as file:
                total.update(file.read(MAX_SCRIPT_BYTES))
        except OSError:
            total.update(b"(cannot be read)")
    return total.hexdigest()


def split_command(command: str) -> tuple[str, ...]:
    """As Hermes splits it: no shell looks at it, and `~` is the home of the user."""
    return tuple(str(Path(word).expanduser()) if word.startswith("~") else word for word in shlex.split(command))


def _name_of(entry: ConfigEntry) -> str:
    if isinstance(entry, OutboundEntry):
        return f"webhook-{entry.url.partition('://')[2].partition('?')[0]}"
    words = entry.command.split()
    script = next((word for word in reversed(words) if "/" in word or "." in word), words[0])
    return f"shell-{entry.event}-{Path(script).stem}"


def _files_of(command: str, home: Path) -> list[Path]:
    """What the user wrote, as far as it is named: programs of the system are not asked about."""
    try:
        words = split_command(command)
    except ValueError:
        return []
    paths = [home / word for word in words if "\0" not in word]
    return [path for path in paths if _is_file(path) and not str(path).startswith(SYSTEM_PATHS)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word that is too long for a name, for instance
        return False


def _inspect_shell_hook(folder: FoundHook, entry: ShellEntry) -> Inspection:
    findings = list(_check_events(folder, (entry.event,)))
    try:
        words = split_command(entry.command)
        re.compile(entry.matcher)
    except (ValueError, re.error) as error:
        what = f"`{to_printable(entry.command)}` cannot be run at {entry.event}: {error}"
        findings.append(Finding(_place_of(folder), what, "correct it in Hermes's config.yaml"))
        return Inspection(findings=tuple(findings), digest=shell_digest_of(entry, folder.source.path.parent))
    row = HERMES_HOOKS.get(entry.event)
    guards = row.events if row and row.guards and entry.fail_closed else ()
    home = folder.source.path.parent
    manifest = Manifest(
        folder=folder.name,
        name=folder.name,
        description=entry.command,
        events=row.events if row and not row.decides else (),
        intercepts=row.events if row and row.decides else (),
        timeout=entry.timeout,
        env=_find_variables(entry.command, home),
        options={"event": entry.event, "matcher": entry.matcher},
        command=words,
        oneshot=True,
        hermes=True,
        kind="shell",
        guards=guards,
    )
    guard = Guard(guards) if guards else None
    return Inspection(manifest=manifest, guard=guard, findings=tuple(findings), digest=shell_digest_of(entry, home))


def _inspect_outbound_webhook(folder: FoundHook, entry: OutboundEntry) -> Inspection:
    rows: list[HermesHook] = [HERMES_HOOKS[name] for name in entry.events if name in HERMES_HOOKS]
    manifest = Manifest(
        folder=folder.name,
        name=folder.name,
        description=entry.url,
        events=tuple(dict.fromkeys(event for row in rows for event in row.events)),
        timeout=entry.timeout,
        delivery="durable",
        options={"events": [row.name for row in rows], "matcher": entry.matcher},
        url=entry.url,
        secret_env=entry.secret_env,
        hermes=True,
        kind="outbound",
    )
    digest = hashlib.sha256(repr(entry).encode()).hexdigest()
    return Inspection(manifest=manifest, findings=tuple(_check_events(folder, entry.events)), digest=digest)


def _check_events(folder: FoundHook, names: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        if name not in HERMES_HOOKS:
            what = f"the hook {to_printable(name)} never fires here: {describe_unsupported(name)}"
            yield Finding(_place_of(folder), what, "nothing need be done", "warning")


def _place_of(folder: FoundHook) -> SourceLocation:
    return SourceLocation(f"{folder.source.path}: {folder.name}")


def _find_variables(command: str, home: Path) -> tuple[str, ...]:
    """The names of environment variables that its scripts read: nothing else declares them."""
    found: dict[str, None] = {}
    for path in _files_of(command, home):
        try:
            text = path.read_bytes()[:MAX_SCRIPT_BYTES]
        except OSError:
            continue
        found |= dict.fromkeys(name.decode() for name in _VARIABLE.findall(text))
    return tuple(found)

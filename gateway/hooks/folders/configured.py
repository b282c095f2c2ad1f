"""Hooks that are no folders: shell hooks and outbound webhooks, as Hermes's own `config.yaml` names them.

A shell hook runs only when somebody has said that it may, as it is now: its content hash is over its event, its command
and every file that the command names, so that an edited script asks again.
"""

import hashlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from gateway.config.hermes_hooks import HermesHooks, OutboundEntry, ShellEntry
from gateway.hooks.folders.discovery import Folder, Source
from gateway.hooks.folders.manifest import Guard, Manifest
from gateway.hooks.folders.study import Study
from gateway.hooks.wires.process.plugin.names import TABLE, Row, why_never
from gateway.yaml_source import Finding, SourceLocation
from gateway.yaml_source.tree import to_printable

KINDS = frozenset({"shell", "outbound"})
READ = 4_000_000
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib")

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_VARIABLE = re.compile(rb"(?:\$\{?|environ(?:\.get\(|\[)|getenv\()[\"']?([A-Z][A-Z0-9_]{1,199})")

Entry = ShellEntry | OutboundEntry


def entries_in(source: Source) -> dict[str, Entry]:
    """By the names under which they are listed."""
    hermes = source.hermes.read() if source.hermes else HermesHooks()
    found: dict[str, Entry] = {}
    for entry in hermes.shell if source.kind == "shell" else hermes.outbound:
        name = wanted = _ODD.sub("-", _name_of(entry))[:80].strip("-.")
        number = 1
        while name in found:
            number += 1
            name = f"{wanted}-{number}"
        found[name] = entry
    return found


def configured_in(source: Source) -> Iterator[Folder]:
    return (Folder(name, source.path, source) for name in entries_in(source))


def find_configured(source: Source, name: str) -> Folder | None:
    return Folder(name, source.path, source) if name in entries_in(source) else None


def study_configured(folder: Folder) -> Study:
    entry = entries_in(folder.source).get(folder.name)
    if entry is None:
        raise FileNotFoundError(f"{folder.name} is not in {folder.source.path} any more")
    if isinstance(entry, OutboundEntry):
        return _outbound(folder, entry)
    return _shell(folder, entry)


def digest_of(entry: ShellEntry, home: Path) -> str:
    """Of all that decides what runs."""
    total = hashlib.sha256(f"{entry.event}\0{entry.command}\0{entry.matcher}".encode())
    for path in _files_of(entry.command, home):
        total.update(f"\0{path}\0".encode())
        try:
            with path.open("rb") as file:
                total.update(file.read(READ))
        except OSError:
            total.update(b"(cannot be read)")
    return total.hexdigest()


def words_of(command: str) -> tuple[str, ...]:
    """As Hermes splits it: no shell looks at it, and `~` is the home of the user."""
    return tuple(str(Path(word).expanduser()) if word.startswith("~") else word for word in shlex.split(command))


def _name_of(entry: Entry) -> str:
    if isinstance(entry, OutboundEntry):
        return f"webhook-{entry.url.partition('://')[2].partition('?')[0]}"
    words = entry.command.split()
    script = next((word for word in reversed(words) if "/" in word or "." in word), words[0])
    return f"shell-{entry.event}-{Path(script).stem}"


def _files_of(command: str, home: Path) -> list[Path]:
    """What the user wrote, as far as it is named: programs of the system are not asked about."""
    try:
        words = words_of(command)
    except ValueError:
        return []
    paths = [home / word for word in words if "\0" not in word]
    return [path for path in paths if _is_file(path) and not str(path).startswith(SYSTEM)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word that is too long for a name, for instance
        return False


def _shell(folder: Folder, entry: ShellEntry) -> Study:
    findings = list(_event_findings(folder, (entry.event,)))
    try:
        words = words_of(entry.command)
        re.compile(entry.matcher)
    except (ValueError, re.error) as error:
        what = f"`{to_printable(entry.command)}` cannot be run at {entry.event}: {error}"
        findings.append(Finding(_place(folder), what, "correct it in Hermes's config.yaml"))
        return Study(findings=tuple(findings), digest=digest_of(entry, folder.source.path.parent))
    row = TABLE.get(entry.event)
    guards = row.events if row and row.guards and entry.fail_closed else ()
    home = folder.source.path.parent
    manifest = Manifest(
        folder=folder.name,
        name=folder.name,
        description=entry.command,
        events=row.events if row and not row.decides else (),
        intercepts=row.events if row and row.decides else (),
        timeout=entry.timeout,
        env=_variables(entry.command, home),
        options={"event": entry.event, "matcher": entry.matcher},
        command=words,
        oneshot=True,
        hermes=True,
        kind="shell",
        guards=guards,
    )
    guard = Guard(guards) if guards else None
    return Study(manifest=manifest, guard=guard, findings=tuple(findings), digest=digest_of(entry, home))


def _outbound(folder: Folder, entry: OutboundEntry) -> Study:
    rows: list[Row] = [TABLE[name] for name in entry.events if name in TABLE]
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
    return Study(manifest=manifest, findings=tuple(_event_findings(folder, entry.events)), digest=digest)


def _event_findings(folder: Folder, names: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        if name not in TABLE:
            what = f"the hook {to_printable(name)} never fires here: {why_never(name)}"
            yield Finding(_place(folder), what, "nothing need be done", "warning")


def _place(folder: Folder) -> SourceLocation:
    return SourceLocation(f"{folder.source.path}: {folder.name}")


def _variables(command: str, home: Path) -> tuple[str, ...]:
    """The names of environment variables that its scripts read: nothing else declares them."""
    found: dict[str, None] = {}
    for path in _files_of(command, home):
        try:
            text = path.read_bytes()[:READ]
        except OSError:
            continue
        found |= dict.fromkeys(name.decode() for name in _VARIABLE.findall(text))
    return tuple(found)

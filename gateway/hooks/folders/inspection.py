"""What the contents of a folder say, whoever asks: its manifest, its code's hash, what is wrong with either.

It depends on the files alone, so it is kept in an index and used again at the next start while `stat` says of every
file what it said then: with a thousand hooks that is most of the time that a start would take. A file that was changed
within two seconds of its reading is read again, since its time could not tell two edits apart.

The first time, a hook that will not start at once is only surveyed, which takes its manifest; the rest follows later.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from gateway.hermes.plugin_manifest import PLUGIN_MANIFEST_FILES, guard_of, infer_plugin_manifest, read_plugin_manifest
from gateway.hooks.folders.code import check_code, find_program_files, infer_hermes_manifest, read_code
from gateway.hooks.folders.manifest import MANIFEST_FILE, Guard, Manifest
from gateway.hooks.folders.manifest_reader import read_manifest
from gateway.hooks.folders.sources import CodeFile, FoundHook, Source, find_hook_folder, label_of
from gateway.hooks.folders.switches import write_atomically
from gateway.yaml_source import Finding, SourceLocation

INDEX_FILE = "index.json"
INDEX_VERSION = 1
SETTLE_TIME = 2_000_000_000  # ns


class Inspection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`digest` is empty as long as only the manifest was read."""

    manifest: Manifest | None = None
    guard: Guard | None = None
    findings: tuple[Finding, ...] = ()
    digest: str = ""


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A study, and what `stat` said of the files that it was made from: those of the code, and those of the command."""

    files: tuple[CodeFile, ...]
    programs: tuple[CodeFile, ...]
    at: int
    study: Inspection


class InspectionIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The index as a file."""

    v: int
    entries: dict[str, IndexEntry]


def inspect_manifest(folder: FoundHook) -> Inspection:
    """What the manifest says."""
    reading = read_plugin_manifest(folder.path) if folder.source.kind == "plugin" else read_manifest(folder.path)
    return Inspection(manifest=reading.manifest, guard=reading.guard, findings=reading.findings)


def inspect_folder(folder: FoundHook) -> Inspection:
    """What all of the folder says. OSError when a part of it goes meanwhile."""
    surveyed = inspect_manifest(folder)
    manifest = surveyed.manifest
    code = read_code(folder, manifest.command if manifest else ())
    if manifest is None:
        return msgspec.structs.replace(surveyed, digest=code.digest)
    guard = surveyed.guard
    if manifest.kind == "plugin":
        manifest = infer_plugin_manifest(manifest, code.files)
        guard = guard_of(manifest)
    elif manifest.hermes:
        manifest = infer_hermes_manifest(manifest, code.files)
    findings = (*surveyed.findings, *check_code(folder, manifest, code))
    return Inspection(manifest=manifest, guard=guard, digest=code.digest, findings=findings)


def check_folder(path: Path) -> list[Finding]:
    """All that is wrong or odd with one folder, told without running anything of it: `hooks check`."""
    path = path.absolute()
    is_plugin = any((path / name).exists() for name in PLUGIN_MANIFEST_FILES) and not (path / MANIFEST_FILE).exists()
    folder = find_hook_folder(Source(path.parent, "here", kind="plugin" if is_plugin else "hook"), path.name)
    if folder is None:
        what = "is no hook's folder" if path.is_dir() else "is no folder"
        return [Finding(SourceLocation(label_of(path.name)), what, f"name a folder with a {MANIFEST_FILE} in it")]
    try:
        return [*folder.findings, *inspect_folder(folder).findings]
    except OSError as error:
        return [Finding(SourceLocation(label_of(path.name)), f"cannot be read: {error.strerror}", "make it readable")]


class InspectionCache:
    """The studies of this run and of those before it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / INDEX_FILE
        self._known = _read_index(self._path)
        self._used: dict[str, IndexEntry] = {}
        self._is_changed = False

    def known(self, folder: FoundHook) -> Inspection | None:
        """The study of the folder as it is now, if one was kept."""
        entry = self._known.get(str(folder.path))
        if entry is None or entry.files != folder.files or not _is_settled(entry):
            return None
        programs = tuple(file.name for file in entry.programs)
        if programs and entry.programs != _stat_files(folder.path, programs):
            return None
        self._used[str(folder.path)] = entry
        return entry.study

    def of(self, folder: FoundHook) -> Inspection:
        """OSError when the folder goes meanwhile."""
        if found := self.known(folder):
            return found
        at = time.time_ns()
        made = inspect_folder(folder)
        words = find_program_files(folder.path, made.manifest.command) if made.manifest else []
        entry = IndexEntry(files=folder.files, programs=_stat_files(folder.path, words), at=at, study=made)
        self._known[str(folder.path)] = self._used[str(folder.path)] = entry
        self._is_changed = True
        return made

    def save(self) -> None:
        """Keep what this run has used."""
        if self._is_changed or len(self._used) != len(self._known):
            kept = InspectionIndex(v=INDEX_VERSION, entries=self._used)
            write_atomically(self._path, msgspec.json.encode(kept))
            self._known, self._is_changed = dict(self._used), False


def _is_settled(entry: IndexEntry) -> bool:
    newest = max((file.changed for file in (*entry.files, *entry.programs)), default=0)
    return newest + SETTLE_TIME < entry.at


def _stat_files(folder: Path, names: Iterable[str]) -> tuple[CodeFile, ...]:
    found = []
    for name in names:
        try:
            stat = os.stat(folder / name)  # noqa: PTH116 - as cheap as it can be: it is asked for every hook
        except OSError:
            continue
        found.append(CodeFile(name, stat.st_size, stat.st_ctime_ns, stat.st_ino))
    return tuple(found)


def _read_index(path: Path) -> dict[str, IndexEntry]:
    """Nothing is lost with an index that cannot be read: all is read anew."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=InspectionIndex)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return kept.entries if kept.v == INDEX_VERSION else {}

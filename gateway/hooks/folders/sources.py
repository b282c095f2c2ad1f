"""Which folders are hooks: found by name and by stat alone, never by running anything.

A folder counts as its user's own word only when nobody else can have written it: it and its code belong to the user
of this process (or to root), nothing of it is writable by everybody, and no file of its code leads out of it.
"""

import os
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.hermes.config import HermesConfig
from gateway.hooks.folders.manifest import HANDLER_FILE, MANIFEST_FILE, HookKind
from gateway.yaml_source import Finding, SourceLocation
from gateway.yaml_source.tree import to_printable

MAX_NAME = 100
MAX_FILES = 500
MAX_DEPTH = 4
_MARKER_FILES = {
    "hook": frozenset({MANIFEST_FILE, HANDLER_FILE}),
    "plugin": frozenset({"plugin.yaml", "plugin.yml", "__init__.py"}),
}
_GROUP_WRITABLE = "its group may write to it"
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class Source:
    """A place where hook folders lie; `origin` is its name for people.

    `is_opt_in`: its hooks run only when the configuration or a command switches them on. `is_local`: the operator of
    this machine wrote what is in it, so that its URLs may lead to this machine too. `hermes`: where
    Hermes's own configuration has a say in it. `conversations`: its hooks hear these sessions alone.
    """

    path: Path
    origin: str
    is_opt_in: bool = False
    is_local: bool = True
    kind: HookKind = "hook"
    hermes: HermesConfig | None = None
    conversations: frozenset[str] | None = None

    @property
    def meant(self) -> frozenset[str]:
        """A folder with one of these files is meant as a hook of this kind."""
        return _MARKER_FILES.get(self.kind, frozenset())


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file of a hook's code: its path inside the folder, and what `stat` says of it."""

    name: str
    size: int
    changed: int  # ns; the time of the last change of content or rights, which nobody can set back
    inode: int


@dataclass(frozen=True, slots=True)
class FoundHook:
    """A folder that is meant as a hook; with an error among the findings nothing of it may be used."""

    name: str
    path: Path
    source: Source
    files: tuple[CodeFile, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def list_hook_folders(source: Source) -> Iterator[FoundHook]:
    """The hook folders of one source in the order of their names; nothing where the source does not exist."""
    try:
        with os.scandir(source.path) as entries:
            found = sorted((entry.name, entry.is_symlink()) for entry in entries)
        own = tuple(_check_permissions(str(source.path), source.path, source.path.stat()))
    except OSError:
        return
    for name, is_link in found:
        if not is_ignored_name(name) and (folder := _read_folder(source, name, is_link, own)):
            yield folder


def is_ignored_name(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith((".bak", "~"))


def label_of(name: str) -> str:
    """A folder's name, fit for one line: letters of every script stay, what is not printable is escaped."""
    return to_printable(name if name.isprintable() else ascii(name)[1:-1], MAX_NAME)


def find_hook_folder(source: Source, name: str) -> FoundHook | None:
    """The folder as far as `stat` shows it; None where it is none, or nothing in it is meant as a hook."""
    if is_ignored_name(name):
        return None
    try:
        own = tuple(_check_permissions(str(source.path), source.path, source.path.stat()))
        is_link = (source.path / name).is_symlink()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return None
    return _read_folder(source, name, is_link, own)


def _read_folder(source: Source, name: str, is_link: bool, own: tuple[Finding, ...]) -> FoundHook | None:
    """`own`: the findings about the source itself. There may be a thousand folders: every call of the system counts."""
    path, label = source.path / name, label_of(name)
    findings: list[Finding] = []
    try:
        if is_link:
            findings += _check_owner(label, path, path.lstat())
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            return None
        files = tuple(_list_code_files(path, label, findings, source.meant))
    except FileNotFoundError:
        return None  # gone while we looked, or a link to nothing
    except OSError as error:
        remedy = "make it a readable folder of the user that runs the gateway"
        wrong = Finding(SourceLocation(label), f"cannot be read: {error.strerror}", remedy)
        return FoundHook(name, path, source, findings=(wrong,))
    is_meant = bool({file.name for file in files} & source.meant) or (
        source.kind == "hook" and bool(find_misnamed_manifest(path))
    )
    if not is_meant and not findings:
        return None
    findings += [*_check_permissions(label, path, found), *_check_name(name)]
    return FoundHook(name, path, source, files, (*own, *_merge_shared_findings(label, path, findings)))


def find_misnamed_manifest(path: Path) -> str:
    """What was probably meant as the manifest: `hook.yml` and the like."""
    try:
        with os.scandir(path) as entries:
            return next((entry.name for entry in entries if entry.name.lower() in ("hook.yaml", "hook.yml")), "")
    except OSError:
        return ""


def _check_name(name: str) -> Iterator[Finding]:
    if not name.isprintable():
        remedy = "rename the folder: letters, digits, - and _"
        yield Finding(SourceLocation(label_of(name)), "the folder's name has characters that cannot be shown", remedy)
    if len(name) > MAX_NAME:
        remedy = f"rename it, to at most {MAX_NAME} characters"
        yield Finding(SourceLocation(label_of(name)), "the folder's name is too long", remedy)


def _list_code_files(path: Path, label: str, findings: list[Finding], meant: frozenset[str]) -> Iterator[CodeFile]:
    """The manifest and every *.py below the folder, in the order of their names."""
    count = 0
    waiting = [("", 0)]
    while waiting:
        below, depth = waiting.pop()
        with os.scandir(path / below if below else path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{below}{entry.name}"
            if name in meant or entry.name.endswith(".py"):
                if (file := _stat_code_file(path, label, name, entry, findings, name in meant)) is not None:
                    count += 1
                    yield file
            elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False) and not _is_skipped_folder(entry.name):
                waiting.append((f"{name}/", depth + 1))
        if count > MAX_FILES:
            what = f"more than {MAX_FILES} Python files"
            findings.append(Finding(SourceLocation(label), what, "install what is no code of this hook elsewhere"))
            return


def _is_skipped_folder(name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED_FOLDERS


def _stat_code_file(
    path: Path, label: str, name: str, entry: os.DirEntry[str], findings: list[Finding], is_meant: bool
) -> CodeFile | None:
    found = entry.stat(follow_symlinks=False)
    place = f"{label}/{to_printable(name)}"
    if stat.S_ISLNK(found.st_mode):
        findings += _check_owner(place, path / name, found)
        if not is_inside_folder(path, name):
            remedy = "put the file itself into the folder"
            findings.append(
                Finding(SourceLocation(place), "is a link that leads out of the folder, or to nothing", remedy)
            )
            return None
        found = entry.stat()
    if not stat.S_ISREG(found.st_mode):
        if is_meant:
            findings.append(Finding(SourceLocation(place), "is no file", "put a readable file in its place"))
        return None
    findings += _check_permissions(place, path / name, found)
    return CodeFile(name, found.st_size, found.st_ctime_ns, found.st_ino)


def is_inside_folder(folder: Path, name: str) -> bool:
    """Whether this path, all links followed, ends at something inside the folder."""
    try:
        return (folder / name).resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links; ValueError: a NUL in the name
        return False


def _check_permissions(label: str, path: Path, found: os.stat_result) -> Iterator[Finding]:
    yield from _check_owner(label, path, found)
    if found.st_mode & stat.S_IWOTH:
        yield Finding(SourceLocation(label), "everybody may write to it", f"run: chmod o-w {quote_path(path)}")
    elif found.st_mode & stat.S_IWGRP:
        yield Finding(SourceLocation(label), _GROUP_WRITABLE, f"run: chmod g-w {quote_path(path)}", "warning")


def _check_owner(label: str, path: Path, found: os.stat_result) -> Iterator[Finding]:
    if found.st_uid not in (os.geteuid(), 0):
        what = f"it belongs to another user (uid {found.st_uid})"
        yield Finding(
            SourceLocation(label), what, f"run: chown {os.geteuid()} {quote_path(path)}, if you trust what is in it"
        )


def _merge_shared_findings(label: str, path: Path, findings: list[Finding]) -> Iterator[Finding]:
    """Where people share their files (umask 002), all of a folder is its group's: one warning says so."""
    yield from (finding for finding in findings if finding.what != _GROUP_WRITABLE)
    if any(finding.what == _GROUP_WRITABLE for finding in findings):
        yield Finding(SourceLocation(label), _GROUP_WRITABLE, f"run: chmod -R g-w {quote_path(path)}", "warning")


def quote_path(path: Path) -> str:
    """As a shell wants it, wherever the person stands."""
    return shlex.quote(to_printable(str(path), 4096))

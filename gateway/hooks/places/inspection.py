"""The contents of a hook: the hash of its code, the faults in the code, and the index that keeps both.

The hash is over contents, never over times: two edits within one second are two versions. The gateway compiles code
only to check the code, which runs nowhere but in the hook's own process.

The findings depend on the files alone. So the index keeps the findings, and the next start uses them again if `stat`
returns the same for every file: reading a thousand hooks would take most of the start. A file that changed within two
seconds before its reading is read again, since its time cannot tell two edits apart.
"""

import ast
import hashlib
import os
import shlex
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gateway.files.folders import read_plain_file
from gateway.hooks.manifests.manifest import HANDLER_FILE, Guard, Manifest, label_of
from gateway.hooks.manifests.manifest_keys import WrittenFor
from gateway.hooks.places.dialect import OURS
from gateway.hooks.places.handler_inspection import FunctionNode, check_effects
from gateway.hooks.places.sources import CodeFile, HookVersion, find_dialect
from gateway.hooks.places.switches import read_json, write_atomically
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

# Compiling holds the interpreter: some 0.2 ms a kilobyte. The hook's own process checks longer files.
MAX_CHECKED_BYTES = 64_000
MAX_CODE_BYTES = 4_000_000
INDEX_FILE = "index.json"
INDEX_VERSION = 16
SETTLE_TIME = 2_000_000_000  # ns
HANDLE_ARGUMENTS = 2  # handle(event_type, context)
# Code that uses one of these may make a `handle` that this module cannot see.
_DYNAMIC_NAMES = frozenset({"exec", "globals", "setattr", "vars", "__getattr__", "__dict__"})


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The contents of one hook at the time `at`, with the `stat` of its code files and of its command's files."""

    files: tuple[CodeFile, ...]
    programs: tuple[CodeFile, ...] = ()
    at: int
    manifest: Manifest | None = None
    guard: Guard | None = None  # of an unreadable manifest
    written_for: WrittenFor | None = None  # as the configuration had it
    findings: tuple[Finding, ...] = ()
    digest: str
    dialect: str = OURS.name
    owner_reason: str = ""


class InspectionIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The index as a file; its entries have the paths of the folders and the names of the hooks as keys."""

    v: int
    entries: dict[str, IndexEntry]


class InspectionCache:
    """The contents of hooks that were read in this run and in earlier runs."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / INDEX_FILE
        kept = read_json(self._path, InspectionIndex, InspectionIndex(v=INDEX_VERSION, entries={}))
        self._known = kept.entries if kept.v == INDEX_VERSION else {}
        self.is_of_before = bool(kept.entries and not self._known)  # an earlier version has worked with these hooks
        self.is_new = not self._known  # this version has read no hook here
        self._used: dict[str, IndexEntry] = {}
        self._is_changed = False

    def get(self, version: HookVersion) -> HookVersion | None:
        """Return the version with its contents from the index; None if the index has no current contents."""
        entry = self._known.get(_key_of(version))
        if entry is None or not version.files or entry.files != version.files or not _is_settled(entry):
            return None
        programs = tuple(file.name for file in entry.programs)
        if entry.written_for != version.written_for:
            return None
        if programs and entry.programs != _stat_files(version.path, programs):
            return None
        self._used[_key_of(version)] = entry
        findings = (*version.findings, *entry.findings)
        return replace(
            version,
            manifest=entry.manifest,
            denied=entry.guard,
            findings=findings,
            digest=entry.digest,
            dialect=find_dialect(version, entry.dialect),
            owner_reason=entry.owner_reason,
        )

    def inspect(self, version: HookVersion) -> HookVersion:
        """Return the version with its contents. Raises OSError if a file is removed meanwhile."""
        if version.state == "refused":
            return version
        if found := self.get(version):
            return found
        at = time.time_ns()
        made = version.source.inspect(version)
        if version.files:  # otherwise the hook is not a folder, and a change would go unnoticed
            words = find_program_files(version.path, made.manifest.command) if made.manifest else []
            self._known[_key_of(version)] = self._used[_key_of(version)] = IndexEntry(
                files=version.files,
                programs=_stat_files(version.path, words),
                at=at,
                manifest=made.manifest,
                guard=made.denied,
                written_for=version.written_for,
                findings=made.findings[len(version.findings) :],
                digest=made.digest,
                dialect=made.dialect.name,
                owner_reason=made.owner_reason,
            )
            self._is_changed = True
        return made

    def save(self) -> None:
        """Save the entries that this run has used."""
        if self._is_changed or len(self._used) != len(self._known):
            kept = InspectionIndex(v=INDEX_VERSION, entries=self._used)
            write_atomically(self._path, msgspec.json.encode(kept))
            self._known, self._is_changed = dict(self._used), False


def _key_of(version: HookVersion) -> str:
    """Return the entry's key, which has the hook's name because a package may hold several plugins."""
    return f"{version.path}:{version.name}"


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


class HookCode(msgspec.Struct, frozen=True):
    """The contents of one version of a hook."""

    digest: str
    files: Mapping[str, bytes]


def read_code(version: HookVersion, command: Iterable[str] = ()) -> HookCode:
    """Read every file that counts as this hook's code. Raises OSError if a file is removed meanwhile."""
    names = dict.fromkeys(file.name for file in version.files)
    names.update(dict.fromkeys(find_program_files(version.path, command)))
    total = hashlib.sha256()
    files: dict[str, bytes] = {}
    for name in sorted(names):
        data = files[name] = read_plain_file(version.path / name, MAX_CODE_BYTES)
        total.update(b"%d %s %d\n" % (len(name), name.encode("utf-8", "surrogateescape"), len(data)))
        total.update(data)
    return HookCode(total.hexdigest(), files)


def find_program_files(folder: Path, command: Iterable[str]) -> list[str]:
    """Find the words of a command that are files of the folder: the program, or a script for an interpreter."""
    words = [word.removeprefix("./") for word in command if word and "\0" not in word and not word.startswith("-")]
    return [word for word in words if (folder / word).is_file() and is_inside_folder(folder, word)]


def check_code(version: HookVersion, manifest: Manifest, code: HookCode) -> list[Finding]:
    """Find the faults that the code shows without being run."""
    if manifest.wire == "command":
        return _check_program(version, manifest.command[0])
    if manifest.wire == "url":
        return []
    if manifest.entry not in code.files:
        remedy = f"write {manifest.entry}" + (
            ", or name a `command` or a `url`" if manifest.entry == HANDLER_FILE else ""
        )
        return [Finding(SourceLocation(label_of(version.path.name)), f"has no {manifest.entry}", remedy)]
    wrong = [
        finding
        for name, source in code.files.items()
        if name.endswith(".py")
        and len(source) <= MAX_CHECKED_BYTES
        and (finding := _check_syntax(version.path.name, name, source))
    ]
    entry = code.files[manifest.entry]
    if not wrong and manifest.entry == HANDLER_FILE and len(entry) <= MAX_CHECKED_BYTES:
        told = manifest if version.dialect.is_own else None
        wrong += check_handler(f"{label_of(version.path.name)}/{manifest.entry}", entry, told)
    return wrong


def _check_program(version: HookVersion, program: str) -> list[Finding]:
    if "/" not in program:
        return []
    place = SourceLocation(f"{label_of(version.path.name)}/{to_printable(program.removeprefix('./'))}")
    if program.startswith("/"):
        is_wrong = os.path.isfile(program) and not os.access(program, os.X_OK)  # noqa: PTH113 - it may not be a path
        return [Finding(place, "is not executable", f"run: chmod +x {quote_path(Path(program))}")] if is_wrong else []
    if not is_inside_folder(version.path, program):
        return [Finding(place, "is not in the folder", "put the program into the folder, or write its full path")]
    if not (version.path / program).stat().st_mode & 0o111:
        return [Finding(place, "is not executable", f"run: chmod +x {quote_path(version.path / program)}")]
    return []


def _check_syntax(folder: str, name: str, source: bytes) -> Finding | None:
    place = f"{label_of(folder)}/{to_printable(name)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, place, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = SourceLocation(place, error.lineno or 1, error.offset or 1)
        return Finding(where, to_printable(error.msg or "invalid syntax", 200), "correct this line")
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Finding(
            SourceLocation(place), f"cannot be compiled: {type(error).__name__}: {error}", "make it plain Python"
        )
    return None


def is_inside_folder(folder: Path, name: str) -> bool:
    """Tell whether this path, with all links followed, ends inside the folder."""
    try:
        return (folder / name).resolve(strict=True).is_relative_to(folder.resolve(strict=True))
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle of links; ValueError: a NUL in the name
        return False


def quote_path(path: Path | str) -> str:
    """Quote a path for a shell."""
    return shlex.quote(to_printable(str(path), 4096))


def check_handler(place: str, source: bytes, manifest: Manifest | None = None) -> Iterator[Finding]:
    """Check the `handle` of a source that compiles; with a manifest, find its actions without effect, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except RecursionError:  # the source is nested too deep to be checked
        return
    handles = [node for node in tree.body if isinstance(node, FunctionNode) and node.name == "handle"]
    if handles and (wrong := _check_arguments(handles[-1])):
        where = SourceLocation(place, handles[-1].lineno, handles[-1].col_offset + 1)
        yield Finding(where, wrong, "write: def handle(event_type, context)")
    if not handles and not _names_used(tree) & {"handle", "on", "*", *_DYNAMIC_NAMES}:
        what = "the hook has no handler to call"
        yield Finding(
            SourceLocation(place), what, "write def handle(event_type, context), or mark functions with @on(...)"
        )
    if manifest is not None:
        yield from check_effects(place, tree, manifest)


def _check_arguments(function: FunctionNode) -> str:
    """Describe what is wrong with the arguments of `handle`; "" if a decorator may change the arguments."""
    given = function.args
    if function.decorator_list:
        return ""
    places = len(given.posonlyargs) + len(given.args)
    wanted = places - len(given.defaults)
    missing = [name.arg for name, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    if missing or wanted > HANDLE_ARGUMENTS or (places < HANDLE_ARGUMENTS and not given.vararg):
        taken = _count_arguments(places + len(missing))
        return f"`handle` takes {taken}, and is called with an event's name and its context"
    return ""


def _count_arguments(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"


def _names_used(tree: ast.Module) -> set[str]:
    """Return all names that the module uses or defines."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                found.add(node.id)
            case ast.Attribute():
                found.add(node.attr)
            case ast.alias():
                found.add(node.asname or node.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
    return found

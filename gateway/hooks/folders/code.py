"""A hook's code as text: its content hash, whether it compiles, and what a handler written for Hermes shows of itself.

The hash is over contents, never over times: two edits within one second are two versions. Compiling here only checks;
the code runs nowhere but in the hook's own process, which reads the file itself.
"""

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gateway.hermes.unsupported_imports import find_unsupported_imports
from gateway.hooks.folders.handler_check import check_handler
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.sources import FoundHook, is_inside_folder, label_of, quote_path
from gateway.yaml_source import Finding, SourceLocation
from gateway.yaml_source.tree import to_printable

# Compiling holds the interpreter: some 0.2 ms a kilobyte. What is longer is left to the hook's own process.
MAX_CHECKED_BYTES = 64_000
MAX_CODE_BYTES = 4_000_000

_LITERAL_NAME = re.compile(rb"""["']([A-Z][A-Z0-9_]{1,199})["']""")
_READS_ENVIRON = re.compile(rb"\benviron\b|\bgetenv\b")
# What of Hermes's modules acts, and the right that it takes here.
_RIGHTS_BY_IMPORT = {
    "send": re.compile(rb"\bsend_message_tool\b"),
    "submit": re.compile(rb"\bAIAgent\b"),
    "emit": re.compile(rb"\bHookRegistry\b"),
}
_DECIDES = re.compile(rb"""["']decision["']""")


@dataclass(frozen=True, slots=True)
class HookCode:
    """The contents of one version of a hook."""

    digest: str
    files: Mapping[str, bytes]


def read_code(folder: FoundHook, command: Iterable[str] = ()) -> HookCode:
    """Every file that counts as this hook's code; OSError when one is gone meanwhile."""
    names = dict.fromkeys(file.name for file in folder.files)
    names.update(dict.fromkeys(find_program_files(folder.path, command)))
    total = hashlib.sha256()
    files: dict[str, bytes] = {}
    for name in sorted(names):
        with (folder.path / name).open("rb") as file:
            data = files[name] = file.read(MAX_CODE_BYTES)
        total.update(b"%d %s %d\n" % (len(name), name.encode("utf-8", "surrogateescape"), len(data)))
        total.update(data)
    return HookCode(total.hexdigest(), files)


def find_program_files(folder: Path, command: Iterable[str]) -> list[str]:
    """Those words of a command that are files of the folder: the program itself, or what an interpreter is given."""
    words = [word.removeprefix("./") for word in command if word and "\0" not in word and not word.startswith("-")]
    return [word for word in words if (folder / word).is_file() and is_inside_folder(folder, word)]


def check_code(folder: FoundHook, manifest: Manifest, code: HookCode) -> list[Finding]:
    """What is wrong with the code as far as it can be seen without running it."""
    if manifest.wire == "command":
        return _check_program(folder, manifest.command[0])
    if manifest.wire == "url":
        return []
    if manifest.entry not in code.files:
        remedy = f"write {manifest.entry}" + (", or name a `command` or a `url`" if manifest.kind == "hook" else "")
        return [Finding(SourceLocation(label_of(folder.name)), f"has no {manifest.entry}", remedy)]
    wrong = [
        finding
        for name, source in code.files.items()
        if name.endswith(".py")
        and len(source) <= MAX_CHECKED_BYTES
        and (finding := _check_syntax(folder.name, name, source))
    ]
    entry = code.files[manifest.entry]
    if not wrong and manifest.kind == "hook" and len(entry) <= MAX_CHECKED_BYTES:
        wrong += check_handler(f"{label_of(folder.name)}/{manifest.entry}", entry)
    return wrong + [reach.finding for reach in find_unsupported_imports(folder.name, code.files) if manifest.hermes]


def _check_program(folder: FoundHook, program: str) -> list[Finding]:
    if "/" not in program or program.startswith("/"):
        return []
    place = SourceLocation(f"{label_of(folder.name)}/{to_printable(program.removeprefix('./'))}")
    if not is_inside_folder(folder.path, program):
        return [Finding(place, "is not in the folder", "put the program into the folder, or write its full path")]
    if not (folder.path / program).stat().st_mode & 0o111:
        return [Finding(place, "is not executable", f"run: chmod +x {quote_path(folder.path / program)}")]
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


def infer_hermes_manifest(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """The manifest of a folder written for Hermes, with what its source shows: there is no key there to declare it."""
    source = b"\n".join(text for name, text in files.items() if name.endswith(".py"))
    env = ()
    if _READS_ENVIRON.search(source):
        env = tuple(dict.fromkeys(name.decode() for name in _LITERAL_NAME.findall(source)))
    uses = tuple(verb for verb, words in _RIGHTS_BY_IMPORT.items() if words.search(source))
    decides = _DECIDES.search(source) is not None
    commands = tuple(name for name in manifest.events if decides and name.partition(":")[0] == "command")
    return msgspec.structs.replace(
        manifest,
        env=env,
        uses=uses,
        found=(*env, *uses),
        events=tuple(name for name in manifest.events if name not in commands),
        intercepts=commands,
    )

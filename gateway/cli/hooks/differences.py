"""The difference between two folders of a hook or a skill, line by line and complete."""

import difflib
import hashlib
import io
import os
import re
import stat
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import HookError
from gateway.hooks.places.trusted_copy import read_whole_folder
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

MAX_WARNING = 500  # characters


@dataclass(frozen=True, slots=True)
class FileText:
    """The content of a file, and True if it is executable; for a link, its target."""

    data: bytes
    is_program: bool = False
    leads_to: str = ""

    @property
    def lines(self) -> list[str] | None:
        """The lines, which end only at a line feed, as for programs.

        Bytes that are not UTF-8s stay; None: it is not text.
        """
        if b"\0" in self.data:
            return None
        return self.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")

    def describe(self) -> str:
        """Describe a file that cannot be shown, so that a person can compare it."""
        return f"{format_count(len(self.data), 'byte')} with sha256 {hashlib.sha256(self.data).hexdigest()}"


def read_contents(folder: Path) -> dict[str, FileText]:
    """Read all files of a folder that its digest covers, by name; empty if it cannot be read."""
    try:
        whole = read_whole_folder(folder)
    except (HookError, OSError):
        return {}
    files = {name: FileText(data, bool(mode & stat.S_IXUSR)) for name, (mode, data) in whole.files.items()}
    return files | {
        name: FileText(b"a link to " + os.fsencode(there), leads_to=there) for name, there in whole.links.items()
    }


def describe_differences(before: Mapping[str, FileText], now: Mapping[str, FileText]) -> Iterator[str]:
    """Yield the differences file by file, as programmers read them; all are shown, with hidden code first."""
    yield from list_unreadable_code({name: there for name, there in now.items() if there != before.get(name)})
    for name in sorted({*before, *now}):
        then, there = before.get(name), now.get(name)
        if then != there:
            yield from (to_one_line(line, len(line)) for line in describe_difference(name, then, there))


def describe_difference(name: str, then: FileText | None, there: FileText | None) -> Iterator[str]:
    what = "is new" if then is None else "is gone" if there is None else "differs"
    old, new = ([] if one is None else one.lines for one in (then, there))
    if old is None or new is None:
        told = ", now ".join(one.describe() for one in (then, there) if one)
        yield f"{name} is not text, {what}, and is not shown: {told}"
    else:
        yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
    if then and there and then.is_program != there.is_program:
        yield f"{name} {'is a program' if there.is_program else 'is not a program any more'}"
    elif old is not None and old == new:
        yield f"{name} {what} in how it ends"


def list_unreadable_code(files: Mapping[str, FileText]) -> Iterator[str]:
    """Report code that a person cannot see: Python reads it in another way than it is shown, or it is elsewhere.

    Names do not matter: a program may be started with any file, and a link may lead to it.
    """
    for name, file in sorted(files.items()):
        is_code = name.endswith(".py")
        if is_code and file.leads_to and not file.leads_to.endswith(".py"):
            yield to_one_line(f"! {name} is a link: what Python runs of it is {file.leads_to}", MAX_WARNING)
        elif why := describe_encoding(file.data) if is_code else describe_own_encoding(file.data):
            yield to_one_line(f"! {name} {why}: what Python runs of it is not what is shown", MAX_WARNING)


def describe_encoding(code: bytes) -> str:
    """Say how Python reads a file, if that is not as lines of text in UTF-8."""
    if b"\0" in code:
        return "holds NUL bytes"
    try:
        code.decode("utf-8")
        tokenize.detect_encoding(io.BytesIO(code).readline)
    except (SyntaxError, UnicodeDecodeError):
        return "is not UTF-8"
    has_hidden_lines = re.search(rb"\r(?!\n)", code)
    return describe_own_encoding(code) or ("has lines that end with \\r alone" if has_hidden_lines else "")


def describe_own_encoding(text: bytes) -> str:
    """Say the encoding that a file's own first lines declare, if it is not UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
    except SyntaxError:
        return ""
    return "" if encoding in ("utf-8", "utf-8-sig") else f"is in {encoding}"

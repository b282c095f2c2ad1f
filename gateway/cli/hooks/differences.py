"""What differs between two folders of a hook or a skill, line by line: nothing that differs is left out."""

import difflib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import HookError
from gateway.hooks.folders.trusted_copy import read_whole_folder
from gateway.logs.text import to_one_line


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file holds, and whether it is one to be started."""

    data: bytes
    is_program: bool = False

    @property
    def lines(self) -> list[str] | None:
        """As programs read them: a line feed alone ends one. Bytes that are no UTF-8 stay; None: it is no text."""
        if b"\0" in self.data:
            return None
        return self.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")


def read_contents(folder: Path) -> dict[str, FileText]:
    """All that is hashed of a folder, by its name there; nothing where it cannot be read."""
    try:
        whole = read_whole_folder(folder)
    except (HookError, OSError):
        return {}
    files = {name: FileText(data, bool(mode & stat.S_IXUSR)) for name, (mode, data) in whole.files.items()}
    return files | {name: FileText(b"a link to " + os.fsencode(there)) for name, there in whole.links.items()}


def describe_differences(before: Mapping[str, FileText], now: Mapping[str, FileText]) -> Iterator[str]:
    """The difference, file by file, as programmers read it; whatever differs is told of."""
    for name in sorted({*before, *now}):
        then, there = before.get(name), now.get(name)
        if then != there:
            yield from (to_one_line(line, len(line)) for line in describe_difference(name, then, there))


def describe_difference(name: str, then: FileText | None, there: FileText | None) -> Iterator[str]:
    what = "is new" if then is None else "is gone" if there is None else "differs"
    old, new = ([] if one is None else one.lines for one in (then, there))
    if old is None or new is None:
        yield f"{name} is no text, and {what}"
    else:
        yield from difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
    if then and there and then.is_program != there.is_program:
        yield f"{name} {'is a program' if there.is_program else 'is no program any more'}"
    elif old is not None and old == new:
        yield f"{name} {what} in how it ends"

"""`.env`, as `setup` changes it: lines are added or replace lines of the same name; all others stay.

Only the user can access the file, and it is complete at every moment. The setup reads only the names in other lines.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import ConfigError
from gateway.files.folders import write_file

FORBIDDEN_CHARACTERS = re.compile(r"""[\s'"\\#$`]|[^\x21-\x7e]""")


def check_value(value: str, pattern: str) -> str:
    """Return the fault of a value that is about to be written, or ""."""
    if re.fullmatch(pattern, value) is None:
        return "does not look like one"
    return "has characters that no such value has" if FORBIDDEN_CHARACTERS.search(value.replace(" ", "")) else ""


def find_fault(text: str, pattern: str, *, is_needed: bool, example: str = "") -> str:
    """Return the fault of an answer, with an example of a right one, or ""."""
    if not text:
        return "it is needed" if is_needed else ""
    looks = f"; a right one: {example}" if example else ""
    return f"what was given {wrong}{looks}" if (wrong := check_value(text, pattern)) else ""


def add_variables(path: Path, values: Mapping[str, str]) -> None:
    """Write the values to the file.

    Raises:
        ConfigError: it is a link, or no plain file; a person has to decide on it.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ConfigError(
            f"{path} is a link, or no file; nothing was written\nwrite there by hand: {', '.join(values)}"
        )
    before = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
    kept = "".join(line for line in before.splitlines(keepends=True) if name_of(line) not in values)
    ending = "" if kept.endswith("\n") or not kept else "\n"
    added = "".join(f"{name}={value.replace(' ', '')}\n" for name, value in values.items())
    write_file(path, f"{kept}{ending}{added}".encode("utf-8", "surrogateescape"))


def name_of(line: str) -> str:
    """Return the name of the variable that a line sets, or ""."""
    found = re.match(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=", line)
    return found[1] if found else ""

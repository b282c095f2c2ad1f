"""The files in a hook's folder that do not belong to the hook: files of editors, tests and version control.

The gateway does not hash, copy, install, publish or compare these files, and the hook does not change with them. So
tests, an editor and git may leave their files beside the code.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gateway.files.folders import read_plain_file

HISTORY = frozenset({".git", ".hg", ".svn"})
ENVIRONMENTS = frozenset({".venv", "venv", ".tox", ".nox"})
CACHES = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".benchmarks", ".coverage"}
)
EDITORS = frozenset({".idea", ".vscode", ".DS_Store"})
IGNORED = HISTORY | ENVIRONMENTS | CACHES | EDITORS
IGNORED_BEGINNINGS, IGNORED_ENDINGS = (".#",), ("~", ".swp", ".swo", ".swx")  # temporary files of editors
NODE_PACKAGES = "node_modules"
# Files that the gateway writes for hooks whose source names them.
KEPT_FILES = ("state.db", "sessions.json")
MAX_PACKAGE_FILE = 1 << 20  # bytes of a package.json


def find_kept_files(source: bytes) -> tuple[str, ...]:
    """Return the names from `KEPT_FILES` that this source contains."""
    return tuple(name for name in KEPT_FILES if re.search(rb"\b" + re.escape(name.encode()) + rb"\b", source))


def is_ignored_file(name: str) -> bool:
    """Tell whether a file or folder of this name does not belong to the hook, at any depth of its folder."""
    return name in IGNORED or name.startswith(IGNORED_BEGINNINGS) or name.endswith(IGNORED_ENDINGS)


def is_ignored_entry(folder: Path, name: str) -> bool:
    """Tell whether this entry of the folder does not belong to the hook.

    Packages of Node belong to the hook if the hook needs them to run.
    """
    return is_ignored_file(name) or (name == NODE_PACKAGES and not _needs_packages(folder))


def list_ignored(folder: str, names: Iterable[str]) -> list[str]:
    """List the names that are ignored, for `shutil.copytree`."""
    return [name for name in names if is_ignored_entry(Path(folder), name)]


def list_hook_files(
    folder: Path, is_ignored: Callable[[Path, str], bool] = is_ignored_entry
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield each file of the hook with its path in the folder, but no folders."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as found:
            for entry in sorted(found, key=lambda one: one.name):
                if is_ignored(folder / below, entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{below}{entry.name}/")
                else:
                    yield f"{below}{entry.name}", entry


def _needs_packages(folder: Path) -> bool:
    """Tell whether the folder's package.json names packages for running the hook, not only for building and testing."""
    try:
        said = json.loads(read_plain_file(folder / "package.json", MAX_PACKAGE_FILE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and bool(said.get("dependencies"))

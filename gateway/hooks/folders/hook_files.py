"""What in a hook's folder is the hook, and what lies there because somebody works on it: the one list of that.

What is left out is not hashed, copied, installed, published or shown as a difference, and a change of it is none of the
hook. So tests, an editor and git may leave their things beside the code.
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
IGNORED_BEGINNINGS, IGNORED_ENDINGS = (".#",), ("~", ".swp", ".swo", ".swx")  # what editors write while one types
NODE_PACKAGES = "node_modules"
# What of the gateway is written into files for hooks whose source has these names.
KEPT_FILES = ("state.db", "sessions.json")
MAX_PACKAGE_FILE = 1 << 20  # bytes of a package.json


def find_kept_files(source: bytes) -> tuple[str, ...]:
    """Return those of `KEPT_FILES` that this source names."""
    return tuple(name for name in KEPT_FILES if re.search(rb"\b" + re.escape(name.encode()) + rb"\b", source))


def is_ignored_file(name: str) -> bool:
    """Whether a file or folder of this name is none of the hook, wherever in its folder it lies."""
    return name in IGNORED or name.startswith(IGNORED_BEGINNINGS) or name.endswith(IGNORED_ENDINGS)


def is_ignored_entry(folder: Path, name: str) -> bool:
    """The same of what lies just there: packages of Node are the hook's where it needs them to run."""
    return is_ignored_file(name) or (name == NODE_PACKAGES and not _needs_packages(folder))


def list_ignored(folder: str, names: Iterable[str]) -> list[str]:
    """Those of them, as `shutil.copytree` asks."""
    return [name for name in names if is_ignored_entry(Path(folder), name)]


def is_ignored_before(_folder: Path, name: str) -> bool:
    """What was left out while this list was shorter."""
    return name in ("__pycache__", ".git")


def list_hook_files(
    folder: Path, is_ignored: Callable[[Path, str], bool] = is_ignored_entry
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All in it that is the hook, and no folder, by its name from the folder on."""
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
    """Whether what lies in its node_modules is there for more than building and testing."""
    try:
        said = json.loads(read_plain_file(folder / "package.json", MAX_PACKAGE_FILE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and bool(said.get("dependencies"))

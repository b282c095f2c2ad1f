"""The files of a home that belong in a copy: all that cannot be made again. Its secrets only on request.

The home itself has files of ours and Hermes's: hooks, plugins, skills. Everything in our own folder is taken except the
names listed here, so that files of a later version are not forgotten.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gateway.config.home import OWN_FOLDER, Home
from gateway.errors import GatewayError

MANIFEST = "BACKUP.json"
WORK_PREFIX = ".work-"  # of folders in which an archive is made
JOURNAL = f"{OWN_FOLDER}/journal.db"
ENV = ".env"
SHARED = ("hooks", "plugins", "skills", "BOOT.md", "HEARTBEAT.md")
# In our own folder: the state of the running gateway, files that are made from others, and copies. What `config undo`
# puts back has the bytes of `.env`, and belongs to the paths of this home.
TRANSIENT = (
    *("logs", "voice", "folders", "backups", "restore", "replaced", "upgrade"),
    *("gateway.lock", "control.sock", "turn-marks", "config-undo.json"),
)
TRANSIENT_BEGINNINGS = (".", "journal.db", "search.db")
MADE_ANEW = "__pycache__"


class BackupError(GatewayError):
    """A copy of a home cannot be made, is damaged, or cannot be restored here."""


class HomeFile(msgspec.Struct, frozen=True):
    """A file of a home, by its path below it. `why_not`: the reason why it is left out."""

    name: str
    path: Path
    why_not: str = ""


def is_piece(name: str) -> bool:
    """Return True if this path, below a home, belongs in a copy."""
    first, _, below = name.partition("/")
    if first != OWN_FOLDER:
        return first in SHARED or name == ENV
    own = below.partition("/")[0]
    return name == JOURNAL or (bool(own) and own not in TRANSIENT and not own.startswith(TRANSIENT_BEGINNINGS))


def list_pieces(home: Home, *, with_env: bool = False) -> list[str]:
    """List the existing files and folders that belong in a copy, by the shortest sufficient path."""
    own = [f"{OWN_FOLDER}/{one.name}" for one in _list(home.own_folder)]
    known = [*SHARED, *([ENV] if with_env else []), *own]
    return sorted(name for name in known if is_piece(name) and os.path.lexists(home.root / name))


def list_files(home: Home, *, with_env: bool) -> Iterator[HomeFile]:
    """List all files of a copy except the journal, with those that are left out because they are not plain files."""
    for piece in list_pieces(home, with_env=with_env):
        if piece != JOURNAL:
            yield from _find_files(piece, home.root / piece)


def _find_files(name: str, path: Path) -> Iterator[HomeFile]:
    """Yield the files below a path without recursion: folders may be as deep as the disk allows."""
    pending = [(name, path)]
    while pending:
        name, path = pending.pop()
        try:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and path.name != MADE_ANEW:
                pending += [(f"{name}/{one.name}", one) for one in sorted(path.iterdir(), reverse=True)]
            elif stat.S_ISLNK(mode):
                yield HomeFile(name, path, f"a link to {path.readlink()}")
            elif stat.S_ISREG(mode):
                yield HomeFile(name, path)
        except FileNotFoundError:
            continue  # it has gone meanwhile
        except OSError as error:
            yield HomeFile(name, path, error.strerror or "it cannot be read")


def _list(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []

"""The folders in which agents write, as far as gateways share them: by names that are the same on each gateway."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gateway.files.folders import FOLDER, INSTRUCTIONS, RECEIVED_NAME, STEERING_FOLDERS

BASES = "folders"  # beside the folder of all files

IsLeftOut: TypeAlias = Callable[[Path], bool]
"""Return True if a file with this whole path is skipped."""


class SharedFolder(msgspec.Struct, frozen=True):
    """A shared folder; `name` is the same on each gateway, `root` is its local place, without links."""

    name: str
    root: Path
    is_left_out: IsLeftOut = lambda _path: False


FindFolders: TypeAlias = Callable[[Mapping[str, Any]], list[SharedFolder]]
"""Return the shared folders of the turn with these facts."""


class HomeFolders:
    """The folders of a gateway that shares none; `SharedFolders` are those that other gateways have too."""

    def __init__(self, find: FindFolders = lambda _facts: []) -> None:
        self.find = find
        self.left_out: dict[str, str] = {}  # by folder: the files that others lack, and why
        self.absent: dict[str, str] = {}  # by folder: the files that only others have, and why

    async def take(self, *folders: SharedFolder) -> None:
        """Take the changes by other gateways. Raises EngineError if the journal does not answer."""

    async def put(self, *folders: SharedFolder) -> None:
        """Share the local changes; those that fail are shared the next time, and reported."""

    async def sync_all(self) -> None:
        """Take and share all folders at the start. Raises EngineError if the journal does not answer."""

    async def list_names(self) -> list[str]:
        """List all folders with files, on any gateway."""
        return []

    async def forget(self, folder: str) -> None:
        """Forget a folder in the journal; the caller removes its files."""


def make_chat_folder(path: Path) -> SharedFolder:
    """Return the shared folder for an agent's files in a conversation; received files take another way."""
    return SharedFolder("/".join((FOLDER, *path.parts[-2:])), path.parent.resolve() / path.name, is_received)


def find_known_place(kept: Path, folder: str) -> Path:
    """Return the place of a folder's base, the state that all gateways last had."""
    return kept / f"{hashlib.sha256(folder.encode()).hexdigest()[:24]}.json"


def is_received(path: Path) -> bool:
    """Return True if the file was received, or is being received."""
    return bool(RECEIVED_NAME.fullmatch(path.name.removeprefix(".").removesuffix(".new"))) or is_steering(path)


def is_steering(path: Path) -> bool:
    """Return True if agents take instructions from it: each gateway's owner provides such files."""
    return path.name.lower() in INSTRUCTIONS or path.name.lower() in STEERING_FOLDERS

"""A file store in a local folder. A file that is already at its place is not stored a second time."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gateway.engine.interface import KeyedFile
from gateway.files.folders import is_key, open_new_file, open_received_file, put_in_place
from gateway.threads import run_in_thread


class FolderFiles:
    """Implement `FileStore`.

    This store never expires a file: the owner of the folder deletes old ones by their names.
    """

    is_shared = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, key: str, file: BinaryIO, ttl: float) -> None:  # noqa: ARG002 - nothing expires here
        await run_in_thread(_write, self._find_place(key), file)

    async def get(self, key: str, file: BinaryIO) -> KeyedFile | None:
        return await run_in_thread(_read, key, self._find_place(key), file)

    async def delete(self, key: str) -> None:
        await run_in_thread(lambda: self._find_place(key).unlink(missing_ok=True))

    async def list_cut_off(self, prefix: str) -> list[str]:  # noqa: ARG002 - a cut-off write leaves no parts
        return []

    async def list(self, prefix: str = "") -> list[KeyedFile]:
        return await run_in_thread(lambda: sorted(self._find_files(prefix), key=lambda one: one.key))

    def _find_place(self, key: str) -> Path:
        return self._folder / check_key(key)

    def _find_files(self, prefix: str) -> Iterator[KeyedFile]:
        pending = [self._find_place(prefix) if prefix else self._folder]
        while pending:
            place = pending.pop()
            key = "/".join(place.relative_to(self._folder).parts)
            with suppress(FileNotFoundError, NotADirectoryError):
                if (key and not is_key(key)) or place.is_symlink():
                    continue
                if place.is_dir():
                    pending += place.iterdir()
                elif key and not place.name.startswith("."):  # a dot marks a file that is still being written
                    yield describe_file(key, place.stat())


def check_key(key: str) -> str:
    """Return the key, or raise ValueError if it is not a valid key."""
    if not is_key(key):
        raise ValueError(f"{key!r} is no key of a file")
    return key


def describe_file(key: str, about: os.stat_result) -> KeyedFile:
    return KeyedFile(key, about.st_size, float(int(about.st_mtime)))


def _write(place: Path, file: BinaryIO) -> None:
    about = os.fstat(file.fileno())
    with suppress(FileNotFoundError):
        if os.path.samestat(place.lstat(), about):
            return
    with open_new_file(place) as new:
        shutil.copyfileobj(file, new)
        put_in_place(new, place)
    os.utime(place, (about.st_mtime, about.st_mtime))


def _read(key: str, place: Path, file: BinaryIO) -> KeyedFile | None:
    try:
        found = open_received_file(place)
    except OSError:
        return None
    with found:
        shutil.copyfileobj(found, file)
        return describe_file(key, os.fstat(found.fileno()))

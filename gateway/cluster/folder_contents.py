"""The plain files below a folder: list, place and remove them, without following links.

Links, pipes, sockets and devices are not plain files. Files that are too large, or too many, are described in
`left_out` and not listed. This module knows nothing else of the gateway.
"""

import errno
import hashlib
import io
import os
import shutil
import stat
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

from gateway.files.agent_folders import IsLeftOut
from gateway.files.folders import OPEN_FOLDER, OPEN_NEW, open_plain_file

MOST_FILES = 1_000
MOST_FOLDERS = 5_000  # folders that are searched
LARGEST_FILE = 20_000_000  # bytes
MOST_BYTES = 200_000_000
EXECUTABLE = 0o100
PIECE_BYTES = 1_000_000

FileMark: TypeAlias = tuple[int, ...]
"""Facts that show whether a file is unchanged."""


class FolderContents(msgspec.Struct):
    """Files by their paths below the folder, and descriptions of the files that were left out."""

    files: dict[str, os.stat_result] = msgspec.field(default_factory=dict)
    left_out: list[str] = msgspec.field(default_factory=list)


def list_contents(root: Path, is_left_out: IsLeftOut) -> FolderContents:
    """List the files, those nearest to the folder first, so that a limit leaves out the deepest files."""
    found, size, folders = FolderContents(), 0, 0
    pending = deque([root])
    while pending:
        folder = pending.popleft()
        folders += 1
        if folders > MOST_FOLDERS:
            found.left_out.append(f"the contents of {folder.relative_to(root)}: more than {MOST_FOLDERS:,} folders")
            break
        for entry in _list_entries(folder):
            path = Path(entry.path)
            name = path.relative_to(root).as_posix()
            with suppress(OSError):  # the file was removed in the meantime
                about = entry.stat(follow_symlinks=False)
                if is_left_out(path):
                    continue
                if stat.S_ISDIR(about.st_mode):
                    pending.append(path)
                elif stat.S_ISREG(about.st_mode):
                    size += about.st_size
                    if why := _find_fault(name, about.st_size, len(found.files), size):
                        size -= about.st_size
                        found.left_out.append(f"{name!a}: {why}")
                    else:
                        found.files[name] = about
    return found


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda one: one.name)
    return []


def _find_fault(name: str, size: int, count: int, together: int) -> str:
    if not name.isprintable():
        return "a name with unreadable characters"
    if size > LARGEST_FILE:
        return f"{size / 1e6:.0f} MB, where {LARGEST_FILE / 1e6:.0f} MB are the most"
    if count >= MOST_FILES:
        return f"more than {MOST_FILES:,} files"
    return f"more than {MOST_BYTES / 1e6:.0f} MB together" if together > MOST_BYTES else ""


def mark_of(about: os.stat_result) -> FileMark:
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


def can_run(about: os.stat_result) -> bool:
    return bool(about.st_mode & EXECUTABLE)


class FileUntilEnd(io.BufferedReader):
    """A file that is read up to its size at opening, even if a program keeps writing to it.

    A file that is too large has one byte more than any shared file.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._size = min(os.fstat(raw.fileno()).st_size, LARGEST_FILE + 1)

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._size - self.tell()
        return super().read(left if size is None or size < 0 else min(size, left))


def open_until_end(path: Path) -> FileUntilEnd:
    """Open a plain file without following links.

    Raises:
        OSError: the file cannot be opened.
    """
    return FileUntilEnd(open_plain_file(path).detach())


def find_digest(path: Path) -> str:
    """Return the SHA-256 of a file, opened without following links.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with open_until_end(path) as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def find_file(root: Path, name: str) -> os.stat_result | None:
    """Return a plain file's status; None if the folder has no such file."""
    *above, last = split_name(name)
    with suppress(OSError), _open_folder(root, above) as folder:
        about = os.stat(last, dir_fd=folder, follow_symlinks=False)
        return about if stat.S_ISREG(about.st_mode) else None
    return None


def check_place(root: Path, name: str) -> None:
    """Check that a file can be placed below the folder; create the folders above it.

    Raises:
        OSError: a folder or a link is in the file's way, or the folder is read-only.
    """
    *above, last = split_name(name)
    with _open_folder(root, above, make=True) as folder:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(".", os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def check_free(size: int, *places: Path) -> None:
    """Check that the disk of each place has room for `size` bytes.

    Raises:
        OSError: a disk has too little room.
    """
    for place in places:
        with suppress(FileNotFoundError):  # the place is created with its first file
            if shutil.disk_usage(place).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def move_to(root: Path, name: str, part: Path) -> None:
    """Move a file to its place below the folder, and replace any file there.

    Raises:
        OSError: a folder or a link is in the file's way, or the disk is full.
    """
    *above, last = split_name(name)
    with _open_folder(root, above, make=True) as folder:
        try:
            os.rename(part, last, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_to(folder, last, part)


def _copy_to(folder: int, name: str, part: Path) -> None:
    """Copy a file from another disk under a temporary name, and rename the complete copy."""
    beside = f".{uuid.uuid4().hex}.new"
    try:
        with part.open("rb") as old, os.fdopen(os.open(beside, OPEN_NEW, 0o600, dir_fd=folder), "wb") as new:
            shutil.copyfileobj(old, new)
            new.flush()
            about = os.fstat(old.fileno())
            os.fchmod(new.fileno(), stat.S_IMODE(about.st_mode))
            os.utime(new.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)


def move_aside(root: Path, name: str, other: str) -> None:
    """Rename a file below the folder, and leave it in its own directory."""
    *above, last = split_name(name)
    with _open_folder(root, above) as folder:
        os.rename(last, other, src_dir_fd=folder, dst_dir_fd=folder)


def remove_from(root: Path, name: str) -> None:
    """Remove a file below the folder, and the folders that become empty."""
    parts = split_name(name)
    with suppress(OSError):
        with _open_folder(root, parts[:-1]) as folder:
            os.unlink(parts[-1], dir_fd=folder)
        for depth in range(len(parts) - 1, 0, -1):
            with _open_folder(root, parts[: depth - 1]) as folder:
                os.rmdir(parts[depth - 1], dir_fd=folder)


def split_name(name: str) -> Sequence[str]:
    """Split a path below a folder.

    Raises:
        ValueError: the path leads elsewhere.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is not a path below a folder")
    return parts


@contextmanager
def _open_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    folder = os.open(root, OPEN_FOLDER)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)

"""The trusted copy of a hook: the gateway runs exactly the bytes of the folder whose hash was trusted.

A file may change between the hash of its folder and the moment at which an interpreter or a shell opens the file. So
the gateway reads the folder once, hashes the bytes, and runs the hook in a copy made of the same bytes, in a place that
no tool and no restricted hook can write to. The hook's data belong in its store or its own data folder: files that the
hook writes beside its code stay in the copy.
"""

import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from gateway.errors import HookError
from gateway.files.folders import OPEN_FILE, OPEN_FOLDER
from gateway.hooks.places.hook_files import list_hook_files
from gateway.hooks.places.sources import HookVersion

MAX_BYTES = 64 << 20  # of a folder that can be trusted as a whole
MAX_FILES = 5_000
MAX_LINKS = 40  # in a row, as many as the system follows
PREFIX = "folder:"  # before the hash of a whole folder; a hash without it is of a single file
KEPT_COPIES = 2  # of one hook: a process that is being replaced may still import from the previous copy


class TrustedFolder(msgspec.Struct, frozen=True):
    """A folder as it was read at one moment: files with their modes, and links that stay inside the folder."""

    digest: str
    files: Mapping[str, tuple[int, bytes]]
    links: Mapping[str, str]

    def write_to(self, target: Path) -> None:
        for name in (*self.files, *self.links):
            (target / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, (mode, data) in self.files.items():
            path = target / name
            path.write_bytes(data)
            path.chmod(0o500 if mode & stat.S_IXUSR else 0o400)
        for name, leads_to in self.links.items():
            (target / name).symlink_to(leads_to)


def has_digest(folder: Path, digest: str) -> bool:
    """Tell whether the whole folder has this hash."""
    try:
        return read_whole_folder(folder).digest == digest
    except HookError:
        return False


def has_packages(folder: Path | None, digest: str) -> bool:
    """Tell whether the packages that came with a hook have this hash; "" if none came."""
    try:
        return make_digest(folder) == digest if folder else not digest
    except OSError:
        return False


def make_digest(folder: Path) -> str:
    """Hash all files in a folder, however many, without exceptions: Python also runs the bytecode caches of packages.

    Raises:
        OSError: the folder cannot be read.
    """
    total = hashlib.sha256()
    for name, entry in list_hook_files(folder, lambda *_: False):
        label = name.encode("utf-8", "surrogateescape")
        is_link = entry.is_symlink()
        with io.BytesIO(os.fsencode(Path(entry.path).readlink())) if is_link else Path(entry.path).open("rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        total.update(b"%s %d %s %s\n" % (b"link" if is_link else b"file", len(label), label, content))
    return f"{PREFIX}{total.hexdigest()}"


def read_whole_folder(folder: Path, limit: int = MAX_BYTES) -> TrustedFolder:
    """Read and hash every file that belongs to the hook.

    Raises:
        HookError: the folder is too large to be trusted as a whole, cannot be read, or contains an entry that is
        neither file nor folder.
    """
    files: dict[str, tuple[int, bytes]] = {}
    links: dict[str, str] = {}
    left = limit
    try:
        with _open_folder(folder) as root:
            for name, entry in list_hook_files(folder):
                if entry.is_symlink():
                    links[name] = _read_link(folder, name)
                    continue
                with os.fdopen(_open_below(root, name), "rb") as file:
                    found = os.fstat(file.fileno())
                    if not stat.S_ISREG(found.st_mode):
                        raise HookError(
                            f"{folder.name}/{name} is not a file; a hook that is trusted as a whole has files alone"
                        )
                    data = file.read(left + 1)
                left -= len(data)
                files[name] = (found.st_mode & 0o777, data)
                if left < 0 or len(files) > MAX_FILES:
                    raise HookError(
                        f"{folder.name} has more than {limit >> 20} MB or {MAX_FILES} files, too much to be trusted as "
                        "a whole; put what is not part of the hook elsewhere"
                    )
    except OSError as error:
        raise HookError(f"{folder.name} cannot be read: {error.strerror}: {error.filename}") from None
    return TrustedFolder(_hash(files, links), files, links)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_below(root: int, name: str) -> int:
    """Open a file of a folder that another program may be changing, without following any link."""
    folder, (*above, last) = os.dup(root), name.split("/")
    try:
        for part in above:
            below = os.open(part, OPEN_FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(last, OPEN_FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _read_link(folder: Path, name: str) -> str:
    """Return the target of a link. Raises HookError if the target is outside of the folder, and so not in the copy."""
    leads_to = str((folder / name).readlink())
    if not _stays_inside(folder, name):
        what = f"{folder.name}/{name} leads out of the folder, or in a circle: {leads_to}"
        raise HookError(f"{what}; put the file itself there")
    return leads_to


def _stays_inside(folder: Path, name: str) -> bool:
    """Tell whether each step of a link stays inside the folder: a link that leaves and returns breaks in a copy."""
    reached, ahead, links = PurePosixPath(), [*reversed(PurePosixPath(name).parts)], 0
    while ahead:
        part = ahead.pop()
        if part == os.pardir:
            if not reached.parts:
                return False
            reached = reached.parent
        elif (folder / reached / part).is_symlink():
            leads_to = PurePosixPath((folder / reached / part).readlink())
            links += 1
            if leads_to.is_absolute() or links > MAX_LINKS:
                return False
            ahead += reversed(leads_to.parts)
        else:
            reached /= part
    return True


def _hash(files: Mapping[str, tuple[int, bytes]], links: Mapping[str, str]) -> str:
    total = hashlib.sha256()
    for name, (mode, data) in sorted(files.items()):
        label = name.encode("utf-8", "surrogateescape")
        total.update(b"file %d %s %d %d\n" % (len(label), label, bool(mode & stat.S_IXUSR), len(data)))
        total.update(data)
    for name, leads_to in sorted(links.items()):
        label, target = (word.encode("utf-8", "surrogateescape") for word in (name, leads_to))
        total.update(b"link %d %s %d %s\n" % (len(label), label, len(target), target))
    return f"{PREFIX}{total.hexdigest()}"


def use_copy(version: HookVersion, copies: Path) -> HookVersion:
    """Return the version with a copy in place of its folder, made of the trusted bytes.

    Raises:
        HookError: the folder has other bytes now.
    """
    pinned = read_whole_folder(version.path)
    if pinned.digest != version.pinned:
        raise HookError(
            f"{version.called} changed while it was being started; read it, then run: hermes-gateway hooks trust "
            f"{version.called}"
        )
    place = copies / version.name
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = Path(tempfile.mkdtemp(prefix=f"{pinned.digest.removeprefix(PREFIX)[:12]}-", dir=place))
    pinned.write_to(copy)
    _remove_old_copies(place)
    return replace(version, path=copy)


def _remove_old_copies(place: Path) -> None:
    with suppress(OSError):
        for old in sorted(place.iterdir(), key=lambda one: one.stat().st_mtime_ns)[:-KEPT_COPIES]:
            shutil.rmtree(old, ignore_errors=True)

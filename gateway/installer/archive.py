"""An archive of a stranger, extracted as plain files: no path leads out of the folder, and all sizes are limited.

Its content is counted as it comes: a small file may contain a large one, or many of them.
"""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol, Self

import msgspec

from gateway.errors import HookError
from gateway.logs.text import to_one_line

MAX_BYTES = 64 << 20
MAX_FILES = 5_000
MAX_NAME, MAX_DEPTH = 200, 20
MAX_HEADER, MAX_HEADERS = 1 << 13, 2 << 20  # bytes between the files (long names, times): of one, and of all
CHUNK = 1 << 16
UNPACK_ERRORS = (
    *(OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
    IndexError,  # a name without a letter
)
ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Member(msgspec.Struct, frozen=True):
    """One file of an archive. `kind`: what it is, if it is neither a file nor a folder."""

    name: str
    kind: str
    is_folder: bool
    is_program: bool
    open: Any


class CappedReader(BufferedIOBase):
    """A reader of an unpacked stream, up to a limit. It raises HookError beyond it."""

    def __init__(self, source: Readable, limit: int) -> None:
        self._source, self._left = source, limit

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = self._source.read(self._left + 1 if size is None or size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise HookError(f"the archive holds more than {MAX_BYTES >> 20} MB")
        return data


def make_header_type() -> type[tarfile.TarInfo]:
    """Make the type of tar headers for one archive, with a limit on their total size.

    Python before 3.11.10 looks through a long header for days.
    """
    left = MAX_HEADERS

    class CountedHeader(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal left
            found = super().frombuf(buf, encoding, errors)
            if found.type not in tarfile.REGULAR_TYPES:
                left -= found.size
                if found.size > MAX_HEADER or left < 0:
                    raise HookError("the archive has names, or other words about its files, without end")
            return found

    return CountedHeader


def is_archive(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def extract_archive(archive: Path, into: Path) -> None:
    """Extract all files of an archive into an empty folder.

    Raises:
        HookError: it is not an archive, has content that no hook needs, or is too large.
    """
    try:
        if archive.stat().st_size > MAX_BYTES:
            raise HookError(f"{archive.name} is larger than {MAX_BYTES >> 20} MB")
        with archive.open("rb") as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as packed:
                    _write(_list_zip(packed), into)
            else:
                file.seek(0)
                extract_stream(_unpack(file), into)
    except UNPACK_ERRORS as error:
        raise HookError(f"{archive.name} cannot be unpacked: {to_one_line(str(error), 200)}") from None


def make_archive(files: Mapping[str, tuple[int, bytes]], folder: str) -> bytes:
    """Make an archive of these files with their modes, in one folder: always the same for the same content."""
    made = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=made, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, (mode, data) in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o755 if mode & stat.S_IXUSR else 0o644
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def extract_stream(stream: Readable, into: Path) -> None:
    """Extract a tar from a stream; its names and headers count for the limit too."""
    try:
        bounded: Any = CappedReader(stream, MAX_BYTES + MAX_FILES * 4096)
        with tarfile.open(fileobj=bounded, mode="r|", tarinfo=make_header_type()) as packed:
            _write(_list_tar(packed), into)
        while bounded.read(CHUNK):  # the checksums follow the last file
            pass
    except tarfile.TarError as error:
        raise HookError(f"this is not an archive: {to_one_line(str(error), 200)}") from None


def _unpack(file: IO[bytes]) -> Readable:
    """Return the content of a tar, which may be packed in one of three ways."""
    begins = file.read(6)
    file.seek(0)
    if begins.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if begins.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if begins.startswith(b"\xfd7zXZ\0") else file


def _list_zip(packed: zipfile.ZipFile) -> Iterator[Member]:
    for one in packed.infolist():
        mode = one.external_attr >> 16
        odd = stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR)
        kind = "encrypted" if one.flag_bits & 1 else "a link or a device" if odd else ""
        yield Member(one.filename, kind, one.is_dir(), bool(mode & stat.S_IXUSR), lambda one=one: packed.open(one))


def _list_tar(packed: tarfile.TarFile) -> Iterator[Member]:
    for one in packed:
        kind = "" if one.isfile() or one.isdir() else "a link or a device"
        is_program = bool(one.mode & stat.S_IXUSR)
        yield Member(one.name, kind, one.isdir(), is_program, lambda one=one: packed.extractfile(one))


def _write(members: Iterator[Member], into: Path) -> None:
    left, seen = MAX_BYTES, set[str]()
    for count, member in enumerate(members, 1):
        if count > MAX_FILES:
            raise HookError(f"the archive holds more than {MAX_FILES} files and folders")
        name = _check_name(member, seen)
        if member.is_folder or name is None:
            continue
        path = into / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with member.open() as source, path.open("xb") as target:
            while data := source.read(CHUNK):
                left -= len(data)
                if left < 0:
                    raise HookError(f"the archive holds more than {MAX_BYTES >> 20} MB")
                target.write(data)
        path.chmod(0o700 if member.is_program else 0o600)


def _check_name(member: Member, seen: set[str]) -> PurePosixPath | None:
    """Return the member's path below the folder; None for the folder itself.

    Raises:
        HookError: the path leads elsewhere, exists already, or is neither a file nor a folder.
    """
    name, shown = PurePosixPath(member.name), to_one_line(repr(member.name), MAX_NAME)
    if member.kind:
        raise HookError(f"the archive holds {shown}, which is {member.kind}; a hook has plain files alone")
    if name.is_absolute() or ".." in name.parts or "\\" in member.name or not member.name.isprintable():
        raise HookError(f"the archive holds {shown}, which leads out of its folder or cannot be shown")
    if len(name.parts) > MAX_DEPTH or any(len(part) > MAX_NAME for part in name.parts):
        raise HookError(f"the archive holds {shown}, which is too long or too deep")
    if not name.parts:
        return None
    folded = str(name).casefold()
    if not member.is_folder and folded in seen:
        raise HookError(f"the archive holds {shown} twice, or in two spellings")
    seen.add(folded)
    return name

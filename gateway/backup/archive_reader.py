"""The reader of an archive that may not be a copy of a home: it trusts nothing, and no path leads out of the folder.

A copy has only plain files, each with an allowed path, and is complete only if all of them match the list at its end.
The archives of hooks have other limits (`gateway/installer/archive.py`): one of a home may be as large as the disk has
room for.
"""

import gzip
import hashlib
import json
import os
import shutil
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from gateway.backup.contents import MANIFEST, BackupError, is_piece
from gateway.logs.text import to_one_line

CHUNK = 1 << 20
MAX_FILES = 500_000
MAX_HEADER = 1 << 14  # of the part between files: long names, times. Python before 3.11.10 is slow with a long one
MAX_MANIFEST = 512 << 20
SPARE_ROOM = 64 << 20  # bytes of the disk that are left for others
KNOWN_FORMAT = 1
GZIP_HEADER = b"\x1f\x8b"


class ReadArchive(msgspec.Struct, frozen=True):
    """The content of an archive: its files with their digests, and its own facts."""

    digests: dict[str, str]
    version: str
    home: str
    made: float
    left_out: dict[str, str]
    secrets: tuple[str, ...]


class CappedHeader(tarfile.TarInfo):
    """The header before a file: all of it is read into memory, so its length is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type not in tarfile.REGULAR_TYPES and found.size > MAX_HEADER:
            raise BackupError("the archive has a header that is too long")
        return found


def is_archive(path: Path) -> bool:
    """Return True if the file begins like an archive."""
    with path.open("rb") as file:
        return file.read(len(GZIP_HEADER)) == GZIP_HEADER


def read_archive(archive: Path, into: Path | None = None) -> ReadArchive:
    """Read an archive from end to end, and extract its files to an empty folder, if one is named.

    Raises:
        BackupError: it is no such archive, was cut off or changed, or the disk has no room for its files.
    """
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=CappedHeader) as packed:
            return _read(packed, into)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise BackupError(f"{archive} is not a complete copy of a home: {to_one_line(str(error), 200)}") from None


def _read(packed: tarfile.TarFile, into: Path | None) -> ReadArchive:
    found: dict[str, str] = {}
    manifest: bytes | None = None
    for member in packed:
        source = packed.extractfile(member) if member.isreg() and not member.issparse() else None
        name = member.name
        if source is None or manifest is not None or name in found or not (name == MANIFEST or is_allowed(name)):
            raise BackupError(f"the archive holds {show(name)}, which no copy of a home has, or has there")
        if name == MANIFEST:
            manifest = source.read(MAX_MANIFEST)
            continue
        if len(found) == MAX_FILES:
            raise BackupError(f"the archive holds more than {MAX_FILES} files")
        found[name] = _take(source, into / name if into else None, member)
    about = _parse_manifest(manifest)
    if about.digests != found:
        wrong = next((name for name in found if about.digests.get(name) != found[name]), "")
        wrong = wrong or next(name for name in about.digests if name not in found)
        raise BackupError(f"the archive is not as it was made: {show(wrong)} is missing, or another; take another copy")
    return about


def is_allowed(name: str) -> bool:
    """Return True if a file of a copy may have this path."""
    parts = name.split("/")
    return is_piece(name) and not ({"", ".", ".."} & {*parts} or "\0" in name)


def show(name: str) -> str:
    return to_one_line(repr(name), 200)


def _take(source: IO[bytes], path: Path | None, member: tarfile.TarInfo) -> str:
    """Return the digest of one file, and write the file if a path is passed."""
    digest = hashlib.sha256()
    if path is None:
        while data := source.read(CHUNK):
            digest.update(data)
        return digest.hexdigest()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(path.parent).free < member.size + SPARE_ROOM:
            raise BackupError(f"no space left for {show(member.name)}: {member.size} bytes; nothing was restored")
        with path.open("xb") as target:
            while data := source.read(CHUNK):
                digest.update(data)
                target.write(data)
            target.flush()
            os.fsync(target.fileno())
        path.chmod(0o700 if member.mode & 0o100 else 0o600)
        os.utime(path, (member.mtime, member.mtime))
    except (FileExistsError, NotADirectoryError, IsADirectoryError, ValueError, OverflowError):
        raise BackupError(
            f"the archive holds {show(member.name)} as a file and as a folder, or otherwise oddly"
        ) from None
    except OSError as error:
        raise BackupError(f"{show(member.name)} cannot be laid out here: {error.strerror}") from None
    return digest.hexdigest()


def _parse_manifest(text: bytes | None) -> ReadArchive:
    """Parse the list at the end. Raises BackupError if we cannot have written it."""
    if text is None:
        raise BackupError("the archive was cut off, or is not a copy of a home: it has no list of its files at its end")
    try:
        said: Any = json.loads(text)
        if said["format"] > KNOWN_FORMAT:
            raise BackupError(f"the archive was made by a later version, {said['version']}; put it back with that one")
        return msgspec.convert(said, ReadArchive)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BackupError("the archive's list of its files is not as we write it") from None

"""The writer of a copy: a `.tar.gz` with the files by their paths, and a list of their digests at its end.

The copy gets its name when it is complete, was read again from end to end, and is safe on the disk; an interruption
leaves a folder `.work-...` beside it. The journal in it is a copy as of one instant, and so are databases of hooks.
"""

import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

import msgspec

from gateway import __version__
from gateway.backup.archive_reader import read_archive
from gateway.backup.contents import ENV, JOURNAL, MANIFEST, WORK_PREFIX, BackupError, list_files
from gateway.backup.shared_journal import JournalServers, load_shared_journal
from gateway.config.environment import read_environment
from gateway.config.home import Home
from gateway.engine.sqlite.backup import JournalContents, create_backup
from gateway.engine.sqlite.journal_file import sync
from gateway.files.folders import open_plain_file

FORMAT = 1
COMPRESSION = 4  # most of the possible gain, in a third of the time
LINKED = (errno.ELOOP, errno.ENOTDIR)
SQLITE_HEADER = b"SQLite format 3\0"
SQLITE_COMPANIONS = ("-wal", "-shm", "-journal")

CountBytes: TypeAlias = Callable[[int], None]
"""A callback with the number of bytes that were read since its last call."""


def ignore_bytes(_read: int) -> None:
    """Ignore the progress."""


class WrittenArchive(msgspec.Struct, frozen=True):
    """A finished archive; `left_out`: the files that it does not have, by path, with the reason."""

    path: Path
    size: int
    files: int
    journal: JournalContents | None
    left_out: dict[str, str]


class ArchiveWriter(msgspec.Struct):
    """The open archive, and the digests of the files in it so far."""

    packed: tarfile.TarFile
    count: CountBytes = ignore_bytes
    digests: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, name: str, file: BinaryIO) -> None:
        """Add a file. Raises BackupError if it became shorter meanwhile."""
        found = os.fstat(file.fileno())
        header = tarfile.TarInfo(name)
        header.size, header.mtime = found.st_size, int(max(found.st_mtime, 0))
        header.mode = 0o700 if found.st_mode & 0o100 else 0o600
        reader = DigestReader(file, self.count)
        try:
            self.packed.addfile(header, reader)
        except OSError as error:
            if error.errno is None:
                raise BackupError(f"{name} was cut off while it was read; try again") from None
            raise
        self.digests[name] = reader.digest.hexdigest()

    def add_text(self, name: str, text: str) -> None:
        data = text.encode()
        header = tarfile.TarInfo(name)
        header.size, header.mode, header.mtime = len(data), 0o600, int(time.time())
        self.packed.addfile(header, io.BytesIO(data))


class DigestReader(io.RawIOBase):
    """A file, and the digest of the bytes that were read."""

    def __init__(self, file: BinaryIO, count: CountBytes) -> None:
        super().__init__()
        self._file = file
        self._count = count
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        self._count(len(data))
        return data


def write_archive(
    home: Home, target: Path, *, with_env: bool, servers: JournalServers | None = None, count: CountBytes = ignore_bytes
) -> WrittenArchive:
    """Copy a home as it is now, even while a gateway serves it; the copy is read again before it gets its name.

    `servers` keep the journal; without them it is in the home.

    Raises:
        BackupError: nothing was found to copy, or the target exists already.
        EngineError: the journal is damaged, or the servers that keep it do not answer.
    """
    if os.path.lexists(target):
        raise BackupError(f"{target} exists already; name a file that does not")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=target.parent))
    try:
        part = work / "archive"
        journal, digests, left_out = _write(home, part, work, count, servers, with_env=with_env)
        if not digests:
            raise BackupError(f"{home.root} has nothing to copy")
        if read_archive(part).digests != digests:
            raise BackupError(f"what was written to {target} is not what was read; look at that disk")
        size = part.stat().st_size
        part.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return WrittenArchive(target, size, len(digests), journal, left_out)


def _write(
    home: Home, part: Path, work: Path, count: CountBytes, servers: JournalServers | None, *, with_env: bool
) -> tuple[JournalContents | None, dict[str, str], dict[str, str]]:
    journal, left_out, root = None, dict[str, str](), home.root.resolve()
    shared = load_shared_journal(servers) if servers else None
    if shared:
        shared.fetch_files(home)
    with _open_archive(part, count) as writer:
        for found in list_files(home, with_env=with_env):
            why = found.why_not or _add_file(writer, root, found.name, work)
            if why:
                left_out[found.name] = why
        if shared or home.journal.exists():
            copied = work / "journal.db"
            journal = shared.create_backup(copied) if shared else create_backup(home.journal, copied)
            with copied.open("rb") as file:
                writer.add(JOURNAL, file)
        secrets = [] if with_env or not home.env.exists() else sorted(read_environment({}, home.env).environ)
        if secrets:
            left_out[ENV] = "secrets are taken along only with --with-env"
        about = {"format": FORMAT, "version": __version__, "made": time.time(), "home": str(home.root)}
        facts = {**about, "digests": writer.digests, "left_out": left_out, "secrets": secrets}
        writer.add_text(MANIFEST, json.dumps(facts, indent=1))
    return journal, writer.digests, left_out


@contextmanager
def _open_archive(part: Path, count: CountBytes) -> Iterator[ArchiveWriter]:
    with part.open("xb") as file:
        part.chmod(0o600)
        with (
            gzip.GzipFile("", "wb", COMPRESSION, file, mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as packed,
        ):
            yield ArchiveWriter(packed, count)
        file.flush()
        os.fsync(file.fileno())


def _add_file(writer: ArchiveWriter, root: Path, name: str, work: Path) -> str:
    """Add a file; return why it is left out after all, or ""."""
    path = root / name
    try:
        with open_plain_file(path) as file:
            if file.read(len(SQLITE_HEADER)) == SQLITE_HEADER and (copy := _copy_database(path, work)):
                with copy.open("rb") as whole:
                    writer.add(name, whole)
                return ""
            file.seek(0)
            if not _belongs_to_database(path):
                writer.add(name, file)
    except FileNotFoundError:
        return ""  # it has gone meanwhile
    except PermissionError as error:
        return error.strerror or "no permission"
    except OSError as error:
        if error.errno not in LINKED:
            raise
        return "a link has taken its place, or that of its folder"
    return ""


def _copy_database(path: Path, work: Path) -> Path | None:
    """Copy a database as of one instant, even while it is written; None: SQLite cannot read it."""
    copy = work / "database"
    copy.unlink(missing_ok=True)
    words = [sys.executable, "-P", "-m", "gateway.backup.sqlite_copy", str(path), str(copy.resolve())]
    return None if subprocess.run(words, capture_output=True, check=False).returncode else copy


def _belongs_to_database(path: Path) -> bool:
    """Return True for a companion file of a database: the copy of the database has its content."""
    for ending in SQLITE_COMPANIONS:
        main = path.with_name(path.name.removesuffix(ending))
        if path.name.endswith(ending) and main.is_file():
            with main.open("rb") as file:
                return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    return False

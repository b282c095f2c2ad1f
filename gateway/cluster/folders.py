"""Shared folders in which agents work: the files of a turn on one gateway are there for the next turn on another.

Theory of operation. After a turn that used tools, and before the record of its end, the gateway shares all differences
from the *base*: the state that both sides last had, kept in the home (see `folder_journal`). Before a turn, it takes
the changes by others. If the gateway is killed before it shares, other gateways lack only the files of that turn, and
get them when it is back.

Unchanged files are never shared, so they overwrite no other version. If a file changed on both sides, the later share
counts; if the gateway sees this before a turn, the later change counts, and a replaced local file stays under another
name. The base belongs to one directory: if the directory was emptied before a turn, or replaced, no file counts as
removed.
"""

import logging
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import anyio
import msgspec

from gateway.cluster.files import FETCHED, SharedFiles
from gateway.cluster.folder_contents import (
    EXECUTABLE,
    FileMark,
    FolderContents,
    can_run,
    check_free,
    check_place,
    find_digest,
    find_file,
    list_contents,
    mark_of,
    move_aside,
    move_to,
    remove_from,
)
from gateway.cluster.folder_journal import FolderJournal, run_for_all
from gateway.cluster.roots import find_shared_root, find_turn_folders
from gateway.config.home import Home
from gateway.engine.interface import Engine
from gateway.errors import EngineError
from gateway.files.agent_folders import (
    BASES,
    HomeFolders,
    SharedFolder,
    find_known_place,
    is_received,
    make_chat_folder,
)
from gateway.files.folders import FOLDER, is_key, read_plain_file, write_file
from gateway.records import records
from gateway.threads import run_in_thread

if TYPE_CHECKING:
    from gateway.cluster.nats.engine import NatsEngine

SHOWN_LEFT_OUT = 3
LONGEST_BESIDE = 240  # bytes of the name of a file that is kept beside another file
LEFT_OUT = "other gateways do not have all files of {folder}: {words}"
ABSENT = "other gateways have more files than {folder}, and each turn tries to write them: {words}"

log = logging.getLogger(__name__)


class KnownFile(msgspec.Struct, frozen=True):
    """The state of a file that this gateway and the journal have in common."""

    sha256: str
    is_executable: bool
    mark: FileMark


class KnownFolder(msgspec.Struct):
    """The state of a folder that this gateway and the journal have in common, for one directory on the disk."""

    place: tuple[int, int]
    files: dict[str, KnownFile] = {}


class SharedFolders(HomeFolders):
    """The shared folders of this gateway: `files` holds the folders of conversations, and the bases are beside `files`.

    `node` marks contents that this gateway stored. `list_roots` lists the shared roots in effect.
    """

    def __init__(
        self, engine: Engine, files: Path, node: str = "", list_roots: Callable[[], list[SharedFolder]] = list
    ) -> None:
        super().__init__(lambda facts: find_turn_folders(list_roots(), facts))
        self._list_roots = list_roots
        self._journal = FolderJournal(engine, node)
        self._files = files
        self._kept = files.with_name(BASES)
        self._refused = defaultdict[str, set[str]](set)  # by folder: files that the last try could not write
        # by folder: the sequence up to which the journal was read; the first time, from the start
        self._met: dict[str, int] = {}
        self._locks = defaultdict[str, anyio.Lock](anyio.Lock)

    async def take(self, *folders: SharedFolder) -> None:
        for folder in folders:
            async with self._locks[folder.name]:
                try:
                    await self._take(folder)
                except OSError as error:  # the turn continues without it; the next turn tries again
                    _tell(self.absent, folder, ABSENT, [str(error)])

    async def put(self, *folders: SharedFolder) -> None:
        for folder in folders:
            async with self._locks[folder.name]:
                try:
                    await self._put(folder)
                except (EngineError, OSError) as error:
                    _tell(self.left_out, folder, LEFT_OUT, [str(error)])

    async def sync_all(self) -> None:
        found = await run_in_thread(list_chat_folders, self._files)
        await self.sync(*self._list_roots(), *found)

    async def sync(self, *folders: SharedFolder) -> None:
        """Take and share the folders at the start, and remove the remains of interrupted writes.

        Raises:
            EngineError: the journal does not answer.
        """
        for folder in folders:
            await self.take(folder)
            async with self._locks[folder.name]:
                with suppress(OSError):  # `put` reports the error
                    await self._forget_lost(folder)
            await self.put(folder)

    async def fetch_all(self, find_root: Callable[[str], SharedFolder | None]) -> None:
        """Take all shared folders: the roots that `find_root` knows by name, and the folders of conversations.

        Raises:
            EngineError: the journal does not answer.
        """
        for name in await self.list_names():
            if folder := find_root(name) or find_chat_folder(self._files, name):
                await self.take(folder)

    async def list_names(self) -> list[str]:
        return await self._journal.list_names()

    async def forget(self, folder: str) -> None:
        await self._journal.forget(folder)
        await run_in_thread(lambda: find_known_place(self._kept, folder).unlink(missing_ok=True))

    async def _forget_lost(self, folder: SharedFolder) -> None:
        """Remove files whose content is lost from the base, so that the next `put` shares them again."""
        if lost := await self._journal.find_lost(folder.name):
            base = await run_in_thread(self._read_known, folder)
            base.files = {path: known for path, known in base.files.items() if path not in lost}
            await run_in_thread(self._write_known, folder, base)

    async def _take(self, folder: SharedFolder) -> None:
        is_first = folder.name not in self._met
        newest = await self._journal.read_newest(folder.name, self._met.get(folder.name, 0))
        missed = dict[str, str]()
        if newest or is_first:
            base = await run_in_thread(self._read_known, folder, bool(newest))
            before = dict(base.files)
            if is_first:  # a file without a record is not part of the base
                base.files = {path: known for path, known in base.files.items() if path in newest}

            async def take(one: tuple[int, records.FolderFile]) -> None:
                _, kept = one
                if why := await self._take_file(folder, base, kept):
                    missed[kept.path] = why

            removed = {path: one for path, one in newest.items() if not one[1].sha256}
            for one in removed.values():  # before the others: a folder may replace a file
                await take(one)
            await run_for_all(take, (one for path, one in newest.items() if path not in removed))
            if base.files != before:
                await run_in_thread(self._write_known, folder, base)
        met = max([self._met.get(folder.name, 0), *(seq for seq, _ in newest.values())])
        self._met[folder.name] = min([met, *(newest[path][0] - 1 for path in missed)])
        self._refused[folder.name] = set(missed)
        _tell(self.absent, folder, ABSENT, [f"{path!a}: {why}" for path, why in sorted(missed.items())])

    async def _take_file(self, folder: SharedFolder, base: KnownFolder, kept: records.FolderFile) -> str:
        """Take one file; return why it cannot be written here, or "". The next take tries again."""
        path, known = kept.path, base.files.get(kept.path)
        try:
            is_known = known and (known.sha256, known.is_executable) == (kept.sha256, kept.is_executable)
            if is_known or _is_left_out(folder, path):
                return ""
            here = await run_in_thread(find_file, folder.root, path)
            digest = await run_in_thread(_find_known_digest, folder.root / path, here, known)
            if digest == kept.sha256 and (here is None or can_run(here) == kept.is_executable):
                _note(base, kept, here)
                return ""
            is_changed = here is not None and digest != (known.sha256 if known else "")
            if here and is_changed and find_change(here, known) > kept.changed:
                return ""  # the next `put` shares the local file
            if kept.sha256:
                await self._check_room(folder, kept)
            if kept.sha256 and not await self._fetch(folder, kept, is_changed=is_changed):
                return ""  # a newer version replaced the content, or it is lost, which the next start finds
            if not kept.sha256:
                await run_in_thread(_remove, folder, path, is_changed)
            _note(base, kept, await run_in_thread(find_file, folder.root, path))
        except OSError as error:
            return error.strerror or str(error)
        except ValueError as error:
            log.warning("%s: %r of another gateway is not here: %s", folder.name, path, error)
        return ""

    async def _check_room(self, folder: SharedFolder, kept: records.FolderFile) -> None:
        """Check the place and the room for a file first, so that no turn fetches a file that cannot be written.

        Raises:
            OSError: the file cannot be written.
        """
        await run_in_thread(check_place, folder.root, kept.path)
        if kept.path in self._refused[folder.name]:
            size = await self._journal.find_size(kept)
            await run_in_thread(check_free, size, folder.root, self._files)

    async def _fetch(self, folder: SharedFolder, kept: records.FolderFile, *, is_changed: bool) -> bool:
        part = self._files.resolve() / FETCHED / uuid.uuid4().hex
        if not await self._journal.fetch(kept, part):
            return False
        await run_in_thread(_place, folder, kept, part, is_changed)
        return True

    async def _put(self, folder: SharedFolder) -> None:
        base = await run_in_thread(self._read_known, folder)
        before = dict(base.files)
        found = await run_in_thread(list_contents, folder.root, folder.is_left_out)
        changed = await run_in_thread(_find_changed, folder.root, found, base)
        gone = await run_in_thread(_find_gone, folder.root, found, base)
        changes = [records.FolderFile(folder=folder.name, path=path, changed=time.time()) for path in gone]
        left_out = list(found.left_out)

        async def put(path: str) -> None:
            kept = _describe(folder, path, found.files[path], changed[path], base)
            if stored := await self._journal.put(folder.root, kept, changed[path].mark):
                changes.append(stored)

        try:
            await run_for_all(put, changed)
        except EngineError as error:  # append the changes stored so far, or each try would store them again
            left_out.insert(0, str(error))
        if changes:
            await self._journal.append(folder.name, changes)
        for kept in changes:
            if kept.sha256:
                base.files[kept.path] = changed[kept.path]
            else:
                base.files.pop(kept.path, None)
        if base.files != before:
            await run_in_thread(self._write_known, folder, base)
        _tell(self.left_out, folder, LEFT_OUT, left_out)

    def _read_known(self, folder: SharedFolder, makes: bool = False) -> KnownFolder:
        if makes:
            folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = _find_place(folder.root)
        with suppress(OSError, msgspec.MsgspecError):
            base = msgspec.json.decode(read_plain_file(find_known_place(self._kept, folder.name)), type=KnownFolder)
            is_met = folder.name in self._met
            if base.place == place and (is_met or any(find_file(folder.root, path) for path in base.files)):
                return base
        return KnownFolder(place)

    def _write_known(self, folder: SharedFolder, base: KnownFolder) -> None:
        write_file(find_known_place(self._kept, folder.name), msgspec.json.encode(base))


async def fetch_files(engine: "NatsEngine", home: Home) -> int:
    """Fetch all shared files and folders into the home; return the number of files of conversations.

    Raises:
        EngineError: the servers do not answer, or the disk is full.
    """
    try:
        await SharedFolders(engine, home.files).fetch_all(partial(find_shared_root, home))
        return await SharedFiles(engine.files, home.files).fetch_all()
    except OSError as error:
        raise EngineError(f"{home.files} cannot be written: {error.strerror}") from error


def _tell(told: dict[str, str], folder: SharedFolder, about: str, items: Sequence[str]) -> None:
    """Log a report when it is new, and keep it in `told` while it is true."""
    words = "; ".join(items[:SHOWN_LEFT_OUT])
    if len(items) > SHOWN_LEFT_OUT:
        words += f"; and {len(items) - SHOWN_LEFT_OUT} more"
    said = about.format(folder=folder.root, words=words) if words else ""
    if said and told.get(folder.name) != said:
        log.warning("%s", said)
    told.pop(folder.name, None)
    if said:
        told[folder.name] = said


def _is_left_out(folder: SharedFolder, path: str) -> bool:
    """Return True if the file, or a folder above it, is skipped."""
    below = PurePosixPath(path)
    return any(folder.is_left_out(folder.root / one) for one in (below, *below.parents[:-1]))


def find_change(about: os.stat_result, known: KnownFile | None) -> float:
    """Return when the file was changed here. The copying of a file outside the base is no change of it."""
    return max(about.st_mtime, about.st_ctime) if known else about.st_mtime


def _find_known_digest(path: Path, about: os.stat_result | None, known: KnownFile | None) -> str:
    """Return the SHA-256 of a file, and read the file only if it may have changed; "" if the file is missing."""
    if about is None:
        return ""
    return known.sha256 if known and known.mark == mark_of(about) else find_digest(path)


def _find_changed(root: Path, found: FolderContents, base: KnownFolder) -> dict[str, KnownFile]:
    changed = dict[str, KnownFile]()
    for path, about in found.files.items():
        before, mark = base.files.get(path), mark_of(about)
        if before and before.mark == mark:
            continue
        with suppress(OSError):  # the file was removed in the meantime
            now = KnownFile(find_digest(root / path), can_run(about), mark)
            if before and (before.sha256, before.is_executable) == (now.sha256, now.is_executable):
                base.files[path] = now
            else:
                changed[path] = now
    return changed


def _find_gone(root: Path, found: FolderContents, base: KnownFolder) -> list[str]:
    return [path for path in base.files if path not in found.files and find_file(root, path) is None]


def _describe(
    folder: SharedFolder, path: str, about: os.stat_result, known: KnownFile, base: KnownFolder
) -> records.FolderFile:
    """Describe a file for the journal; `FolderJournal.put` adds the key of its content."""
    changed = find_change(about, base.files.get(path))
    return records.FolderFile(
        folder=folder.name, path=path, sha256=known.sha256, is_executable=known.is_executable, changed=changed
    )


def _note(base: KnownFolder, kept: records.FolderFile, here: os.stat_result | None) -> None:
    if here and kept.sha256:
        base.files[kept.path] = KnownFile(kept.sha256, kept.is_executable, mark_of(here))
    else:
        base.files.pop(kept.path, None)


def _remove(folder: SharedFolder, path: str, is_changed: bool) -> None:
    if is_changed:
        _keep_beside(folder, path)
    else:
        remove_from(folder.root, path)


def _place(folder: SharedFolder, kept: records.FolderFile, part: Path, is_changed: bool) -> None:
    """Move a fetched file to its place; keep a changed local file beside it."""
    try:
        if find_digest(part) != kept.sha256:
            raise OSError("it is not what it is said to be")
        part.chmod(0o600 | (EXECUTABLE if kept.is_executable else 0))
        os.utime(part, (kept.changed, kept.changed))
        if is_changed:
            _keep_beside(folder, kept.path)
        move_to(folder.root, kept.path, part)
    finally:
        part.unlink(missing_ok=True)


def _keep_beside(folder: SharedFolder, path: str) -> None:
    other = f"{_shorten(path.rpartition('/')[2])}.{uuid.uuid4().hex[:8]}"
    move_aside(folder.root, path, other)
    log.warning("%s: %r was changed at another gateway too: what was here is %r now", folder.name, path, other)


def _shorten(name: str) -> str:
    """Shorten a name so that a suffix fits: names have at most 255 bytes."""
    return os.fsencode(name)[:LONGEST_BESIDE].decode(errors="ignore")


def find_chat_folder(files: Path, name: str) -> SharedFolder | None:
    """Return the conversation folder of this name; None if the name belongs to no conversation."""
    begin, _, key = name.partition("/")
    return make_chat_folder(files / key) if begin == FOLDER and is_key(key) and key.count("/") == 1 else None


def list_chat_folders(files: Path) -> list[SharedFolder]:
    """List the local conversation folders in which an agent has, or had, written."""
    paths = [path for path in sorted(files.glob("[!.]*/*")) if path.is_dir() and not path.is_symlink()]
    found = [(path, make_chat_folder(path)) for path in paths]
    return [
        folder
        for path, folder in found
        if _is_written(path) or find_known_place(files.with_name(BASES), folder.name).exists()
    ]


def _is_written(path: Path) -> bool:
    with suppress(OSError), os.scandir(path) as entries:
        return any(not is_received(Path(one.path)) for one in entries)
    return False


def _find_place(root: Path) -> tuple[int, int]:
    with suppress(FileNotFoundError):
        about = root.stat()
        return about.st_dev, about.st_ino
    return 0, 0

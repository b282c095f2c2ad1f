"""The journal's records of shared folders, and the contents of their files.

A record has a file's SHA-256, or says that the file was removed; the newest record of a file counts. The contents are
in the file store, each under a key of its own that the record names, so that no content is overwritten.
"""

import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from gateway.cluster.folder_contents import FileMark, find_file, mark_of, open_until_end
from gateway.engine.interface import Engine, NewRecord, Record, append_in_parts
from gateway.errors import EngineError
from gateway.files.folders import find_new_path, open_new_file, put_in_place
from gateway.records import records
from gateway.records.subjects import FOLDER_SUBJECTS, folder_subject_of, token_of
from gateway.threads import run_in_thread

STORED = ".folders"  # starts the keys of the contents: no chat network has this name
REMOVAL_TTL = 90 * records.DAY  # how long the record of a removed file is kept
AT_A_TIME = 8  # files that are requested at a time

log = logging.getLogger(__name__)

T = TypeVar("T")


class FolderJournal:
    """The journal of shared folders. `node` marks the contents that this gateway stored."""

    def __init__(self, engine: Engine, node: str) -> None:
        self._engine = engine
        assert engine.files is not None, "a shared journal has a store of files"
        self._store = engine.files
        self._own = token_of(node)

    async def list_names(self) -> list[str]:
        """List the folders that have, or recently had, files on any gateway."""
        found = records.read_all(self._engine, FOLDER_SUBJECTS, records.FolderFile)
        return sorted({kept.folder async for _, kept in found})

    async def read_newest(self, folder: str, after: int = 0) -> dict[str, tuple[int, records.FolderFile]]:
        """Return the newest record of each path behind the sequence `after`, with its sequence."""
        found = records.read_all(self._engine, folder_subject_of(folder), records.FolderFile, after, fresh=False)
        return {kept.path: (record.seq, kept) async for record, kept in found}

    async def append(self, folder: str, changes: Sequence[records.FolderFile]) -> None:
        """Append changes, and remove the records and contents that the changes replace.

        Raises:
            EngineError: not all changes were written.
        """
        await append_in_parts(self._engine, map(_make_put, changes))
        newest, replaced = dict[str, records.FolderFile](), list[tuple[Record, records.FolderFile]]()
        async for record, kept in records.read_all(self._engine, folder_subject_of(folder), records.FolderFile):
            if before := newest.get(kept.path):
                replaced.append((record, before))
            newest[kept.path] = kept
        await run_for_all(self._remove_replaced, replaced)

    async def _remove_replaced(self, one: tuple[Record, records.FolderFile]) -> None:
        record, before = one
        await self._engine.purge(record.subject, record.seq - 1)
        if before.stored:
            await self._store.delete(_key_of(before))

    async def put(self, root: Path, kept: records.FolderFile, mark: FileMark) -> records.FolderFile | None:
        """Store a file's content, and return the record that names it; None if the file changed in the meantime.

        Raises:
            EngineError: the content cannot be stored.
        """
        stored = msgspec.structs.replace(kept, stored=f"{self._own}-{uuid.uuid4().hex}")
        with suppress(OSError):
            with await run_in_thread(open_until_end, root / kept.path) as file:
                await self._store.put(_key_of(stored), file, math.inf)
            about = await run_in_thread(find_file, root, kept.path)
            if about and mark_of(about) == mark:
                return stored
        await self._store.delete(_key_of(stored))
        return None

    async def fetch(self, kept: records.FolderFile, part: Path) -> bool:
        """Write a file's content into a new file; return False if the store no longer has the content.

        Raises:
            EngineError: the store does not answer.
            OSError: the disk takes no more.
        """
        with await run_in_thread(open_new_file, part) as file:
            try:
                if await self._store.get(_key_of(kept), file):
                    await run_in_thread(put_in_place, file, part)
                    return True
            finally:
                find_new_path(part).unlink(missing_ok=True)
        log.warning("%s: %r is at no gateway any more", kept.folder, kept.path)
        return False

    async def find_size(self, kept: records.FolderFile) -> int:
        """Return a file's size in bytes; 0 if the store no longer has its content.

        Raises:
            EngineError: the store does not answer.
        """
        return sum(one.size for one in await self._store.list(_key_of(kept)))

    async def find_lost(self, folder: str) -> list[str]:
        """List files that have a record but no content, for instance after the journal moved to other servers.

        Also remove contents that this gateway stored and that no record names: their write was interrupted.
        """
        before, begin = await self.read_newest(folder), f"{STORED}/{token_of(folder)}"
        cut_off = await self._store.list_cut_off(begin)
        stored = {one.key for one in await self._store.list(begin)}
        after = await self.read_newest(folder)  # other gateways may have written since `before`
        named = {_key_of(kept) for _, kept in after.values()}
        for key in (stored - named).union(cut_off):
            if key.startswith(f"{begin}/{self._own}-"):
                await self._store.delete(key)
        same = [kept for path, (seq, kept) in before.items() if path in after and after[path][0] == seq]
        return [kept.path for kept in same if kept.stored and _key_of(kept) not in stored]

    async def forget(self, folder: str) -> None:
        """Remove all records and contents of a folder."""
        await self._engine.purge(folder_subject_of(folder))
        begin = f"{STORED}/{token_of(folder)}"
        for key in [*(one.key for one in await self._store.list(begin)), *await self._store.list_cut_off(begin)]:
            await self._store.delete(key)


async def run_for_all(act: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """Run the function for all items, several at a time; after a failure, start no more.

    Raises:
        EngineError: the first error of an item.
    """
    waiting, errors = iter(items), list[EngineError]()

    async def go_on() -> None:
        for item in waiting:
            try:
                await act(item)
            except EngineError as error:
                errors.append(error)
            if errors:
                return

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_A_TIME):
            tasks.start_soon(go_on)
    if errors:
        raise errors[0]


def _key_of(kept: records.FolderFile) -> str:
    return f"{STORED}/{token_of(kept.folder)}/{kept.stored}"


def _make_put(kept: records.FolderFile) -> NewRecord:
    ttl = None if kept.sha256 else REMOVAL_TTL
    return NewRecord(folder_subject_of(kept.folder, kept.path), records.encode(kept), ttl=ttl)

"""What the journal says of the folders that all gateways have, and what the files below them hold.

Of each file a record says its SHA-256, or that it was removed; the newest counts. What it holds lies with the files of
conversations, under a key of its own that the record names, so that nothing is written in the place of something else.
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

STORED = ".folders"  # begins the keys of what they hold: no network is called so
REMOVAL_TTL = 90 * records.DAY  # of the word that a file was removed
AT_A_TIME = 8  # files for which the servers are asked

log = logging.getLogger(__name__)

T = TypeVar("T")


class FolderJournal:
    """`node` is the name by which what was put from here is known."""

    def __init__(self, engine: Engine, node: str) -> None:
        self._engine = engine
        self._store = engine.files
        self._own = token_of(node)

    @property
    def is_shared(self) -> bool:
        """Whether other gateways have it from here."""
        return self._store.is_shared

    async def list_names(self) -> list[str]:
        """Of all folders in which something lies, or lay lately, at any gateway."""
        found = records.read_all(self._engine, FOLDER_SUBJECTS, records.FolderFile)
        return sorted({kept.folder async for _, kept in found})

    async def read_newest(self, folder: str, after: int = 0) -> dict[str, tuple[int, records.FolderFile]]:
        """What came behind this sequence, by paths, with the sequences."""
        found = records.read_all(self._engine, folder_subject_of(folder), records.FolderFile, after, fresh=False)
        return {kept.path: (record.seq, kept) async for record, kept in found}

    async def append(self, folder: str, changes: Sequence[records.FolderFile]) -> None:
        """These count from now on; what they stand in the place of goes.

        Raises:
            EngineError: not all of it is written.
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
        """Store what a file holds, before a record says so; None: it has another mark by now, so nothing is stored.

        Raises:
            EngineError: it cannot be stored.
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
        """Write what a file holds into a new one; False: nobody has it any more.

        Raises:
            EngineError: nobody answers.
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
        """How many bytes a file has; 0: nobody has it any more.

        Raises:
            EngineError: nobody answers.
        """
        return sum(one.size for one in await self._store.list(_key_of(kept)))

    async def find_lost(self, folder: str) -> list[str]:
        """The files that a record names and nobody holds, as where the journal was taken to other servers.

        What was put from here and no record names goes: it was cut off.
        """
        before, begin = await self.read_newest(folder), f"{STORED}/{token_of(folder)}"
        cut_off = await self._store.list_cut_off(begin)
        stored = {one.key for one in await self._store.list(begin)}
        after = await self.read_newest(folder)  # meanwhile others put and remove
        named = {_key_of(kept) for _, kept in after.values()}
        for key in (stored - named).union(cut_off):
            if key.startswith(f"{begin}/{self._own}-"):
                await self._store.delete(key)
        same = [kept for path, (seq, kept) in before.items() if path in after and after[path][0] == seq]
        return [kept.path for kept in same if kept.stored and _key_of(kept) not in stored]

    async def forget(self, folder: str) -> None:
        """Nothing is kept of it any more."""
        await self._engine.purge(folder_subject_of(folder))
        begin = f"{STORED}/{token_of(folder)}"
        for key in [*(one.key for one in await self._store.list(begin)), *await self._store.list_cut_off(begin)]:
            await self._store.delete(key)


async def run_for_all(act: Callable[[T], Awaitable[None]], items: Iterable[T]) -> None:
    """With all of them, several beside each other; where one fails, none is begun any more.

    Raises:
        EngineError: the first that one of them raised.
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

"""Files of conversations that are removed on every gateway on the journal."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from gateway.engine.interface import Engine, NewRecord, Record
from gateway.files.folders import key_of
from gateway.records import records
from gateway.records.subjects import REMOVED_FILES_SUBJECT, token_of
from gateway.threads import run_in_thread

NAME_LENGTH = 24  # of the part of a name that identifies the file: see RECEIVED_NAME
CLOCKS_APART = 10.0  # seconds between the clocks of two hosts


class RemovalFollower:
    """Removes files from our folder that other gateways removed."""

    patterns = (REMOVED_FILES_SUBJECT,)

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    async def load(self) -> None:
        found = records.read_all(self._engine, REMOVED_FILES_SUBJECT, records.FileRemoval)
        removed = {digest: record.ts async for record, kept in found for digest in kept.files}
        if removed:
            await run_in_thread(remove_by_digest, self._folder, removed)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, records.FileRemoval):
            await run_in_thread(remove_by_digest, self._folder, dict.fromkeys(kept.files, record.ts))


async def remove_files(engine: Engine, paths: Iterable[Path]) -> None:
    """Remove files of conversations, with everything made of them, on every gateway; a path may lack its suffix."""
    names = {path.with_name(path.name[:NAME_LENGTH]) for path in paths if key_of(path)}
    store = engine.files
    if not (store and names):
        return
    for folder in {path.parent for path in names}:
        for one in await store.list("/".join(folder.parts[-2:])):
            if folder / one.key.rpartition("/")[2][:NAME_LENGTH] in names:
                await store.delete(one.key)
    kept = records.FileRemoval(files=tuple({digest_of(path) for path in names}))
    await engine.append(NewRecord(REMOVED_FILES_SUBJECT, records.encode(kept), ttl=records.TRAFFIC_TTL))


def remove_by_digest(folder: Path, removed: Mapping[str, float]) -> None:
    """Remove the files of a folder with these digests, unless they are newer: they may have come again."""
    for path in folder.glob("*/*/*"):
        with suppress(OSError):
            if key_of(path) and path.lstat().st_mtime <= removed.get(digest_of(path), 0.0) + CLOCKS_APART:
                path.unlink()


def digest_of(path: Path) -> str:
    """Return one digest for a file and everything made of it, which does not reveal its person."""
    return token_of("/".join((*path.parts[-3:-1], path.name[:NAME_LENGTH])))

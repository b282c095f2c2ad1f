"""Files of conversations, for every gateway: any node can run a turn that reads a file, or send a turn's file.

A gateway that receives or makes a file stores the file under its key (see `gateway/messages/files.py`) before it writes
a record that names the file. A gateway that needs a missing file fetches the file once. An outgoing file from another
folder (a workspace belongs to one host) gets a key of its own.
"""

import logging
import os
import re
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway.cluster.folder_journal import STORED
from gateway.engine.interface import FileStore
from gateway.files.folders import (
    RECEIVED_NAME,
    SENT,
    find_new_path,
    key_of,
    open_new_file,
    open_plain_file,
    put_in_place,
)
from gateway.messages.files import HomeFiles
from gateway.messages.message import Attachment, Reply
from gateway.records import records
from gateway.records.subjects import token_of
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

FETCHED = ".fetched"  # the folder of files that are being fetched
LARGEST_SENT = 100_000_000  # bytes; no chat network takes more
MOST_ABSENT = 10_000  # keys known to be missing everywhere
SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,8}\Z")

log = logging.getLogger(__name__)


class SharedFiles(HomeFiles):
    """The files of this gateway, in its folder, and the files of other gateways, fetched when needed."""

    def __init__(self, store: FileStore, folder: Path) -> None:
        super().__init__(folder)
        self._store = store
        self._absent: set[str] = set()

    async def put(self, path: Path, ttl: float = records.TRAFFIC_TTL) -> None:
        """Share a file of a conversation for `ttl` seconds; any other file stays private.

        Raises:
            EngineError: the file was not stored.
            OSError: the file cannot be read.
        """
        if key := key_of(path):
            await self._put(key, path.parent.resolve() / path.name, ttl)

    async def _put(self, key: str, path: Path, ttl: float) -> None:
        with await run_in_thread(open_plain_file, path) as file:
            await self._store.put(key, file, ttl)
        self._absent.discard(key)

    async def _is_here(self, key: str, place: Path) -> bool:
        return await super()._is_here(key, place) or await self._fetch(key, place)

    async def _fetch(self, key: str, place: Path) -> bool:
        """Fetch a file. If several tasks fetch the same file at once, the last replaces it by the same content."""
        part = self._folder / FETCHED / uuid.uuid4().hex
        with await run_in_thread(open_new_file, part) as file:
            try:
                if found := await self._store.get(key, file):
                    await run_in_thread(put_in_place, file, part)
            finally:
                find_new_path(part).unlink(missing_ok=True)
        if found is None:
            self._note_absent(key)
            return False
        self._absent.discard(key)
        await run_in_thread(move_fetched, part, place, found.changed)
        return True

    def _note_absent(self, key: str) -> None:
        if len(self._absent) >= MOST_ABSENT:
            self._absent.clear()
        self._absent.add(key)

    async def put_earlier(self, journal: Path, done: Path) -> None:
        if await run_in_thread(done.exists):
            return
        since = 0.0
        with suppress(OSError):
            since = (await run_in_thread(journal.stat)).st_mtime
        if count := await self.put_all(since):
            log.info("other gateways can have what people had sent here before: %s", format_count(count, "file"))
        await run_in_thread(done.touch)

    async def put_all(self, since: float = 0.0) -> int:
        """Share all local files newer than `since` that have not expired; return how many were new to the store.

        Raises:
            EngineError: not all files were stored.
        """
        there, count = {one.key for one in await self._store.list()}, 0
        for path in await run_in_thread(lambda: sorted(self._folder.glob("*/*/*"))):
            with suppress(OSError):  # the path is not a plain file, or is gone
                changed = path.lstat().st_mtime
                left = records.TRAFFIC_TTL - (time.time() - changed)
                if (key := key_of(path)) and key not in there and changed > since and left > 0:
                    await self.put(path, left)
                    count += 1
        return count

    async def fetch_all(self) -> int:
        """Fetch all files of other gateways; return their number.

        Raises:
            EngineError: the store does not answer.
            OSError: the disk takes no more.
        """
        count = 0
        for one in await self._store.list():
            if one.key.startswith(f"{STORED}/"):
                continue
            place = self._folder / one.key
            count += await run_in_thread(place.exists) or await self._fetch(one.key, place)
        return count

    async def list_received(self, folder: Path) -> dict[str, int]:
        found = {one.key.rpartition("/")[2]: one.size for one in await self._store.list("/".join(folder.parts[-2:]))}
        return {name: size for name, size in found.items() if RECEIVED_NAME.fullmatch(name)}

    async def _find_said(self, path: str) -> str:
        """Return the local path, without another request for a file that the store did not have."""
        return path if key_of(Path(path)) in self._absent else await self.find(path)

    async def share(self, reply: Reply, session_key: str) -> Reply:
        if not reply.attachments:
            return reply
        shared, left_out = list[Attachment](), list[str]()
        for number, one in enumerate(reply.attachments):
            if one.size > LARGEST_SENT:
                left_out.append(f"[the file {one.name} is not sent: it has {one.size / 1e6:.0f} MB]")
            else:
                shared.append(await self._share(one, session_key, f"{reply.id}/{number}"))
        text = "\n".join(filter(None, [reply.text, *left_out]))
        return replace(reply, text=text, attachments=tuple(shared))

    async def _share(self, one: Attachment, session_key: str, identity: str) -> Attachment:
        path = Path(one.path)
        if (key := key_of(path)) and await self._store.list(key):
            return one
        suffix = SUFFIX.search(path.name.lower())
        key = f"{SENT}/{token_of(session_key)}/{token_of(identity)}{suffix.group() if suffix else ''}"
        try:
            await self._put(key, path, records.TRAFFIC_TTL)
        except OSError:
            return one  # the file is gone: the sender reports that
        return replace(one, path=str(self._folder / key))


def move_fetched(part: Path, place: Path, changed: float) -> None:
    """Move a fetched file to its place, with its original time, from which its expiry counts."""
    os.utime(part, (changed, changed))
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part.replace(place)

"""Files of conversations, for every gateway: a turn on another node reads them, and their network's node sends its own.

A file is in the folder of its conversation. Its key is its path below the folder of all files, and so the same on every
gateway, whatever the homes are called; a path by another gateway is recognized by its end. A gateway that receives or
makes a file stores it under its key before it mentions the file, and a gateway that needs a missing file fetches it
once. An outgoing file from elsewhere (a workspace belongs to one host) gets a key of its own.
"""

import logging
import os
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.cluster.folder_journal import STORED
from gateway.engine.folder_files import is_key
from gateway.engine.interface import Engine, FileStore, KeyedFile, NewRecord, Record
from gateway.files.folders import (
    RECEIVED_NAME,
    find_new_path,
    open_new_file,
    open_plain_file,
    put_in_place,
)
from gateway.messages.message import Attachment, Message, Reply
from gateway.messages.steps import Step, ToolStarted
from gateway.messages.transcript import Entry
from gateway.records import records
from gateway.records.subjects import REMOVED_FILES_SUBJECT, token_of
from gateway.threads import run_in_thread

FOLDER = "files"
SENT = ".sent"  # the folder of outgoing files; no network has this name
FETCHED = ".fetched"  # the folder of files that are being fetched
LARGEST_SENT = 100_000_000  # bytes; no network takes more
LONGEST_HOME = 300  # characters of a path in a text
MOST_ABSENT = 10_000  # keys known to be missing everywhere
NAME_LENGTH = 24  # of the part of a name that identifies the file: see RECEIVED_NAME
CLOCKS_APART = 10.0  # seconds between the clocks of two hosts
SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,8}\Z")

log = logging.getLogger(__name__)


class SharedFiles:
    """The files of this gateway, in its folder, and those of others, which are fetched when needed."""

    def __init__(self, store: FileStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._absent: set[str] = set()

    async def put(self, path: Path, ttl: float = records.TRAFFIC_TTL) -> None:
        """Share a file of a conversation for so many seconds; any other file stays private.

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

    async def find(self, path: str) -> str:
        """Return the local path of a file, fetched if necessary; unchanged if no gateway has it.

        Raises:
            EngineError: the store does not answer.
        """
        if not (key := key_of(Path(path))):
            return path
        place = self._folder / key
        try:
            is_here = await run_in_thread(place.exists) or await self._fetch(key, place)
        except OSError as error:
            log.warning("the file %s cannot be fetched: %s", key, error.strerror)
            return path
        return str(place) if is_here else path

    async def _fetch(self, key: str, place: Path) -> bool:
        """Fetch a file. Others may do the same at once: the last one replaces it by the same content."""
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

    @property
    def is_shared(self) -> bool:
        """True if other gateways can fetch our files."""
        return self._store.is_shared

    async def put_all(self, since: float = 0.0) -> int:
        """Share all local files newer than `since` that have not expired; return how many were new to the store.

        Raises:
            EngineError: they were not stored.
        """
        there, count = {one.key for one in await self._store.list()}, 0
        for path in await run_in_thread(lambda: sorted(self._folder.glob("*/*/*"))):
            with suppress(OSError):  # it is no plain file, or gone
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

    async def list_received(self, folder: Path) -> list[KeyedFile]:
        """List the files that this folder's conversation received on any gateway, with everything made of them."""
        found = await self._store.list("/".join(folder.parts[-2:]))
        return [one for one in found if RECEIVED_NAME.fullmatch(one.key.rpartition("/")[2])]

    async def find_all(self, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
        """Return the attachments with local paths."""
        return tuple([replace(one, path=await self.find(one.path)) for one in attachments])

    async def find_of_entries(self, entries: Sequence[Entry], folder: Path) -> tuple[Entry, ...]:
        """Return the entries of this folder's conversation with local paths of their files."""
        end = f"/{FOLDER}/{folder.parent.name}/{folder.name}/"
        return tuple(
            [await self._find_of_entry(one, folder) if one.parts or end in one.content else one for one in entries]
        )

    async def find_of_steps(self, steps: Sequence[Step], folder: Path) -> tuple[Step, ...]:
        """Return a turn's steps, perhaps of another gateway, with local paths. Tool arguments stay unchanged.

        People may have approved exactly those arguments.
        """
        found = list[Step]()
        for step in steps:
            if not isinstance(step, ToolStarted):
                (entry,) = await self.find_of_entries([step.entry], folder)
                step = msgspec.structs.replace(step, entry=entry)
            found.append(step)
        return tuple(found)

    async def _find_of_entry(self, entry: Entry, folder: Path) -> Entry:
        places = make_path_pattern(folder)
        named = {found["name"] for found in places.finditer(entry.content)}
        for name in named:
            await self._find_said(str(folder / name))
        parts = tuple([replace(one, path=await self._find_said(one.path)) for one in entry.parts])
        content = places.sub(lambda found: str(folder / found["name"]), entry.content) if named else entry.content
        is_same = content == entry.content and parts == entry.parts
        return entry if is_same else replace(entry, content=content, parts=parts)

    async def _find_said(self, path: str) -> str:
        """Return the local path, without asking again for a file that was missing."""
        return path if key_of(Path(path)) in self._absent else await self.find(path)

    async def share(self, reply: Reply, session_key: str) -> Reply:
        """Return the reply with shared files, because another gateway may serve its network."""
        if not (self._store.is_shared and reply.attachments):
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
            return one  # it has gone meanwhile: the sender reports that
        return replace(one, path=str(self._folder / key))


async def find_reply_files(shared: SharedFiles, reply: Reply) -> Reply:
    """Return the reply with local paths of its files."""
    return replace(reply, attachments=await shared.find_all(reply.attachments)) if reply.attachments else reply


async def find_event_files(shared: SharedFiles, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's fields with local paths of their files; other fields may have the same names."""
    found = dict(fields)
    if isinstance(files := fields.get("attachments"), list | tuple):
        found["attachments"] = [await _find_event_file(shared, one) for one in files]
    if file := fields.get("file"):
        found["file"] = await _find_event_file(shared, file)
    return found


async def _find_event_file(shared: SharedFiles, file: Any) -> Any:
    is_file = isinstance(file, Mapping) and isinstance(file.get("path"), str)
    return {**file, "path": await shared.find(file["path"])} if is_file else file


async def find_message_files(shared: SharedFiles, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages with local paths of their files."""
    messages = tuple(messages)
    if not any(one.attachments for one in messages):
        return messages
    found = [(one, await shared.find_all(one.attachments)) for one in messages]
    return tuple(one if files == one.attachments else replace(one, attachments=files) for one, files in found)


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
    if not (engine.files.is_shared and names):
        return
    for folder in {path.parent for path in names}:
        for one in await engine.files.list("/".join(folder.parts[-2:])):
            if folder / one.key.rpartition("/")[2][:NAME_LENGTH] in names:
                await engine.files.delete(one.key)
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


def key_of(path: Path) -> str:
    """Return the key of a path, perhaps by another gateway, by its end; "" if it is no file of a conversation."""
    *_, folder, network, conversation, name = ("", "", "", "", *path.parts)
    key = f"{network}/{conversation}/{name}"
    return key if folder == FOLDER and RECEIVED_NAME.fullmatch(name) and is_key(key) else ""


def is_sent(path: Path) -> bool:
    """Return True if the file is in the folder of outgoing files."""
    return path.parts[-3:-2] == (SENT,)


def make_path_pattern(folder: Path) -> re.Pattern[str]:
    """Compile a pattern for the files of a conversation in a text, by their paths here or in other homes."""
    here, end = re.escape(str(folder)), re.escape("/".join((FOLDER, *folder.parts[-2:])))
    elsewhere = rf"[^\s\"'()\[\]]{{0,{LONGEST_HOME}}}/{end}"  # bounded: a text may be crafted to be slow
    return re.compile(rf"(?:{here}|{elsewhere})/(?P<name>{RECEIVED_NAME.pattern})")


def move_fetched(part: Path, place: Path, changed: float) -> None:
    """Move a fetched file to its place, with its original time, by which it expires."""
    os.utime(part, (changed, changed))
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part.replace(place)

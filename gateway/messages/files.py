"""The files of conversations, by their places in this home.

A file is in the folder of its conversation. Its key is its path below the folder of all files. So a path in the journal
is recognized by its end, also after the home was moved, or if another gateway wrote it.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gateway.files.folders import FOLDER, RECEIVED_NAME, key_of
from gateway.messages.message import Attachment, Message, Reply
from gateway.messages.steps import Step, ToolStarted
from gateway.messages.transcript import Entry
from gateway.threads import run_in_thread

LONGEST_HOME = 300  # characters of a path in a text

log = logging.getLogger(__name__)


class HomeFiles:
    """The files in the folder of a gateway that shares them with no other; `SharedFiles` also fetches those of others.

    Its methods raise EngineError if a shared store does not answer.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, path: Path) -> None:
        """Share a file of a conversation; any other file stays private. Raises OSError if it cannot be read."""

    async def share(self, reply: Reply, session_key: str) -> Reply:  # noqa: ARG002 - others store them by it
        """Return the reply with shared files, because another gateway may serve its network."""
        return reply

    async def put_earlier(self, journal: Path, done: Path) -> None:
        """Share the files of this home with other gateways, once: `done` is there from then on.

        Files that others have are skipped, so the next start goes on with one that was cut off. Files that are older
        than the home's own journal stay here alone, since the journal was not taken along.
        """

    async def list_received(self, folder: Path) -> dict[str, int]:
        """Return the sizes of the files that this folder's conversation received, with everything made of them."""
        return await run_in_thread(_list_sizes, folder)

    async def find(self, path: str) -> str:
        """Return the local path of a file; unchanged if no gateway has it."""
        if not (key := key_of(Path(path))):
            return path
        place = self._folder / key
        try:
            return str(place) if await self._is_here(key, place) else path
        except OSError as error:
            log.warning("the file %s cannot be fetched: %s", key, error.strerror)
            return path

    async def _is_here(self, key: str, place: Path) -> bool:  # noqa: ARG002 - others fetch it by its key
        return await run_in_thread(place.exists)

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
        return entry if is_same else msgspec.structs.replace(entry, content=content, parts=parts)

    async def _find_said(self, path: str) -> str:
        """Return the local path of a file that an entry names."""
        return await self.find(path)


async def find_reply_files(files: HomeFiles, reply: Reply) -> Reply:
    """Return the reply with local paths of its files."""
    return replace(reply, attachments=await files.find_all(reply.attachments)) if reply.attachments else reply


async def find_event_files(files: HomeFiles, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's fields with local paths of their files; other fields may have the same names."""
    found = dict(fields)
    if isinstance(named := fields.get("attachments"), list | tuple):
        found["attachments"] = [await _find_event_file(files, one) for one in named]
    if file := fields.get("file"):
        found["file"] = await _find_event_file(files, file)
    return found


async def _find_event_file(files: HomeFiles, file: Any) -> Any:
    is_file = isinstance(file, Mapping) and isinstance(file.get("path"), str)
    return {**file, "path": await files.find(file["path"])} if is_file else file


async def find_message_files(files: HomeFiles, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages with local paths of their files."""
    messages = tuple(messages)
    if not any(one.attachments for one in messages):
        return messages
    found = [(one, await files.find_all(one.attachments)) for one in messages]
    return tuple(one if there == one.attachments else replace(one, attachments=there) for one, there in found)


def make_path_pattern(folder: Path) -> re.Pattern[str]:
    """Compile a pattern for the files of a conversation in a text, by their paths here or in other homes."""
    here, end = re.escape(str(folder)), re.escape("/".join((FOLDER, *folder.parts[-2:])))
    elsewhere = rf"[^\s\"'()\[\]]{{0,{LONGEST_HOME}}}/{end}"  # bounded: a text may be crafted to be slow
    return re.compile(rf"(?:{here}|{elsewhere})/(?P<name>{RECEIVED_NAME.pattern})")


def _list_sizes(folder: Path) -> dict[str, int]:
    return {one.name: one.stat().st_size for one in folder.glob("*") if RECEIVED_NAME.fullmatch(one.name)}

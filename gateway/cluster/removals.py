"""Remove the files that another gateway removed, and forget the people whom another gateway has forgotten.

The records for this contain no name: only the person's pseudonym, which a gateway that still has the name can compute,
and digests of files.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import msgspec

from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.engine.interface import Engine, NewRecord, Record
from gateway.errors import AccessError
from gateway.files.agent_folders import BASES, find_known_place, make_chat_folder
from gateway.files.folders import key_of
from gateway.people.person import find_salt, make_pseudonym, parse_person
from gateway.records import records, subjects
from gateway.records.names import KnownNames
from gateway.sessions.removal import digest_of
from gateway.threads import run_in_thread
from gateway.usage.totals import RunningTotals

CLOCKS_APART = 10.0  # seconds between the clocks of two hosts


class ForgottenPeople(msgspec.Struct, eq=False):
    """Notices about forgotten people: `tell` writes a notice for other gateways, and `take` follows theirs."""

    patterns = (subjects.FORGOTTEN_SUBJECT,)

    engine: Engine
    totals: RunningTotals
    heard: HeardMessages
    chats: ChatJournal
    names: KnownNames
    files: Path

    async def load(self) -> None:
        async for record, kept in records.read_all(self.engine, self.patterns[0], records.PersonForgotten):
            await self._remove_files(kept.pseudonym, record.ts)
            if record.ts > self.engine.clock.read() - records.DAY:  # data in memory is newer than an older record
                await self._forget(kept.pseudonym)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, records.PersonForgotten):
            await self._remove_files(kept.pseudonym, record.ts)
            await self._forget(kept.pseudonym)

    async def tell(self, pseudonym: str) -> None:
        """Notify other gateways that the records of the person with this pseudonym are gone."""
        kept = records.PersonForgotten(pseudonym=pseudonym)
        await self.engine.append(NewRecord(self.patterns[0], records.encode(kept), ttl=records.TRAFFIC_TTL))

    async def _remove_files(self, pseudonym: str, before: float) -> None:
        salt = await find_salt(self.engine)
        await run_in_thread(remove_files_of, self.files, salt, pseudonym, before)

    async def _forget(self, pseudonym: str) -> None:
        salt = await find_salt(self.engine)
        for name in self.totals.list_names() | self.heard.list_senders() | self.names.people.known.keys():
            try:
                person = parse_person(name)
            except AccessError:  # a sum of several people
                continue
            if make_pseudonym(salt, person) == pseudonym:
                self.totals.rename([name], pseudonym)
                await self.heard.forget(name)
                await self.names.forget(name)
        await self.chats.load()  # the settings of the person's direct chats are gone


def remove_files_of(folder: Path, salt: str, pseudonym: str, before: float) -> None:
    """Remove the person's files, except files newer than `before`: these may have come again."""
    for own in folder.glob("*/*"):
        try:
            person = parse_person(f"{unquote(own.parent.name).partition(':')[0]}:{unquote(own.name)}")
        except AccessError:  # a group chat
            continue
        if make_pseudonym(salt, person) == pseudonym and not own.is_symlink():
            find_known_place(folder.with_name(BASES), make_chat_folder(own).name).unlink(missing_ok=True)
            for path in (*sorted(own.rglob("*"), reverse=True), own):
                with suppress(OSError):  # a folder with newer files stays
                    if path.is_dir() and not path.is_symlink():
                        path.rmdir()
                    elif path.lstat().st_mtime <= before + CLOCKS_APART:
                        path.unlink()


class RemovalFollower(msgspec.Struct, eq=False):
    """Follows the notices of other gateways about removed files, and removes these files from our folder."""

    patterns = (subjects.REMOVED_FILES_SUBJECT,)

    _engine: Engine
    _folder: Path

    async def load(self) -> None:
        found = records.read_all(self._engine, subjects.REMOVED_FILES_SUBJECT, records.FileRemoval)
        removed = {digest: record.ts async for record, kept in found for digest in kept.files}
        if removed:
            await run_in_thread(remove_by_digest, self._folder, removed)

    async def take(self, record: Record) -> None:
        kept = records.decode(record.data)
        if isinstance(kept, records.FileRemoval):
            await run_in_thread(remove_by_digest, self._folder, dict.fromkeys(kept.files, record.ts))


def remove_by_digest(folder: Path, removed: Mapping[str, float]) -> None:
    """Remove the files of a folder with these digests, unless they came again after their removal."""
    for path in folder.glob("*/*/*"):
        with suppress(OSError):
            if key_of(path) and path.lstat().st_mtime <= removed.get(digest_of(path), 0.0) + CLOCKS_APART:
                path.unlink()

"""The record of the skills that each session has loaded.

The record names a folder in the home by its path below the home, so another gateway finds the copy in its own home.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway.engine.interface import Engine, NewRecord, Record, append_in_parts
from gateway.records import records
from gateway.records.stores import make_value_put, read_store

LOADED_OWNER = "skills/loaded"  # the store of the record in the journal; no hook has this name
RETENTION = 365 * records.DAY
UNLOADED_RETENTION = records.DAY  # a gateway that was cut off for less than this still learns what was unloaded


class LoadedSkill(NamedTuple):
    """A record about a skill and a session."""

    seq: int
    session: str
    folder: Path
    is_loaded: bool


class LoadedSkills(msgspec.Struct, eq=False):
    """Keeps the record of loaded skills, in memory and in the journal."""

    _engine: Engine
    _root: Path
    having: dict[Path, set[str]] = {}  # the folder of a skill, and the sessions that have it
    _seqs: dict[tuple[str, Path], int] = {}  # the last known record of each session and folder

    async def load(self) -> set[Path]:
        """Read the record in the journal, and return the folders of skills whose sessions changed."""
        before = {(session, folder) for folder, sessions in self.having.items() for session in sessions}
        found = {(one.session, one.folder): one async for one in self.read(LOADED_OWNER) if one.is_loaded}
        for one in found.values():
            self._note(one)
        for session, folder in before - found.keys():
            self._drop(session, folder)
        return {folder for _, folder in before ^ found.keys()}

    def take(self, record: Record) -> set[Path]:
        """Apply one record, and return the folder of the skill if its sessions changed."""
        kept = records.decode(record.data)
        if not isinstance(kept, records.StoredValue):
            return set()
        one = self._read_value(record.seq, kept)
        return {one.folder} if self._note(one) else set()

    async def write(self, sessions: Iterable[str], folders: Sequence[Path], *, is_loaded: bool) -> None:
        """Record which sessions loaded or unloaded the skills.

        The journal keeps records of unloading for a while, so that other gateways see them.
        """
        pairs = [(session, folder) for session in sessions for folder in folders]
        puts = [self.make_put(LOADED_OWNER, *pair, is_loaded=is_loaded) for pair in pairs]
        for pair, put, seq in zip(pairs, puts, await append_in_parts(self._engine, puts), strict=True):
            self._note(LoadedSkill(seq, *pair, is_loaded))
            await self._engine.purge(put.subject, seq - 1)

    def make_put(self, owner: str, session: str, folder: Path, *, is_loaded: bool = True) -> NewRecord:
        root = self._root
        name = str(folder.relative_to(root) if folder.is_relative_to(root) else folder)
        value = {"session": session, "folder": name} | ({} if is_loaded else {"loaded": False})
        ttl = RETENTION if is_loaded else UNLOADED_RETENTION
        return make_value_put(owner, f"{session}/{name}", value, ttl=ttl)

    async def read(self, owner: str) -> AsyncIterator[LoadedSkill]:
        """Yield the records in the store of this owner."""
        async for record, kept in read_store(self._engine, owner):
            yield self._read_value(record.seq, kept)

    def _read_value(self, seq: int, kept: records.StoredValue) -> LoadedSkill:
        folder = self._root / kept.value["folder"]
        return LoadedSkill(seq, kept.value["session"], folder, kept.value.get("loaded", True))

    def _note(self, one: LoadedSkill) -> bool:
        """Note a record, and return True if the record changes whether the session has the skill."""
        if one.seq <= self._seqs.get((one.session, one.folder), 0):
            return False
        self._seqs[one.session, one.folder] = one.seq
        had_it = one.session in self.having.get(one.folder, ())
        if one.is_loaded:
            self.having.setdefault(one.folder, set()).add(one.session)
        elif had_it:
            self._drop(one.session, one.folder)
        return had_it != one.is_loaded

    def _drop(self, session: str, folder: Path) -> None:
        self.having[folder].discard(session)
        if not self.having[folder]:
            del self.having[folder]

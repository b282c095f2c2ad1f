"""Which conversation has which skill; `hooks/` in a skill's folder is a place of hooks as long as one has it.

They hear the conversations that have it, and no other; all of those share the one process of a hook. Which conversation
has which skill stands in the journal, so that a restart changes nothing: the model still follows the skill's text then.
For the same reason a conversation that ends puts its skills aside, and has them again when somebody goes back to it;
one that begins as a copy of another has those of the other.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio

from gateway import record_subjects, records
from gateway.agent import Skill
from gateway.config.home import Home
from gateway.daemon.installed_skills import find_skill_folder
from gateway.engine import Engine, NewRecord
from gateway.hermes.sources import HermesFolderSource
from gateway.hooks import HookRegistry
from gateway.hooks.folders.sources import Source

HOOKS_FOLDER = "hooks"
LOADED_OWNER = "skills/loaded"  # whose store it is in the journal; no hook has such a name
RETENTION = 365 * records.DAY


class SkillHooks:
    """`follow` is awaited when other places of hooks (`sources`) count from now on."""

    def __init__(self, engine: Engine, follow: Callable[[], Awaitable[None]], home: Home) -> None:
        self._engine = engine
        self._follow = follow
        self._home = home
        self._having: dict[Path, set[str]] = {}  # a skill's folder, and the sessions that have it
        self._lock = anyio.Lock()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The places of their hooks, each for the conversations that have the skill."""
        return tuple(
            HermesFolderSource(folder / HOOKS_FOLDER, f"skill {folder.name}", conversations=frozenset(sessions))
            for folder, sessions in sorted(self._having.items())
            if (folder / HOOKS_FOLDER).is_dir()
        )

    async def load(self) -> None:
        """What an earlier life of the gateway wrote down."""
        for session, folder in await self._kept(LOADED_OWNER):
            self._having.setdefault(folder, set()).add(session)
        await self.replace_folders()

    async def replace_folders(self) -> None:
        """Who has a skill has what was installed in its place, and its hooks: a guard goes on guarding."""
        async with self._lock:
            for old in [*self._having]:
                if (new := find_skill_folder(self._home, old)) == old:
                    continue
                sessions = self._having.pop(old)
                self._having.setdefault(new, set()).update(sessions)
                await self._engine.append(*(_put_of(LOADED_OWNER, session, new) for session in sessions))
                for session in sessions:
                    await self._purge(session, old)

    def attend(self, registry: HookRegistry) -> None:
        """Notice how conversations end and begin."""
        registry.watch("session:end", self._end)
        registry.watch("session:start", self._begin)

    async def changed(self, session: str, action: str, skill: Skill) -> Sequence[str]:
        """A conversation has loaded or unloaded a skill; when this returns, its hooks hear that conversation, or not.

        No tools come or go with them.
        """
        if action == "load":
            await self._add(session, [skill.folder])
        elif action == "unload":
            await self._remove(session, [skill.folder])
        return ()

    async def _end(self, _name: str, event: Any) -> None:
        session, heir = event["session_id"], event.get("new_session_id")
        folders = self.list_loaded(session)
        if not folders:
            return
        puts = [_put_of(ended_owner_of(session), session, folder) for folder in folders]
        await self._engine.append(*puts)
        await self._remove(session, folders)
        if event.get("reason") == "branch" and heir:
            await self._add(heir, folders)

    async def _begin(self, _name: str, event: Any) -> None:
        session = event["session_id"]
        folders = [find_skill_folder(self._home, folder) for _, folder in await self._kept(ended_owner_of(session))]
        if folders:
            await self._add(session, folders)
            await self._engine.purge(record_subjects.hook_store_subject_of(ended_owner_of(session)))

    async def _add(self, session: str, folders: Sequence[Path]) -> None:
        async with self._lock:
            new = [folder for folder in folders if session not in self._having.get(folder, ())]
            if new:
                await self._engine.append(*(_put_of(LOADED_OWNER, session, folder) for folder in new))
                for folder in new:
                    self._having.setdefault(folder, set()).add(session)
                await self._follow_hooks(new)

    async def _remove(self, session: str, folders: Iterable[Path]) -> None:
        async with self._lock:
            gone = [folder for folder in folders if session in self._having.get(folder, ())]
            for folder in gone:
                await self._purge(session, folder)
                self._having[folder].discard(session)
                if not self._having[folder]:
                    del self._having[folder]
            await self._follow_hooks(gone)

    async def _follow_hooks(self, changed: Iterable[Path]) -> None:
        if any((folder / HOOKS_FOLDER).is_dir() for folder in changed):
            await self._follow()

    def list_loaded(self, session: str) -> list[Path]:
        """The folders of the skills that a conversation has."""
        return [folder for folder, sessions in self._having.items() if session in sessions]

    async def _purge(self, session: str, folder: Path) -> None:
        await self._engine.purge(record_subjects.hook_store_subject_of(LOADED_OWNER, _key_of(session, folder)))

    async def _kept(self, owner: str) -> list[tuple[str, Path]]:
        found = records.read_all(self._engine, record_subjects.hook_store_subject_of(owner), records.StoredValue)
        return [(kept.value["session"], Path(kept.value["folder"])) async for _, kept in found]


def ended_owner_of(session: str) -> str:
    """Whose store it is in which the skills of a conversation that ended are kept."""
    return f"skills/{session}"


def _put_of(owner: str, session: str, folder: Path) -> NewRecord:
    key = _key_of(session, folder)
    kept = records.StoredValue(hook=owner, key=key, value={"session": session, "folder": str(folder)})
    return NewRecord(record_subjects.hook_store_subject_of(owner, key), records.encode(kept), ttl=RETENTION)


def _key_of(session: str, folder: Path) -> str:
    return f"{session}/{folder}"

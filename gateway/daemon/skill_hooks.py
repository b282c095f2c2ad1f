"""The skills of the conversations. `hooks/` in a skill's folder is a place of hooks while a conversation has the skill.

These hooks get only the events of conversations that have the skill; one process of a hook serves all these
conversations. The journal keeps the skills of each conversation, since the model must still follow them after a
restart. For the same reason, a conversation that ends keeps its skills for the person who goes back to it, and a copy
of a conversation has the same skills.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio

from gateway.agent import Skill
from gateway.agent.skills import FILE as SKILL_FILE
from gateway.config.home import Home
from gateway.daemon.dialects import make_folder_source
from gateway.daemon.installed_skills import HOOKS_FOLDER, find_skill_folder
from gateway.daemon.loaded_skills import LOADED_OWNER, LoadedSkills
from gateway.engine.interface import Engine, Record
from gateway.hooks import HookRegistry
from gateway.hooks.places.sources import Source
from gateway.records import subjects


class SkillHooks:
    """The skills of all conversations, and the places of hooks (`sources`) in the folders of these skills."""

    patterns = (subjects.hook_store_subject_of(LOADED_OWNER),)

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._home = home
        self._loaded = LoadedSkills(engine, home.root)
        self._follow: Callable[[], Awaitable[None]] | None = None
        self._lock = anyio.Lock()

    @property
    def sources(self) -> tuple[Source, ...]:
        """List the skills' places of hooks, each for the conversations that have the skill."""
        return tuple(
            make_folder_source(folder / HOOKS_FOLDER, f"skill {folder.name}", frozenset(sessions))
            for folder, sessions in sorted(self._loaded.having.items())
            if has_place_of_hooks(folder)
        )

    async def load(self) -> None:
        """Load the skills that earlier runs and other gateways wrote to the journal."""
        async with self._lock:
            await self._reload_places(await self._loaded.load())
        await self.replace_folders()

    async def take(self, record: Record) -> None:
        async with self._lock:
            await self._reload_places(self._loaded.take(record))

    async def replace_folders(self) -> None:
        """Replace the folders of updated skills for all conversations, so that their guards still apply."""
        async with self._lock:
            for old in [*self._loaded.having]:
                if (new := find_skill_folder(self._home, old)) != old:
                    sessions = self._loaded.having[old].copy()
                    await self._loaded.write(sessions, [new], is_loaded=True)
                    await self._loaded.write(sessions, [old], is_loaded=False)

    def attend(self, registry: HookRegistry, follow: Callable[[], Awaitable[None]]) -> None:
        """Watch the beginnings and ends of conversations. Await `follow` whenever skills bring or remove hooks."""
        self._follow = follow
        registry.watch("session:end", self._end)
        registry.watch("session:start", self._begin)

    async def changed(self, session: str, action: str, skill: Skill) -> Sequence[str]:
        """Note that a conversation loaded or unloaded a skill; its events start or stop for the hooks of the skill.

        Return no names, since a skill adds and removes no tools.
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
        owner = ended_owner_of(session)
        await self._engine.append(*(self._loaded.make_put(owner, session, folder) for folder in folders))
        await self._remove(session, folders)
        if event.get("reason") == "branch" and heir:
            await self._add(heir, folders)

    async def _begin(self, _name: str, event: Any) -> None:
        session = event["session_id"]
        owner = ended_owner_of(session)
        kept = [one.folder async for one in self._loaded.read(owner)]
        if kept:
            await self._add(session, [find_skill_folder(self._home, folder) for folder in kept])
            await self._engine.purge(subjects.hook_store_subject_of(owner))

    async def _add(self, session: str, folders: Sequence[Path]) -> None:
        async with self._lock:
            had = self.list_loaded(session)
            new = [folder for folder in folders if folder not in had]
            await self._loaded.write([session], new, is_loaded=True)
            await self._reload_places(new)

    async def _remove(self, session: str, folders: Iterable[Path]) -> None:
        async with self._lock:
            had = self.list_loaded(session)
            gone = [folder for folder in folders if folder in had]
            await self._loaded.write([session], gone, is_loaded=False)
            await self._reload_places(gone)

    async def _reload_places(self, changed: Iterable[Path]) -> None:
        if self._follow and any(map(has_place_of_hooks, changed)):
            await self._follow()

    def list_loaded(self, session: str) -> list[Path]:
        """List the folders of the skills that a conversation has."""
        return [folder for folder, sessions in self._loaded.having.items() if session in sessions]

    def list_missing(self) -> list[str]:
        """List the names of skills that conversations have and this home lacks."""
        return sorted({folder.name for folder in self._loaded.having if is_missing(folder)})


def has_place_of_hooks(folder: Path) -> bool:
    """Return True if the skill has hooks. A missing skill counts, since its folder may appear later with hooks."""
    return (folder / HOOKS_FOLDER).is_dir() or is_missing(folder)


def is_missing(folder: Path) -> bool:
    return not (folder / SKILL_FILE).is_file()


def ended_owner_of(session: str) -> str:
    """Return the owner of the store that keeps the skills of an ended conversation."""
    return f"skills/{session}"

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

from gateway.agent import Skill
from gateway.agent.skills import FILE as SKILL_FILE
from gateway.config.home import Home
from gateway.daemon.installed_skills import HOOKS_FOLDER, find_skill_folder
from gateway.daemon.loaded_skills import LOADED_OWNER, LoadedSkills
from gateway.engine.interface import Engine, Record
from gateway.hermes.sources import HermesFolderSource
from gateway.hooks import HookRegistry
from gateway.hooks.folders.sources import Source
from gateway.records import subjects


class SkillHooks:
    """The skills of all conversations, and the places of hooks (`sources`) that they bring."""

    patterns = (subjects.hook_store_subject_of(LOADED_OWNER),)

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._home = home
        self._loaded = LoadedSkills(engine, home.root)
        self._follow: Callable[[], Awaitable[None]] | None = None
        self._lock = anyio.Lock()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The places of their hooks, each for the conversations that have the skill."""
        return tuple(
            HermesFolderSource(folder / HOOKS_FOLDER, f"skill {folder.name}", conversations=frozenset(sessions))
            for folder, sessions in sorted(self._loaded.having.items())
            if has_place_of_hooks(folder)
        )

    async def load(self) -> None:
        """What an earlier life of the gateway wrote down, or another gateway."""
        async with self._lock:
            await self._reload_places(await self._loaded.load())
        await self.replace_folders()

    async def take(self, record: Record) -> None:
        async with self._lock:
            await self._reload_places(self._loaded.take(record))

    async def replace_folders(self) -> None:
        """Who has a skill has what was installed in its place, and its hooks: a guard goes on guarding."""
        async with self._lock:
            for old in [*self._loaded.having]:
                if (new := find_skill_folder(self._home, old)) != old:
                    sessions = self._loaded.having[old].copy()
                    await self._loaded.write(sessions, [new], is_loaded=True)
                    await self._loaded.write(sessions, [old], is_loaded=False)

    def attend(self, registry: HookRegistry, follow: Callable[[], Awaitable[None]]) -> None:
        """Notice how conversations end and begin. From now on hooks come and go: then `follow` is awaited."""
        self._follow = follow
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
        """The folders of the skills that a conversation has."""
        return [folder for folder, sessions in self._loaded.having.items() if session in sessions]

    def list_missing(self) -> list[str]:
        """The names of skills that conversations have, and that this home has not."""
        return sorted({folder.name for folder in self._loaded.having if is_missing(folder)})


def has_place_of_hooks(folder: Path) -> bool:
    """A skill that is missing may be brought at any time, and its hooks are to run from then on."""
    return (folder / HOOKS_FOLDER).is_dir() or is_missing(folder)


def is_missing(folder: Path) -> bool:
    return not (folder / SKILL_FILE).is_file()


def ended_owner_of(session: str) -> str:
    """Whose store it is in which the skills of a conversation that ended are kept."""
    return f"skills/{session}"

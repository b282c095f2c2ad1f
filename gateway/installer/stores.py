"""The names of an installed hook's data: its store in the journal, and the folder of its data.

A name is made of the hook's own name and its source, whatever the version: another hook of the same name finds none of
this one's data, and this one finds all of it when it is installed again. The owner may give it the data of another one.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

import msgspec

from gateway.config.home import Home
from gateway.hooks.manifests.installed import HooksLock, InstalledHook, InstalledSkill, UnusedStore
from gateway.installer.fetched_hook import FetchedHook
from gateway.installer.fetched_skill import FetchedSkill
from gateway.installer.indexes import OWN_INDEX, is_own_index
from gateway.installer.source import remove_version

DIGITS = 32  # of a hash: with fewer, a stranger could find a URL with the same ones
Origin: TypeAlias = FetchedHook | FetchedSkill | InstalledHook | InstalledSkill
"""An entry that names its source."""


def make_store_key(home: Home, name: str, origin: Origin) -> str:
    """Make the key from the hook's name and a mark of its source, or of the source of its skill."""
    index = OWN_INDEX.name if is_own_index(home, origin.index) else origin.index
    skill = f" skill {_name_of(origin)}" if isinstance(origin, FetchedSkill | InstalledSkill) else ""
    where = f"index {index}{skill}" if index else remove_version(origin.source)
    return f"{name}@{hashlib.sha256(where.encode('utf-8', 'surrogateescape')).hexdigest()[:DIGITS]}"


def _name_of(skill: FetchedSkill | InstalledSkill) -> str:
    """Return the skill's name: an index has skills of many authors, which may all bring a hook of one name."""
    return skill.name if isinstance(skill, FetchedSkill) else PurePosixPath(skill.path).name


def read_stores(home: Home, lock: HooksLock) -> Mapping[str, str]:
    """Return the names of stores that differ from their keys; an earlier version used the hooks' names."""
    now = {make_store_key(home, name, origin): hook.stored_as or name for name, hook, origin in _list_hooks(lock)}
    return {key: stored_as for key, stored_as in {**now, **lock.stores}.items() if stored_as != key}


def _list_hooks(lock: HooksLock) -> Iterator[tuple[str, InstalledHook, InstalledHook | InstalledSkill]]:
    """Yield all installed hooks, each with the entry that names its source."""
    yield from ((name, hook, hook) for name, hook in lock.list())
    for _, skill in lock.list_skills():
        yield from ((name, hook, skill) for name, hook in skill.hooks.items())


def find_data(home: Home, name: str) -> Path:
    """Return the folder of an installed hook's data."""
    hook = dict(HooksLock(home.hooks_lock).list()).get(name)
    return home.hook_data / (hook.stored_as if hook and hook.stored_as else name)


def find_other_store(home: Home, name: str, origin: Origin) -> UnusedStore | None:
    """Return the data of another hook of this name, present or last; None also if this one has data."""
    lock, key = HooksLock(home.hooks_lock), make_store_key(home, name, origin)
    own = read_stores(home, lock).get(key, key)
    left = list_unused_stores(lock, {}).get(name, UnusedStore(stored_as=name))
    is_other = left.stored_as != own and (home.hook_data / left.stored_as).is_dir()
    return left if is_other and not (home.hook_data / own).is_dir() else None


def list_unused_stores(lock: HooksLock, after: Mapping[str, InstalledHook | msgspec.Raw]) -> Mapping[str, UnusedStore]:
    """Return the stores that are left when these hooks replace the installed ones."""
    left = dict(lock.unused_stores)
    for name, hook in lock.list():
        stored_as, now = hook.stored_as or name, after.get(name)
        if not (isinstance(now, InstalledHook) and (now.stored_as or name) == stored_as):
            left[name] = UnusedStore(stored_as=stored_as, source=hook.index or hook.source)
    return left

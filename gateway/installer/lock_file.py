"""The installed hooks and skills: their folders, and `hooks.lock`, which names them. Only this module writes both.

An entry is installed once the lock names its folder: the lock is written last, in one step. So an interruption leaves
the earlier state, and at most an unnamed folder, which is removed the next time.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from gateway.config.home import Home
from gateway.errors import FULL_DISK, HookError
from gateway.files.folders import lock_path
from gateway.hooks.manifests.installed import (
    INSTALLED_FOLDER,
    LOCK_VERSION,
    SKILLS_FOLDER,
    HooksLock,
    InstalledHook,
    InstalledSkill,
    Kind,
)
from gateway.hooks.places.installed_source import PACKAGES_FOLDER, find_packages, packages_folder_of
from gateway.hooks.places.switches import remove_leftovers, write_atomically
from gateway.hooks.places.trusted_copy import has_digest, has_packages, make_digest, read_whole_folder
from gateway.installer.fetched_hook import FetchedHook
from gateway.installer.fetched_skill import BROUGHT_FOLDER, FetchedSkill
from gateway.installer.stores import list_unused_stores, make_store_key, read_stores

WORK_PREFIX = ".work-"


@contextmanager
def open_workspace(home: Home) -> Iterator[Path]:
    """Open a temporary folder for fetched files.

    Raises:
        HookError: another process installs at this moment, or the disk is full.
    """
    home.installed_hooks.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with lock_path(home.installed_hooks):
            for left in home.installed_hooks.glob(f"{WORK_PREFIX}*"):
                remove_tree(left)
            for file in (home.hooks_lock, home.hook_indexes):
                remove_leftovers(file)
            remove_unused(home)  # not earlier: an older version's process may have read its packages until now
            work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=home.installed_hooks))
            try:
                yield work
            finally:
                remove_tree(work)
    except BlockingIOError:
        raise HookError("another command installs hooks into this home at this moment; try again") from None
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        what = f"{error.strerror}: {home.installed_hooks}; what was installed before is as it was"
        raise HookError(f"{what}\nmake room there, and try again") from None


def read_installed(home: Home) -> Mapping[str, InstalledHook]:
    """Return the installed hooks by name. Raises HookError if the lock cannot be read."""
    return dict(_read_lock(home).list())


def read_installed_skills(home: Home) -> Mapping[str, InstalledSkill]:
    """Return the installed skills by name. Raises HookError if the lock cannot be read."""
    return dict(_read_lock(home).list_skills())


def list_unreadable(home: Home, kind: Kind) -> Collection[str]:
    """List the names of entries that cannot be read."""
    return [name for name, _ in _read_lock(home).list_unreadable(kind)]


def _read_lock(home: Home) -> HooksLock:
    lock = HooksLock(home.hooks_lock)
    if lock.trouble:
        raise HookError(lock.trouble)
    return lock


class InstalledChange(msgspec.Struct, frozen=True):
    """A change: the entries to install, in place of earlier ones of their names, and the names to remove."""

    hooks: Sequence[FetchedHook] = ()
    skills: Sequence[FetchedSkill] = ()
    gone_hooks: Collection[str] = ()
    gone_skills: Collection[str] = ()


def change_installed(home: Home, change: InstalledChange, work: Path) -> None:
    """Make the whole change or none of it.

    Everything is laid out first, and counts with the lock, which is written once. Folders that are no longer named are
    removed by `remove_unused`.

    Raises:
        HookError: a part of it changed meanwhile, or two skills bring hooks of one name; all is as it was.
        OSError: the disk is full; all is as it was.
    """
    _check_brought_names(home, change)
    stores = dict(read_stores(home, _read_lock(home)))
    stores |= {make_store_key(home, hook.name, hook): hook.stored_as for hook in change.hooks if hook.stored_as}
    entries = {
        hook.name: _make_entry(hook, f"{INSTALLED_FOLDER}/{hook.folder_name}", _find_store(home, hook, hook, stores))
        for hook in change.hooks
    }
    moves = [*_lay_out(home, change, entries, work / "staged")]
    skills = {skill.name: _make_skill_entry(home, skill, stores) for skill in change.skills}
    with ExitStack() as undo:
        for number, (staged, target) in enumerate(moves):
            if target.exists():
                _move(target, work / f"old-{number}", undo)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _move(staged, target, undo)
        _write(home, entries, skills, change, stores)
        undo.pop_all()


def _check_brought_names(home: Home, change: InstalledChange) -> None:
    """Raise HookError if two skills bring hooks of one name.

    Only one of the hooks would run, and sessions with the other skill would lack a guard.
    """
    replaced = {*change.gone_skills, *(skill.name for skill in change.skills)}
    others = {name: skill for name, skill in read_installed_skills(home).items() if name not in replaced}
    owners = {hook: name for name, skill in others.items() for hook in skill.hooks}
    for skill in change.skills:
        for hook in skill.hooks:
            if (owner := owners.setdefault(hook.name, skill.name)) != skill.name:
                what = f"the skill {skill.name} brings a hook {hook.name}, and so does {owner}: one alone would run"
                raise HookError(f"{what}\nremove that one first: hermes-gateway skills remove {owner}")


def _lay_out(
    home: Home, change: InstalledChange, entries: Mapping[str, InstalledHook], place: Path
) -> Iterator[tuple[Path, Path]]:
    """Yield each folder as it will be installed, and its place; one that is there already is left alone."""
    for hook in change.hooks:
        target, entry = home.installed_hooks / hook.folder_name, entries[hook.name]
        if hook.packages_folder and not has_installed_packages(home, entry):
            name = packages_folder_of(hook.folder_name, entry.packages_digest)
            yield hook.packages_folder, home.installed_hooks / PACKAGES_FOLDER / name
        if not has_digest(target, hook.digest):
            yield _copy_whole(hook, place / hook.folder_name), target
    for skill in change.skills:
        target = home.installed_skills / skill.folder_name
        if not has_digest(target, skill.digest):
            yield _copy_whole(skill, place / SKILLS_FOLDER / skill.folder_name), target


def _copy_whole(found: FetchedHook | FetchedSkill, staged: Path) -> Path:
    read_whole_folder(found.folder).write_to(staged)
    if not has_digest(staged, found.digest):
        raise HookError(f"{found.name} changed while it was being installed; nothing was")
    return staged


def _move(source: Path, target: Path, undo: ExitStack) -> None:
    source.rename(target)
    undo.callback(target.rename, source)


def _find_store(home: Home, hook: FetchedHook, origin: FetchedHook | FetchedSkill, stores: Mapping[str, str]) -> str:
    key = make_store_key(home, hook.name, origin)
    return stores.get(key, key)


def _make_entry(hook: FetchedHook, path: str, stored_as: str) -> InstalledHook:
    return InstalledHook(
        source=hook.source,
        index=hook.index,
        commit=hook.commit,
        digest=hook.digest,
        path=path,
        packages=hook.packages,
        packages_digest=make_digest(hook.packages_folder) if hook.packages_folder else "",
        stored_as=stored_as,
        grants=hook.grants,
    )


def _make_skill_entry(home: Home, skill: FetchedSkill, stores: Mapping[str, str]) -> InstalledSkill:
    path = f"{INSTALLED_FOLDER}/{SKILLS_FOLDER}/{skill.folder_name}"
    return InstalledSkill(
        source=skill.source,
        index=skill.index,
        commit=skill.commit,
        digest=skill.digest,
        path=path,
        hooks={
            hook.name: _make_entry(hook, f"{path}/{BROUGHT_FOLDER}/{hook.name}", _find_store(home, hook, skill, stores))
            for hook in skill.hooks
        },
    )


def has_installed_packages(home: Home, entry: InstalledHook) -> bool:
    """Return True if the entry's packages are unchanged."""
    return has_packages(find_packages(home.installed_hooks, entry), entry.packages_digest)


def remove_unused(home: Home) -> None:
    """Remove the folders that the lock does not name; those of unreadable entries stay."""
    lock = _read_lock(home)
    hooks, skills = [one for _, one in lock.list()], [one for _, one in lock.list_skills()]
    named = {home.own_folder / one.path for one in hooks} | {find_packages(home.installed_hooks, one) for one in hooks}
    named |= {(home.own_folder / one.path).parent for one in skills}
    unreadable = {name for name, _ in (*lock.list_unreadable(), *lock.list_unreadable("skill"))}
    for place in (home.installed_hooks, home.installed_hooks / PACKAGES_FOLDER, home.installed_skills):
        for folder in place.glob("*@*"):
            if folder not in named and folder.name.rpartition("@")[0] not in unreadable:
                remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if its files are read-only."""
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _write(
    home: Home,
    hooks: Mapping[str, InstalledHook],
    skills: Mapping[str, InstalledSkill],
    change: InstalledChange,
    stores: Mapping[str, str],
) -> None:
    """Write the lock. Unreadable entries stay, unless they were installed again or removed."""
    lock = _read_lock(home)
    all_skills = {**dict(lock.list_unreadable("skill")), **dict(lock.list_skills()), **skills}
    installed: dict[str, InstalledHook | msgspec.Raw] = {**dict(lock.list_unreadable()), **dict(lock.list()), **hooks}
    installed = {name: one for name, one in sorted(installed.items()) if name not in change.gone_hooks}
    found = {
        "version": LOCK_VERSION,
        "hooks": installed,
        "skills": {name: one for name, one in sorted(all_skills.items()) if name not in change.gone_skills},
        "stores": stores,
        "unused_stores": list_unused_stores(lock, installed),
    }
    write_atomically(home.hooks_lock, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")

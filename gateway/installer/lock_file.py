"""What is installed: the folders, and `hooks.lock`, which names them. Its one writer.

A hook is installed when the lock names its folder: that is written last, in one go. So whatever is cut off leaves what
was there before, and at most a folder that nobody names, which goes at the next time.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gateway.config.home import Home
from gateway.errors import HookError
from gateway.hermes.installed_hooks import PACKAGES_FOLDER
from gateway.hooks.folders.installed import (
    INSTALLED_FOLDER,
    LOCK_VERSION,
    SKILLS_FOLDER,
    HooksLock,
    InstalledHook,
    InstalledSkill,
)
from gateway.hooks.folders.switches import write_atomically
from gateway.hooks.folders.trusted_copy import read_whole_folder
from gateway.installer.fetched_hook import FetchedHook
from gateway.installer.fetched_skill import BROUGHT_FOLDER, FetchedSkill

WORK_PREFIX = ".work-"


@contextmanager
def open_workspace(home: Home) -> Iterator[Path]:
    """A folder for what is fetched; it goes afterwards. HookError: somebody else installs at this moment."""
    home.installed_hooks.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(home.installed_hooks, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in home.installed_hooks.glob(f"{WORK_PREFIX}*"):
            remove_tree(left)
        remove_unused(home)  # an older version's process may still read its packages for a moment; not until now
        work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=home.installed_hooks))
        try:
            yield work
        finally:
            remove_tree(work)
    except BlockingIOError:
        raise HookError("somebody else installs hooks into this home at this moment; try again") from None
    finally:
        os.close(folder)


def read_installed(home: Home) -> Mapping[str, InstalledHook]:
    """By name. HookError: the lock cannot be read."""
    return dict(_read_lock(home).list())


def read_installed_skills(home: Home) -> Mapping[str, InstalledSkill]:
    """Likewise."""
    return dict(_read_lock(home).list_skills())


def _read_lock(home: Home) -> HooksLock:
    lock = HooksLock(home.hooks_lock)
    if lock.trouble:
        raise HookError(lock.trouble)
    return lock


def add_installed(home: Home, hook: FetchedHook) -> None:
    """Its folder, its packages, and its name in the lock, in place of what went by that name."""
    target = home.installed_hooks / hook.folder_name
    packages = home.installed_hooks / PACKAGES_FOLDER / hook.folder_name
    for old in (target, packages):
        remove_tree(old)
    staged = hook.folder.with_name(hook.folder_name)
    read_whole_folder(hook.folder).write_to(staged)
    if read_whole_folder(staged).digest != hook.digest:
        raise HookError(f"{hook.name} changed while it was being installed; nothing was")
    if hook.packages_folder:
        packages.parent.mkdir(mode=0o700, exist_ok=True)
        hook.packages_folder.rename(packages)
    staged.rename(target)
    entry = _make_entry(hook, f"{INSTALLED_FOLDER}/{hook.folder_name}")
    _write(home, {**read_installed(home), hook.name: entry}, read_installed_skills(home))


def _make_entry(hook: FetchedHook, path: str) -> InstalledHook:
    return InstalledHook(
        source=hook.source,
        index=hook.index,
        commit=hook.commit,
        digest=hook.digest,
        path=path,
        packages=hook.packages,
        grants=hook.grants,
    )


def remove_installed(home: Home, name: str) -> None:
    """It is installed no more; its folder goes with `remove_unused`."""
    hooks = {key: one for key, one in read_installed(home).items() if key != name}
    _write(home, hooks, read_installed_skills(home))


def add_installed_skill(home: Home, skill: FetchedSkill, work: Path) -> None:
    """Its folder in place of the one before, and then what was agreed to; cut off in between, it counts as changed."""
    staged, old = work / "staged", work / "old"
    read_whole_folder(skill.folder).write_to(staged)
    if read_whole_folder(staged).digest != skill.digest:
        raise HookError(f"{skill.name} changed while it was being installed; nothing was")
    target = home.installed_skills / skill.name
    target.parent.mkdir(mode=0o700, exist_ok=True)
    if target.exists():
        target.rename(old)
    staged.rename(target)
    path = f"{INSTALLED_FOLDER}/{SKILLS_FOLDER}/{skill.name}"
    entry = InstalledSkill(
        source=skill.source,
        index=skill.index,
        commit=skill.commit,
        digest=skill.digest,
        path=path,
        hooks={hook.name: _make_entry(hook, f"{path}/{BROUGHT_FOLDER}/{hook.name}") for hook in skill.hooks},
    )
    _write(home, read_installed(home), {**read_installed_skills(home), skill.name: entry})


def remove_installed_skill(home: Home, name: str) -> None:
    skills = {key: one for key, one in read_installed_skills(home).items() if key != name}
    _write(home, read_installed(home), skills)
    remove_tree(home.installed_skills / name)


def remove_unused(home: Home) -> None:
    """The folders that the lock does not name, or no longer; not those of a hook whose entry cannot be read."""
    lock = _read_lock(home)
    named, unreadable = {Path(one.path).name for _, one in lock.list()}, dict(lock.list_unreadable())
    for place in (home.installed_hooks, home.installed_hooks / PACKAGES_FOLDER):
        for folder in place.glob("*@*"):
            if folder.name not in named and folder.name.rpartition("@")[0] not in unreadable:
                remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Though its files are nobody's to write."""
    for place, _, _ in os.walk(folder):
        Path(place).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _write(home: Home, hooks: Mapping[str, InstalledHook], skills: Mapping[str, InstalledSkill]) -> None:
    """What cannot be read stays as it is, unless it was installed again."""
    lock = _read_lock(home)
    all_hooks = {**dict(lock.list_unreadable()), **hooks}
    all_skills = {**dict(lock.list_unreadable_skills()), **skills}
    sections = {"hooks": dict(sorted(all_hooks.items())), "skills": dict(sorted(all_skills.items()))}
    found = {"version": LOCK_VERSION, **sections}
    write_atomically(home.hooks_lock, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")

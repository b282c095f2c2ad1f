"""`hooks freeze` and `hooks sync`: all hooks and skills that are installed, and another home made the same."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from gateway.agent.skills import NAME as SKILL_NAME
from gateway.cli.hooks.install import notify_gateway, show_request
from gateway.cli.hooks.installer import NOBODY_ASKED, show_faults
from gateway.cli.hooks.skills import reload_skills, show_skill
from gateway.cli.output import ask_person, print_lines, print_note, show_json, show_progress
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.errors import ExitCode, HookError
from gateway.hooks.folders.installed import (
    INSTALLED_FOLDER,
    SKILLS_FOLDER,
    HooksLock,
    InstalledHook,
    InstalledSkill,
    list_missing_grants,
)
from gateway.hooks.folders.trusted_copy import PREFIX, has_digest
from gateway.installer.fetched_hook import NAME as HOOK_NAME
from gateway.installer.fetched_hook import FetchedHook, cut_digest, fetch_hook
from gateway.installer.fetched_skill import FetchedSkill, fetch_skill
from gateway.installer.index_file import Kind
from gateway.installer.indexes import find_listed, is_own_index, make_listed_source
from gateway.installer.lock_file import (
    InstalledChange,
    change_installed,
    has_all_packages,
    open_workspace,
    read_installed,
    read_installed_skills,
    remove_unused,
)
from gateway.installer.packages import is_lock_line
from gateway.installer.source import HookSource, limit_to_commit, parse_source
from gateway.logs.text import to_one_line

Entry = TypeVar("Entry", InstalledHook, InstalledSkill)

LOCAL = ("/", "git+file:")  # how a source begins that lies on one machine
DIGEST = re.compile(rf"{PREFIX}[0-9a-f]{{64}}\Z")


def run(args: argparse.Namespace, home: Home) -> int | None:
    if args.verb == "freeze":
        if faults := [*HooksLock(home.hooks_lock).list_faults()]:
            raise HookError("\n".join(faults))  # a home that is made the same would lack these
        hooks, skills = read_installed(home), read_installed_skills(home)
        show_json({"version": 1, "hooks": msgspec.to_builtins(hooks), "skills": msgspec.to_builtins(skills)})
        report_sources(home, {**hooks, **skills})
        return None
    prepare_home(home)
    if args.json and not args.yes:
        raise HookError(NOBODY_ASKED)
    return sync(args, home)


def report_sources(home: Home, entries: Mapping[str, InstalledHook | InstalledSkill]) -> None:
    """What another machine finds at the same path alone."""
    for name, one in entries.items():
        if one.source.startswith(LOCAL) and not is_own_index(home, one.index):
            print_note(f"! {name} comes from {one.source} of this machine: another one has to have it there, too")


def sync(args: argparse.Namespace, home: Home) -> int:
    """Nothing changes before all of it is there, is what was frozen, and somebody has said yes."""
    frozen = read_frozen(Path(args.file))
    show_faults(home)
    there, there_skills = read_installed(home), read_installed_skills(home)
    wanted, wanted_skills = dict(frozen.list()), dict(frozen.list_skills())
    gone, gone_skills = sorted(there.keys() - wanted.keys()), sorted(there_skills.keys() - wanted_skills.keys())
    new, new_skills = select_missing(home, wanted, there), select_missing(home, wanted_skills, there_skills)
    installed, removed = [*new, *new_skills], [*gone, *gone_skills]
    with open_workspace(home) as work:
        with show_progress("fetching what is not here"):
            hooks = [fetch_frozen(name, one, home, work) for name, one in new.items()]
            skills = [fetch_frozen_skill(name, one, home, work) for name, one in new_skills.items()]
        if not args.json:
            show_changes(hooks, skills, removed)
        if not (installed or removed):
            print_note("all is as it was frozen")
        elif not ask_person(f"Install {len(installed)} and remove {len(removed)}?", args.yes):
            return int(ExitCode.FAILED)
        change = InstalledChange(hooks, skills, gone, gone_skills)
        change_installed(home, change, work)
        report_change(home, change)
    if args.json:
        show_json({"installed": installed, "removed": removed})
    elif installed or removed:
        print_note(f"installed: {', '.join(installed) or 'none'}; removed: {', '.join(removed) or 'none'}")
    return int(ExitCode.OK)


def report_change(home: Home, change: InstalledChange) -> None:
    if change.hooks or change.gone_hooks:
        for name in [hook.name for hook in change.hooks] or [""]:
            notify_gateway(home, name)
    if change.skills or change.gone_skills:
        reload_skills(home)
    remove_unused(home)


def show_changes(hooks: Sequence[FetchedHook], skills: Sequence[FetchedSkill], gone: Sequence[str]) -> None:
    for hook in hooks:
        show_request(hook)
    for skill in skills:
        show_skill(skill)
    if gone:
        print_lines(to_one_line(f"to be removed: {', '.join(gone)}"), "")


def read_frozen(file: Path) -> HooksLock:
    """HookError: it is not what `hooks freeze` prints."""
    lock = HooksLock(file)
    if not file.is_file():
        raise HookError(f"{file} is not there\nhermes-gateway hooks freeze > {file} writes it, where the hooks are")
    if lock.trouble:
        raise HookError(lock.trouble.partition(";")[0])
    for fault in lock.list_faults():
        raise HookError(fault.partition(";")[0])
    for name, hook in lock.list():
        check_entry(f"{file}: hooks.{name}", HOOK_NAME, name, hook)
    for name, skill in lock.list_skills():
        check_entry(f"{file}: skills.{name}", SKILL_NAME, name, skill)
    return lock


def check_entry(place: str, names: re.Pattern[str], name: str, entry: InstalledHook | InstalledSkill) -> None:
    """HookError: `hooks freeze` has not written it. The file may be a stranger's, and its names become folders here."""
    folder = f"{name}@{cut_digest(entry.digest)}"
    own = [folder]
    if isinstance(entry, InstalledSkill):  # an earlier version laid it out as NAME
        own = [f"{SKILLS_FOLDER}/{folder}/{name}", f"{SKILLS_FOLDER}/{name}"]
    packages = () if isinstance(entry, InstalledSkill) else entry.packages
    for what, is_valid in (
        ("name is", names.match(name)),
        ("digest is", DIGEST.match(entry.digest)),
        ("path is", entry.path in [f"{INSTALLED_FOLDER}/{one}" for one in own]),
        ("packages are", all(map(is_lock_line, packages))),
    ):
        if not is_valid:
            wrong = f"{to_one_line(place)}: its {what} none that hooks freeze writes; nothing was changed"
            raise HookError(f"{wrong}\nhave the file written anew, where the hooks are: hermes-gateway hooks freeze")


def select_missing(home: Home, wanted: Mapping[str, Entry], there: Mapping[str, Entry]) -> Mapping[str, Entry]:
    return {name: one for name, one in wanted.items() if not is_installed(home, one, there.get(name))}


def is_installed(home: Home, wanted: Entry, there: Entry | None) -> bool:
    """Whether just that is installed, and lies there as it was installed."""
    if there is None or not has_digest(home.own_folder / there.path, there.digest):
        return False
    if isinstance(there, InstalledHook) and not has_all_packages(home, there):
        return False
    if isinstance(wanted, InstalledHook) and isinstance(there, InstalledHook) and wanted.packages != there.packages:
        return False
    if is_own_index(home, wanted.index) and is_own_index(home, there.index):  # it lies elsewhere on each machine
        return wanted.digest == there.digest
    return (wanted.digest, wanted.source, wanted.index) == (there.digest, there.source, there.index)


def find_frozen(kind: Kind, name: str, frozen: Entry, home: Home, work: Path) -> tuple[HookSource, Entry]:
    """Where it is to be had here, and the entry that says so.

    Raises:
        HookError: it lay on the machine on which it was frozen.
    """
    if is_own_index(home, frozen.index):
        known, listed = find_listed(kind, name, home, work, get_process_environment(), frozen.index)
        source = make_listed_source(known, listed)
        return source, msgspec.structs.replace(frozen, source=str(source), index=known.address)
    try:
        return limit_to_commit(parse_source(frozen.source), frozen.commit), frozen
    except HookError as error:
        if not frozen.source.startswith(LOCAL):
            raise
        what = f"{name}: {str(error).partition(chr(10))[0]}; it was frozen where it came from there"
        remedy = "put it there, or install it there from where both find it (git+https:, https:), and freeze again"
        raise HookError(f"{what}; nothing was changed\n{remedy}") from None


def fetch_frozen(name: str, frozen: InstalledHook, home: Home, work: Path) -> FetchedHook:
    """HookError: what lies there now is not what was frozen, or asks for more than was agreed to."""
    own = work / "hooks" / name
    own.mkdir(mode=0o700, parents=True)
    source, frozen = find_frozen("hook", name, frozen, home, own)
    hook = fetch_hook(source, own, get_process_environment(), frozen.source, frozen.packages)
    if (hook.name, hook.digest) != (name, frozen.digest):
        raise HookError(f"{name}: what lies at {frozen.source} is not what was frozen; nothing was changed")
    if more := "; ".join(list_missing_grants(hook.manifest, frozen.grants)):
        raise HookError(f"{name} asks for more than was agreed to when it was frozen: {more}; nothing was changed")
    return replace(hook, index=frozen.index)


def fetch_frozen_skill(name: str, frozen: InstalledSkill, home: Home, work: Path) -> FetchedSkill:
    """HookError: what lies there now is not what was frozen."""
    own = work / "skills" / name
    own.mkdir(mode=0o700, parents=True)
    source, frozen = find_frozen("skill", name, frozen, home, own)
    skill = fetch_skill(source, own, get_process_environment(), frozen.source)
    if (skill.name, skill.digest) != (name, frozen.digest):
        raise HookError(f"{name}: what lies at {frozen.source} is not what was frozen; nothing was changed")
    return replace(skill, index=frozen.index)

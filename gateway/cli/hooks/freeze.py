"""`hooks freeze` and `hooks sync`: all installed hooks and skills, and another home with the same ones."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from gateway.agent.skills import NAME as SKILL_NAME
from gateway.cli.hooks.install import HookInstaller, notify_gateway, report_other_data
from gateway.cli.hooks.installer import SHORT_COMMIT, Installer, show_changed_rights, show_faults
from gateway.cli.hooks.skills import SkillInstaller, reload_skills
from gateway.cli.output import ask_person, print_data, print_lines, print_note, show_json, show_progress
from gateway.config.home import Home, get_process_environment
from gateway.daemon.dialects import DIALECTS
from gateway.errors import ExitCode, HookError
from gateway.hooks.manifests.installed import (
    INSTALLED_FOLDER,
    SKILLS_FOLDER,
    HooksLock,
    InstalledHook,
    InstalledSkill,
    Kind,
    list_missing_grants,
)
from gateway.hooks.places.trusted_copy import PREFIX, has_digest
from gateway.installer.fetched_hook import NAME as HOOK_NAME
from gateway.installer.fetched_hook import FetchedHook, cut_digest, fetch_hook
from gateway.installer.fetched_skill import FetchedSkill, fetch_skill
from gateway.installer.index_file import ListedHook, ListedSkill
from gateway.installer.indexes import (
    IndexReader,
    IndexRecord,
    find_listed,
    is_own_index,
    list_indexes,
    make_listed_source,
)
from gateway.installer.lock_file import (
    InstalledChange,
    change_installed,
    has_installed_packages,
    open_workspace,
    read_installed,
    read_installed_skills,
    remove_unused,
)
from gateway.installer.packages import is_lock_line
from gateway.installer.repository import is_public_commit
from gateway.installer.source import HookSource, limit_to_commit, parse_source
from gateway.logs.text import to_one_line

Entry = TypeVar("Entry", InstalledHook, InstalledSkill)
Fetched = TypeVar("Fetched", FetchedHook, FetchedSkill)

LOCAL = ("/", "git+file:")  # the beginnings of sources on this machine
DIGEST = re.compile(rf"{PREFIX}[0-9a-f]{{64}}\Z")


def run(args: argparse.Namespace, home: Home) -> int | None:
    if args.verb == "freeze":
        if faults := [*HooksLock(home.hooks_lock).list_faults()]:
            raise HookError("\n".join(faults))  # a home that `sync` makes from the output would lack these
        hooks, skills = read_installed(home), read_installed_skills(home)
        show_json({"version": 1, "hooks": msgspec.to_builtins(hooks), "skills": msgspec.to_builtins(skills)})
        report_sources(home, {**hooks, **skills})
        return None
    return sync(args, home)


def report_sources(home: Home, entries: Mapping[str, InstalledHook | InstalledSkill]) -> None:
    """Warn about sources that another machine must have at the same path."""
    for name, one in entries.items():
        if one.source.startswith(LOCAL) and not is_own_index(home, one.index):
            print_note(f"! {name} comes from {one.source} of this machine: another one has to have it there, too")


def sync(args: argparse.Namespace, home: Home) -> int:
    """Make the home the same as the file: once all is fetched and checked, and a person has agreed."""
    hook_installer, skill_installer = HookInstaller(args, home), SkillInstaller(args, home)
    frozen = read_frozen(Path(args.file))
    show_faults(home)
    there, there_skills = read_installed(home), read_installed_skills(home)
    wanted, wanted_skills = dict(frozen.list()), dict(frozen.list_skills())
    gone, gone_skills = sorted(there.keys() - wanted.keys()), sorted(there_skills.keys() - wanted_skills.keys())
    removed = [*gone, *gone_skills]
    indexes = IndexReader(home, get_process_environment())
    with open_workspace(home) as work:
        with show_progress("fetching what is not here"):
            new = [*list_missing("hook", wanted, there, indexes, work)]
            new_skills = [*list_missing("skill", wanted_skills, there_skills, indexes, work)]
            hooks = [fetch_frozen(one, work) for one in new]
            skills = [fetch_frozen_skill(one, work) for one in new_skills]
            doubts = [*(check_commit(one, work) for one in hooks), *(check_commit(one, work) for one in skills)]
        missing: list[MissingEntry[InstalledHook] | MissingEntry[InstalledSkill]] = [*new, *new_skills]
        installed = [one.name for one in missing]
        if not args.json:
            show_changes(hook_installer, hooks, skill_installer, skills)
            if removed:
                print_lines(to_one_line(f"to be removed: {', '.join(removed)}"), "")
        weaker = [
            *show_weaker(hook_installer, there, hooks),
            *show_weaker(skill_installer, there_skills, skills),
            *show_missing_guards(args, {name: {name: there[name]} for name in gone}),
            *show_missing_guards(args, {name: there_skills[name].hooks for name in gone_skills}),
        ]
        for doubt in filter(None, (*(one.doubt for one in missing), *doubts)):
            print_note(f"! {doubt}")
        if not (installed or removed):
            print_note("all is as it was frozen")
        elif weaker and args.yes:
            what = f"{', '.join(weaker)} would guard less, and this run cannot ask you; nothing was changed"
            raise HookError(f"{what}\nhermes-gateway hooks sync {args.file}")
        elif not ask_person(f"Install {len(installed)} and remove {len(removed)}?", args.yes):
            return ExitCode.FAILED
        for hook in hooks:
            report_other_data(home, hook)
        change = InstalledChange(hooks, skills, gone, gone_skills)
        change_installed(home, change, work)
        report_change(home, change)
    if args.json:
        show_json({"installed": installed, "removed": removed})
    elif installed or removed:
        print_note(f"installed: {', '.join(installed) or 'none'}; removed: {', '.join(removed) or 'none'}")
    return ExitCode.OK


def report_change(home: Home, change: InstalledChange) -> None:
    if change.hooks or change.gone_hooks:
        for name in [hook.name for hook in change.hooks] or [""]:
            notify_gateway(home, name)
    if change.skills or change.gone_skills:
        reload_skills(home)
    remove_unused(home)


def show_changes(
    hook_installer: HookInstaller,
    hooks: Sequence[FetchedHook],
    skill_installer: SkillInstaller,
    skills: Sequence[FetchedSkill],
) -> None:
    for hook in hooks:
        hook_installer.show(hook)
    names = {hook.name for hook in hooks}
    for skill in skills:
        skill_installer.show(skill)
        if hidden := sorted(names & {hook.name for hook in skill.hooks}):
            print_data(f"! hooks above replace these of its hooks: {', '.join(hidden)}", "", "yellow")


def show_weaker(
    installer: Installer[Entry, Fetched], there: Mapping[str, Entry], found: Sequence[Fetched]
) -> Iterator[str]:
    """Show the entries that guard less than the installed ones, with the lost guards, and yield their names."""
    for one in found:
        if not (before := there.get(one.name)):
            continue
        update = installer.compare(before, one)
        if update.is_new and update.less:
            if not installer.args.json:
                print_data(to_one_line(f"{one.name}, beside what is installed now:"), "", "bold")
                show_changed_rights(update)
            yield one.name


def show_missing_guards(args: argparse.Namespace, gone: Mapping[str, Mapping[str, InstalledHook]]) -> Iterator[str]:
    """Show the entries to be removed that guard something, with their events, and yield their names.

    `gone`: their names, each with all its hooks.
    """
    for name, hooks in gone.items():
        if lost := sorted({event for hook in hooks.values() for event in hook.grants.intercepts}):
            if not args.json:
                print_data(to_one_line(f"{name}, which is removed, decides no more on {', '.join(lost)}"), "", "yellow")
            yield name


def read_frozen(file: Path) -> HooksLock:
    """Read a file of `hooks freeze`. Raises HookError for any other file."""
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
    """Raise HookError if `hooks freeze` cannot have written this entry.

    The file may be a stranger's, and its names become folders here.
    """
    own, packages = f"{name}@{cut_digest(entry.digest)}", () if isinstance(entry, InstalledSkill) else entry.packages
    folder = f"{SKILLS_FOLDER}/{own}/{name}" if isinstance(entry, InstalledSkill) else own
    for what, is_valid in (
        ("name is", names.match(name)),
        ("digest is", DIGEST.match(entry.digest)),
        ("path is", entry.path == f"{INSTALLED_FOLDER}/{folder}"),
        ("packages are", all(map(is_lock_line, packages))),
    ):
        if not is_valid:
            wrong = f"{to_one_line(place)}: its {what} none that hooks freeze writes; nothing was changed"
            raise HookError(f"{wrong}\nwrite the file again, where the hooks are: hermes-gateway hooks freeze")


@dataclass(frozen=True, slots=True)
class MissingEntry(Generic[Entry]):
    """A frozen entry that is not installed. `doubt`: why the index that the file names does not count."""

    name: str
    entry: Entry
    doubt: str = ""


def list_missing(
    kind: Kind, wanted: Mapping[str, Entry], there: Mapping[str, Entry], indexes: IndexReader, work: Path
) -> Iterator[MissingEntry[Entry]]:
    for name, frozen in wanted.items():
        if is_installed(indexes.home, frozen, there.get(name)):
            continue
        own = find_place(work, kind, name)
        own.mkdir(mode=0o700, parents=True)
        missing = check_index(kind, name, frozen, indexes, own)
        if not is_installed(indexes.home, missing.entry, there.get(name)):
            yield missing
        elif missing.doubt:
            print_note(f"! {missing.doubt}")


def find_place(work: Path, kind: Kind, name: str) -> Path:
    """Return the folder for the files of one entry."""
    return work / f"{kind}s" / name


def is_installed(home: Home, wanted: Entry, there: Entry | None) -> bool:
    """Return True if this entry is installed, and its files are unchanged."""
    if there is None or not has_digest(home.own_folder / there.path, there.digest):
        return False
    if isinstance(there, InstalledHook) and not has_installed_packages(home, there):
        return False
    if isinstance(wanted, InstalledHook) and isinstance(there, InstalledHook) and wanted.packages != there.packages:
        return False
    both_ours = is_own_index(home, wanted.index) and is_own_index(home, there.index)
    if both_ours or (wanted.index and wanted.index == there.index):  # the index decides on the source
        return wanted.digest == there.digest
    return (wanted.digest, wanted.source, wanted.index) == (there.digest, there.source, there.index)


def check_index(kind: Kind, name: str, frozen: Entry, indexes: IndexReader, work: Path) -> MissingEntry[Entry]:
    """Return the entry with its index, if that index itself lists it.

    Updates come by the index, and the file may be a stranger's.

    Raises:
        HookError: the index is not valid now.
    """
    if is_own_index(indexes.home, frozen.index):
        known, listed, _ = find_listed(indexes, kind, name, work, frozen.index)
        return MissingEntry(name, set_origin(frozen, known, listed))
    if not frozen.index:
        return MissingEntry(name, frozen)
    added = [one for one in list_indexes(indexes.home) if one.address == frozen.index]
    for record in added:
        known, index = indexes.read(record, work)
        listed_now = index.of(kind).get(name)
        if listed_now and listed_now.digest == frozen.digest:
            return MissingEntry(name, set_origin(frozen, known, listed_now))
    where = to_one_line(frozen.index)
    what = "does not list this version" if added else "was not added here"
    doubt = f"{name}: the file says it came by {where}, which {what}: it is from {to_one_line(frozen.source)}, and so"
    remedy = "" if added else f"\nif it is meant, first add it: hermes-gateway hooks index add {where} --key KEY"
    return MissingEntry(name, msgspec.structs.replace(frozen, index=""), f"{doubt} are its updates{remedy}")


def set_origin(frozen: Entry, known: IndexRecord, listed: ListedHook | ListedSkill) -> Entry:
    """Return the entry with the source and address of this index."""
    return msgspec.structs.replace(frozen, source=str(make_listed_source(known, listed)), index=known.address)


def find_source(name: str, frozen: InstalledHook | InstalledSkill) -> HookSource:
    """Return the source of an entry, as this machine can reach it.

    Raises:
        HookError: the source is on the machine where it was frozen.
    """
    try:
        return limit_to_commit(parse_source(frozen.source), frozen.commit)
    except HookError as error:
        if not frozen.source.startswith(LOCAL):
            raise
        what = f"{name}: {str(error).partition(chr(10))[0]}; it was frozen where it came from there"
        remedy = "put it there, or install it there from where both find it (git+https:, https:), and freeze again"
        raise HookError(f"{what}; nothing was changed\n{remedy}") from None


def check_frozen(found: Fetched, missing: MissingEntry[Entry]) -> Fetched:
    """Return a fetched entry with its index. Raises HookError if its source has other content now."""
    if (found.name, found.digest) != (missing.name, missing.entry.digest):
        what = f"{missing.name}: what lies at {missing.entry.source} is not what was frozen; nothing was changed"
        remedy = "put that back, or, to use the present version, install it where the hooks are and freeze again"
        raise HookError(f"{what}\n{remedy}")
    return replace(found, index=missing.entry.index)


def fetch_frozen(missing: MissingEntry[InstalledHook], work: Path) -> FetchedHook:
    """Fetch a hook. Raises HookError if it is not the frozen one, or requests more than was granted."""
    name, frozen = missing.name, missing.entry
    own, source = find_place(work, "hook", name), find_source(name, frozen)
    found = fetch_hook(source, own, get_process_environment(), DIALECTS, frozen.source, frozen.packages)
    hook = check_frozen(found, missing)
    if more := "; ".join(list_missing_grants(hook.manifest, frozen.grants)):
        raise HookError(f"{name} asks for more than was agreed to when it was frozen: {more}; nothing was changed")
    return hook


def fetch_frozen_skill(missing: MissingEntry[InstalledSkill], work: Path) -> FetchedSkill:
    """Fetch a skill. Raises HookError if it is not the frozen one."""
    own, source = find_place(work, "skill", missing.name), find_source(missing.name, missing.entry)
    return check_frozen(fetch_skill(source, own, get_process_environment(), DIALECTS, missing.entry.source), missing)


def check_commit(found: FetchedHook | FetchedSkill, work: Path) -> str:
    """Return a warning if no branch or tag of the repository leads to the commit; "": one does.

    The file may be a stranger's, and a host serves, under a repository's name, commits of every copy of it.
    """
    source = parse_source(found.source)
    if found.index or not found.commit or source.kind != "git":
        return ""
    place = find_place(work, "hook" if isinstance(found, FetchedHook) else "skill", found.name)
    commit, where = found.commit[:SHORT_COMMIT], to_one_line(source.place)
    try:
        if is_public_commit(source.place, found.commit, place / "history", get_process_environment()):
            return ""
    except HookError as error:
        return f"{found.name}: whether a branch or a tag of {where} leads to the commit {commit} is not known: {error}"
    return f"{found.name}: no branch and no tag of {where} leads to the commit {commit}: it may be from anybody's copy"

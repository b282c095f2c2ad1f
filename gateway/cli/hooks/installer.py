"""The steps to install, update and remove hooks and skills of other authors: the same for both.

They work without the gateway; a running one is notified, and uses the change at once.
"""

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from gateway.cli.hooks.differences import describe_differences, read_contents
from gateway.cli.layout import get_columns
from gateway.cli.output import (
    ask_person,
    print_code,
    print_data,
    print_note,
    show_json,
    show_progress,
)
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.errors import ExitCode, HookError
from gateway.hooks.manifests.installed import HooksLock, InstalledHook, InstalledSkill, Kind
from gateway.hooks.places.trusted_copy import has_digest
from gateway.installer.fetched_hook import FetchedHook
from gateway.installer.fetched_skill import FetchedSkill
from gateway.installer.indexes import IndexReader, find_listed, is_listed_name, is_own_index, make_listed_source
from gateway.installer.lock_file import (
    InstalledChange,
    change_installed,
    list_unreadable,
    open_workspace,
    remove_unused,
)
from gateway.installer.source import HookSource, parse_installed_source, parse_source
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

NOBODY_ASKED = "--json asks no one\nread what it asks for, then add --yes"
SHORT_COMMIT = 12
MAX_DIFF = 400  # lines of a difference on a terminal
MAX_LINE = 2000  # characters of such a line

Entry = TypeVar("Entry", InstalledHook, InstalledSkill)
Fetched = TypeVar("Fetched", FetchedHook, FetchedSkill)


@dataclass(frozen=True, slots=True)
class InstalledUpdate(Generic[Entry, Fetched]):
    """The new version beside the installed one, which is `intact` if its files are unchanged.

    `more`: what the new one requests in addition; `less`: what it no longer guards.
    """

    before: Entry
    now: Fetched
    folder: Path  # of the installed version
    is_new: bool
    is_intact: bool
    more: tuple[str, ...]
    less: tuple[str, ...]

    @property
    def needs_person(self) -> str:
        """The reason why a person must see the update; "": none."""
        return " and ".join(what for what, said in (("asks for more", self.more), ("guards less", self.less)) if said)


class Installer(ABC, Generic[Entry, Fetched]):
    """The parts of one command that differ between hooks and skills."""

    KIND: ClassVar[Kind]

    def __init__(self, args: argparse.Namespace, home: Home, indexes: IndexReader | None = None) -> None:
        self.args, self.home = args, home
        self.indexes = indexes or IndexReader(home, get_process_environment())
        prepare_home(home)
        if args.json and not (getattr(args, "yes", True) or getattr(args, "check", False)):
            raise HookError(NOBODY_ASKED)

    @abstractmethod
    def fetch(self, source: HookSource, work: Path) -> Fetched:
        """Fetch from a source. Raises HookError if it is not available, or is not of this kind."""

    @abstractmethod
    def read_installed(self) -> Mapping[str, Entry]: ...

    @abstractmethod
    def compare(self, before: Entry, now: Fetched) -> InstalledUpdate[Entry, Fetched]: ...

    @abstractmethod
    def show(self, found: Fetched) -> None:
        """Show what the entry is and requests, before any of it counts."""

    @abstractmethod
    def show_update(self, update: InstalledUpdate[Entry, Fetched]) -> None:
        """Show what the update requests in addition, what it no longer guards, and how its files differ."""

    @abstractmethod
    def make_change(self, added: Sequence[Fetched], gone: Sequence[str] = ()) -> InstalledChange: ...

    def add(self, found: Fetched, work: Path) -> None:
        change_installed(self.home, self.make_change([found]), work)

    @abstractmethod
    def notify(self, name: str) -> bool:
        """Have the gateway reload one or all; return False if no gateway runs."""

    @abstractmethod
    def describe_missing(self, name: str) -> str:
        """Describe why no entry of this name is installed."""

    @abstractmethod
    def describe_installed(self, name: str, *, is_running: bool) -> str:
        """Return a remark on a newly installed entry."""

    def choose_data(self, found: Fetched) -> Fetched:
        """Return the entry, with the data of an earlier one if the owner agrees."""
        return found

    def describe_left(self, name: str) -> str:  # noqa: ARG002 - for those that leave something
        """Describe what remains of a removed entry."""
        return ""


def show_faults(home: Home) -> None:
    """Report entries of the lock that cannot be read: they stay, and do not run."""
    for fault in HooksLock(home.hooks_lock).list_faults():
        print_note(f"! {fault}")


def run_verb(installer: Installer[Entry, Fetched]) -> int | None:
    match installer.args.verb:
        case "install":
            return run_install(installer)
        case "update":
            return run_update(installer)
    run_remove(installer)
    return None


def run_install(installer: Installer[Entry, Fetched]) -> int | None:
    show_faults(installer.home)
    with open_workspace(installer.home) as work:
        if is_listed_name(installer.args.source):
            found = fetch_listed(installer, installer.args.source, work)
        else:
            found = fetch_shown(installer, parse_source(installer.args.source), work)
        before = installer.read_installed().get(found.name)
        is_same = before and before.digest == found.digest
        if before and is_same and not has_digest(installer.home.own_folder / before.path, before.digest):
            # Restore the changed files, wherever the same content comes from; updates keep their own source.
            found = replace(found, source=before.source, index=before.index, commit=before.commit)
        elif before and not has_same_origin(installer.home, before, found):
            what = f"{found.name} is installed, from {before.index or before.source}"
            remedy = f"remove that one first: hermes-gateway {installer.KIND}s remove {found.name}"
            raise HookError(f"{what}\n{remedy}")
        if before:
            is_taken = take_update(installer, installer.compare(before, found), work)
        else:
            is_taken = take_new(installer, found, work)
    if not is_taken:
        return ExitCode.FAILED
    is_running = installer.notify(found.name)
    if installer.args.json:
        said = {"installed": found.name, "source": found.source, "commit": found.commit, "digest": found.digest}
        show_json({**said, "running": is_running})
    elif said_too := installer.describe_installed(found.name, is_running=is_running):
        print_note(said_too)
    return None


def has_same_origin(home: Home, before: Entry, found: Fetched) -> bool:
    """Return True if both come from the same index or source."""
    if is_own_index(home, before.index):
        return is_own_index(home, found.index)
    return (before.index or before.source) == (found.index or found.source)


def take_new(installer: Installer[Entry, Fetched], found: Fetched, work: Path) -> bool:
    """Show a new entry, ask, and install it; return True if it was installed."""
    if not installer.args.json:
        installer.show(found)
    if is_taken := ask_person(f"Install {found.name}?", installer.args.yes):
        installer.add(installer.choose_data(found), work)
    return is_taken


def run_update(installer: Installer[Entry, Fetched]) -> int:
    """Update the named entries, or all. The exit code is 1 if some remain outdated, or could not be checked."""
    taken, left, failed = list[str](), list[str](), dict[str, str]()
    names = list_names(installer, installer.args.names)
    if not names and not installer.args.json:
        print_note(f"no {installer.KIND} is installed")
    for name in names:
        try:
            (taken if try_update(installer, name) else left).append(name)
        except HookError as error:
            failed[name] = str(error)
            print_note(f"! {name}: {error}")
    if installer.args.json:
        show_json({"updated": [] if installer.args.check else taken, "left": left, "failed": failed})
    return ExitCode.FAILED if left or failed else ExitCode.OK


def try_update(installer: Installer[Entry, Fetched], name: str) -> bool:
    """Update one entry; return True if the installed version is the present one.

    Raises:
        HookError: the present version cannot be found, for example since its index is not valid.
    """
    with open_workspace(installer.home) as work:
        update = fetch_update(installer, name, work)
        if installer.args.check:
            if update.is_new and not installer.args.json:
                installer.show_update(update)
            return not update.is_new
        is_taken = take_update(installer, update, work)
    if is_taken:
        installer.notify(name)
    if is_taken and update.is_new:
        print_note(f"{name} is updated")
    return is_taken


def take_update(installer: Installer[Entry, Fetched], update: InstalledUpdate[Entry, Fetched], work: Path) -> bool:
    """Show an update, ask, and install it; return True if the installed version is the present one.

    An update that requests more or guards less is never installed without a person.
    """
    name = update.now.name
    if not update.is_new:
        if not update.is_intact:
            installer.add(update.now, work)
        print_note(f"{name} is installed as it is there")
        return True
    if not installer.args.json:
        installer.show_update(update)
    if update.needs_person and (installer.args.yes or not sys.stdin.isatty()):
        what = f"{name} {update.needs_person}, and this run cannot ask you: it stays as it is"
        print_note(f"{what}\nhermes-gateway {installer.KIND}s update {name}")
        return False
    if is_taken := ask_person(f"Update {name}?", installer.args.yes):
        installer.add(update.now, work)
    return is_taken


def run_remove(installer: Installer[Entry, Fetched]) -> None:
    """Remove an entry, even one that cannot be read."""
    name = installer.args.name
    if name not in list_unreadable(installer.home, installer.KIND):
        list_names(installer, [name])
    left = installer.describe_left(name)
    with open_workspace(installer.home) as work:
        change_installed(installer.home, installer.make_change((), [name]), work)
        is_running = installer.notify("")
        remove_unused(installer.home)
    print_note(f"{name} is removed{left}")
    if installer.args.json:
        show_json({"removed": name, "running": is_running})


def list_names(installer: Installer[Entry, Fetched], names: Sequence[str]) -> list[str]:
    """List the named entries, or all. Raises HookError if one of them is not installed."""
    show_faults(installer.home)
    installed = installer.read_installed()
    for name in names:
        if name not in installed:
            raise HookError(installer.describe_missing(name))
    return list(names or installed)


def fetch_update(installer: Installer[Entry, Fetched], name: str, work: Path) -> InstalledUpdate[Entry, Fetched]:
    """Fetch the present version of an entry. Raises HookError if its source is gone, or has another one."""
    before = installer.read_installed()[name]
    if before.index:
        now = fetch_listed(installer, name, work, before.index)
    else:
        now = fetch_shown(installer, parse_installed_source(before.source), work)
    if now.name != name:
        raise HookError(f"{before.source} has the {installer.KIND} {now.name} now, and not {name}")
    return installer.compare(before, now)


def fetch_listed(installer: Installer[Entry, Fetched], name: str, work: Path, address: str = "") -> Fetched:
    """Fetch the entry of this name from an index, or from the one at this address.

    Raises:
        HookError: no index has it, or its content is not the listed one.
    """
    with show_progress("reading the indexes"):
        known, entry, unread = find_listed(installer.indexes, installer.KIND, name, work, address)
    for why in unread:
        print_note(f"! {why}")
    found = fetch_shown(installer, make_listed_source(known, entry), work)
    if (found.name, found.digest) != (name, entry.digest):
        what = f"{name}: what lies at {found.source} is not what {known.address} names"
        raise HookError(f"{what}; nothing was changed")
    return replace(found, index=known.address)


def fetch_shown(installer: Installer[Entry, Fetched], source: HookSource, work: Path) -> Fetched:
    """Fetch with a progress bar on a terminal: packages, or a whole repository, may take long."""
    with show_progress(f"fetching {source}"):
        return installer.fetch(source, work)


def describe_move(update: InstalledUpdate[Entry, Fetched]) -> str:
    """Describe the move of the tag or commit that the source names; "" if it has not moved."""
    then, now = update.before.commit or "", update.now.commit or ""
    return f"{then[:SHORT_COMMIT]} -> {now[:SHORT_COMMIT]}" if then != now else ""


def show_changed_rights(update: InstalledUpdate[Entry, Fetched]) -> None:
    """Show what the update requests in addition, and what it no longer guards."""
    for what, said in (("asks for more", update.more), ("guards less", update.less)):
        for one in said:
            print_data(f"{what}: {to_one_line(one, len(one))}", "  ", "yellow")


def show_differences(before: Path, now: Path, command: str) -> None:
    """Show how the files of two folders differ, shortened on a terminal; `command` shows all of it."""
    lines = [*describe_differences(read_contents(before), read_contents(now))]
    shown = lines if get_columns(sys.stdout) is None else [to_one_line(line, MAX_LINE) for line in lines[:MAX_DIFF]]
    for line in shown:
        print_code(line)
    if shown != lines:
        left = len(lines) - len(shown)
        cut = f"{format_count(left, 'line')} of the difference {'is' if left == 1 else 'are'}"
        what = cut if left else "the end of long lines is"
        print_note(f"{what} not shown; to read all of it: {command} --check | less")

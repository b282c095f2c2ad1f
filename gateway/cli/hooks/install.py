"""`hooks install`, `update` and `remove`: hooks of other authors, approved before any of their code runs."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.hooks.differences import list_unreadable_code, read_contents
from gateway.cli.hooks.installer import (
    SHORT_COMMIT,
    InstalledUpdate,
    Installer,
    describe_move,
    run_verb,
    show_changed_rights,
    show_differences,
)
from gateway.cli.output import print_data, print_note, show_fields, wait_for_yes
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import read_configuration
from gateway.config.settings import HookOverrides
from gateway.control.client import call_gateway
from gateway.daemon.dialects import DIALECTS
from gateway.daemon.installed_skills import list_skill_hooks, list_skills
from gateway.errors import GatewayError, NotRunning
from gateway.hooks.manifests.installed import InstalledHook, Kind, UnusedStore, list_missing_grants
from gateway.hooks.places.installed_source import make_installed_source
from gateway.hooks.places.trusted_copy import has_digest
from gateway.installer.fetched_hook import FetchedEntry, FetchedHook, describe_changes, describe_request, fetch_hook
from gateway.installer.lock_file import (
    InstalledChange,
    has_installed_packages,
    read_installed,
    read_installed_skills,
)
from gateway.installer.manifest_changes import UNKNOWN, list_manifest_changes, list_missing_guards
from gateway.installer.source import HookSource
from gateway.installer.stores import find_data, find_other_store
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

HookUpdate = InstalledUpdate[InstalledHook, FetchedHook]


def run(args: argparse.Namespace, home: Home) -> int | None:
    return run_verb(HookInstaller(args, home))


class HookInstaller(Installer[InstalledHook, FetchedHook]):
    KIND: ClassVar[Kind] = "hook"

    def fetch(self, source: HookSource, work: Path) -> FetchedHook:
        return fetch_hook(source, work, get_process_environment(), DIALECTS)

    def read_installed(self) -> Mapping[str, InstalledHook]:
        return read_installed(self.home)

    def compare(self, before: InstalledHook, now: FetchedHook) -> HookUpdate:
        # No person sees the content of packages, so another version, or another file of the same one, needs approval
        # too.
        added = [line.partition(" ")[0] for line in now.packages if line not in before.packages]
        packages = [f"packages: {', '.join(added)}"] if added else []
        is_new = (before.digest, before.packages) != (now.digest, now.packages)
        folder = self.home.own_folder / before.path
        is_known = has_digest(folder, before.digest)
        changes = list_manifest_changes(folder, now.folder, now.name) if is_known else (UNKNOWN,)
        more = (*list_missing_grants(now.manifest, before.grants), *changes, *packages)
        less = tuple(list_missing_guards(folder, now.manifest, before.grants.intercepts))
        is_intact = is_known and has_installed_packages(self.home, before)
        return InstalledUpdate(before, now, folder, is_new, is_intact, more, less)

    def show(self, found: FetchedHook) -> None:
        """Show its request, the hooks of skills that it replaces, and its settings in the configuration."""
        show_request(found)
        show_settings(found.name, self.home)
        for skill in list_skills(self.home):
            for name, folder in list_skill_hooks(skill.folder):
                if name == found.name:
                    what = f"the hook of this name that the skill {skill.name} brings"
                    print_data(to_one_line(f"! it replaces {what}: {folder}"), "", "yellow")
        show_unreadable_code(found.folder)

    def show_update(self, update: HookUpdate) -> None:
        now = update.now
        print_data(to_one_line(f"{now.name} {now.manifest.version} {describe_move(update)}".strip()), "", "bold")
        asked = [*describe_request(now.name, now.manifest, now.packages)]
        for line in describe_changes(describe_before(update, self.home), asked):
            print_data(to_one_line(line, len(line)), "  ", "yellow" if line.startswith("+") else "dim")
        show_changed_rights(update)
        show_differences(update.folder, now.folder, f"hermes-gateway hooks update {now.name}")

    def make_change(self, added: Sequence[FetchedHook], gone: Sequence[str] = ()) -> InstalledChange:
        return InstalledChange(hooks=added, gone_hooks=gone)

    def notify(self, name: str) -> bool:
        return notify_gateway(self.home, name)

    def describe_missing(self, name: str) -> str:
        placed = self.home.hooks / name
        if name and "/" not in name and placed.is_dir():
            return f"{name} was not installed, but placed by hand: {placed}"
        if name in read_installed_skills(self.home):
            return f"{name} is a skill, and no hook\nhermes-gateway skills {self.args.verb} {name}"
        return f"no hook {to_one_line(name)} is installed\nwhat is, shows: hermes-gateway hooks list --all"

    def describe_installed(self, name: str, *, is_running: bool) -> str:
        if make_installed_source(self.home, DIALECTS).find(name) is None:
            return f"{name} is installed; {self.home.hooks / name} replaces it"
        return "" if is_running else f"{name} is installed, and runs when the gateway does"

    def choose_data(self, found: FetchedHook) -> FetchedHook:
        if self.args.yes:
            report_other_data(self.home, found)
        elif (left := find_other_store(self.home, found.name, found)) and wait_for_yes(
            f"{describe_other_data(self.home, found.name, left)}. Give it to this one?"
        ):
            return replace(found, stored_as=left.stored_as)
        return found

    def describe_left(self, name: str) -> str:
        data = find_data(self.home, name)
        return (f"; its data stays in {data}" if data.exists() else "") + describe_owed(self.home, name)


def describe_owed(home: Home, name: str) -> str:
    """Describe how many events are pending for an installed hook, if a running gateway knows."""
    with suppress(GatewayError):
        found = call_gateway(home.socket, "hooks.info", name=name)
        if found["origin"] == "installed" and found["owed"]:
            return f"; its pending events wait for seven days: {format_count(found['owed'], 'event')}"
    return ""


def report_other_data(home: Home, found: FetchedHook) -> None:
    """Report data of an earlier hook of this name from another source, which the new one does not get."""
    if left := find_other_store(home, found.name, found):
        where = describe_other_data(home, found.name, left)
        print_note(f"{where}, which stays there; this one begins without it")


def describe_other_data(home: Home, name: str, left: UnusedStore) -> str:
    what = f"{name} from {left.source or 'elsewhere'} has kept {home.hook_data / left.stored_as}"
    return to_one_line(what, len(what))


def show_settings(name: str, home: Home) -> None:
    """Show the configuration's settings for this name, which may have been meant for another hook."""
    configuration, _ = read_configuration(load_settings_schema(), home, get_process_environment())
    given = configuration.settings.hooks.find_overrides(name) if configuration else HookOverrides()
    if said := "; ".join(describe_settings(given)):
        print_data(to_one_line(f"! hooks.{name} of {home.config} counts for it: {said}", 1000), "", "yellow")


def describe_settings(given: HookOverrides) -> Iterator[str]:
    """Describe the settings, without the values of options, which may be secrets."""
    for key in HookOverrides.__struct_fields__:
        value = getattr(given, key)
        if value != getattr(HookOverrides(), key):
            yield f"{key}: {str(value).lower() if isinstance(value, bool | str) else ', '.join(value)}"


def show_unreadable_code(folder: Path) -> None:
    for line in list_unreadable_code(read_contents(folder)):
        print_data(line, "", "yellow")


def show_request(hook: FetchedHook) -> None:
    """Show what a hook is and requests, before any of its code runs."""
    show_entry(hook, hook.manifest.description, describe_request(hook.name, hook.manifest, hook.packages))
    for finding in hook.version.findings:
        print_data(to_one_line(f"! {finding}"), "", "yellow")


def show_entry(found: FetchedEntry, description: str, asked: Iterable[tuple[str, str]]) -> None:
    """Show what a hook or a skill is, where it comes from, and the rows that tell what it asks for."""
    print_data(to_one_line(f"{found.name} {found.own_version}".strip()), "", "bold")
    if description:
        print_data(to_one_line(description, 1000), "  ")
    size, digest = format_count(found.size, "byte"), found.digest.partition(":")[2][:SHORT_COMMIT]
    what = f"{format_count(found.files, 'file')}, {size}, {digest}"
    # A skill's hook has no source of its own.
    rows = (("from", found.source), ("listed by", found.index), ("commit", found.commit), ("what", what), *asked)
    show_fields([(label, text) for label, text in rows if text], is_whole=True)


def describe_before(update: HookUpdate, home: Home) -> list[tuple[str, str]]:
    """Describe the installed version's requests; empty if its folder is gone."""
    name, source = update.now.name, make_installed_source(home, DIALECTS)
    version = source.find(name) or source.find(update.folder.name)
    manifest = source.inspect(version).manifest if version else None
    return [*describe_request(name, manifest, update.before.packages)] if manifest else []


def notify_gateway(home: Home, name: str) -> bool:
    """Have the gateway reload a hook; return False if no gateway runs."""
    try:
        found = call_gateway(home.socket, "hooks.reload", name=name)
    except NotRunning:
        return False
    except GatewayError as error:
        print_note(f"{name}: {error}")
        return True
    if name:
        print_state(found)
    return True


def print_state(hook: Mapping[str, Any]) -> None:
    """Print the hook's state, as the gateway reports it."""
    reason = f": {hook['reason']}" if hook["reason"] else ""
    print_note(f"{hook['name']} is {hook['state']}{reason}")

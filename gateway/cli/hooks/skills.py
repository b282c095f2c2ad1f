"""`hermes-gateway skills`: the agent's skills, and skills of other authors, approved before any part of them counts.

They share the lock and the indexes of hooks. Only the hooks that a skill brings are run; all else is text and files for
the agent. The verbs work without the gateway; a running one is notified.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from gateway.adapters.shared.folder import load_settings_schema
from gateway.agent.skills import find_skills
from gateway.cli.hooks.check import list_places
from gateway.cli.hooks.index import run_publish, run_search
from gateway.cli.hooks.install import show_entry, show_request, show_settings, show_unreadable_code
from gateway.cli.hooks.installer import (
    InstalledUpdate,
    Installer,
    describe_move,
    run_verb,
    show_changed_rights,
    show_differences,
    show_faults,
)
from gateway.cli.hooks.options import (
    SOURCE_HELP,
    add_publish_options,
    add_search_options,
    add_update_options,
    add_yes_option,
)
from gateway.cli.output import add_json_option, print_data, print_note, show_json
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import read_configuration
from gateway.control.client import call_gateway
from gateway.daemon.dialects import DIALECTS
from gateway.daemon.hooks import list_sources
from gateway.daemon.installed_skills import find_installed_skills, find_other, list_unused_hooks
from gateway.errors import GatewayError, NotRunning
from gateway.hooks.manifests.installed import InstalledSkill, Kind, list_missing_grants
from gateway.hooks.places.sources import Source
from gateway.hooks.places.trusted_copy import has_digest
from gateway.installer.fetched_skill import BROUGHT_FOLDER, FetchedSkill, fetch_skill
from gateway.installer.lock_file import InstalledChange, read_installed, read_installed_skills
from gateway.installer.manifest_changes import UNKNOWN, list_manifest_changes, list_missing_guards
from gateway.installer.source import HookSource
from gateway.logs.text import to_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the skills")
    install = verbs.add_parser("install", help="install another person's skill; you see it first")
    install.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    add_yes_option(install)
    update = verbs.add_parser("update", help="update installed skills")
    add_update_options(update)
    remove = verbs.add_parser("remove", help="remove an installed skill")
    remove.add_argument("name", help="its name")
    search = verbs.add_parser("search", help="search all indexes for skills")
    add_search_options(search)
    publish = verbs.add_parser("publish", help="add your skill to an index")
    add_publish_options(publish)
    add_json_option(listed, install, update, remove, search, publish)


def run(args: argparse.Namespace, home: Home) -> int | None:
    installer = SkillInstaller(args, home)
    match args.verb:
        case "list":
            show_skills(args, home)
        case "search":
            run_search(args, home, "skill")
        case "publish":
            run_publish(args, home, "skill")
        case _:
            return run_verb(installer)
    return None


SkillUpdate = InstalledUpdate[InstalledSkill, FetchedSkill]


class SkillInstaller(Installer[InstalledSkill, FetchedSkill]):
    KIND: ClassVar[Kind] = "skill"

    def fetch(self, source: HookSource, work: Path) -> FetchedSkill:
        return fetch_skill(source, work, get_process_environment(), DIALECTS)

    def read_installed(self) -> Mapping[str, InstalledSkill]:
        return read_installed_skills(self.home)

    def compare(self, before: InstalledSkill, now: FetchedSkill) -> SkillUpdate:
        folder, is_new = self.home.own_folder / before.path, before.digest != now.digest
        is_intact = has_digest(folder, before.digest)
        more = (*(() if is_intact else (UNKNOWN,)), *find_missing_grants(folder, before, now))
        less = tuple(find_missing_guards(folder, before, now))
        return InstalledUpdate(before, now, folder, is_new, is_intact, more, less)

    def show(self, found: FetchedSkill) -> None:
        """Show the skill's request, its hooks that do not run, and their settings in the configuration."""
        show_skill(found)
        for hook in found.hooks:
            show_other_hook(hook.name, self.home)
            show_settings(hook.name, self.home)
        show_unreadable_code(found.folder)

    def show_update(self, update: SkillUpdate) -> None:
        now = update.now
        print_data(to_one_line(f"{now.name} {now.own_version} {describe_move(update)}".strip()), "", "bold")
        show_changed_rights(update)
        for hook in now.hooks:
            if hook.name not in update.before.hooks:
                show_request(hook)
                show_other_hook(hook.name, self.home)
                show_settings(hook.name, self.home)
        for name in list_missing_observers(update.before, now):
            print_data(to_one_line(f"brings no more: {name}"), "  ", "yellow")
        show_differences(update.folder, now.folder, f"hermes-gateway skills update {now.name}")

    def make_change(self, added: Sequence[FetchedSkill], gone: Sequence[str] = ()) -> InstalledChange:
        return InstalledChange(skills=added, gone_skills=gone)

    def notify(self, name: str) -> bool:  # noqa: ARG002 - all are read again
        return reload_skills(self.home)

    def describe_missing(self, name: str) -> str:
        if name in read_installed(self.home):
            return f"{name} is a hook, and no skill\nhermes-gateway hooks {self.args.verb} {name}"
        what = "was not installed, but placed by hand" if (self.home.skills / name).is_dir() else "is not installed"
        return f"{to_one_line(name)} {what}\nwhat there is, prints: hermes-gateway skills list"

    def describe_installed(self, name: str, *, is_running: bool) -> str:  # noqa: ARG002 - it is learnt in both cases
        placed = self.home.skills / name
        return f"{name} is installed" + (f"; {placed} replaces it" if placed.is_dir() else "")


def find_missing_grants(folder: Path, before: InstalledSkill, now: FetchedSkill) -> Iterator[str]:
    """Yield what the skill's hooks request in addition; a new hook requests all of it.

    `folder`: of the installed version.
    """
    for hook in now.hooks:
        if known := before.hooks.get(hook.name):
            changes = list_manifest_changes(folder / BROUGHT_FOLDER / hook.name, hook.folder, hook.name)
            more = (*list_missing_grants(hook.manifest, known.grants), *changes)
        else:
            more = ("a hook that it did not bring",)
        yield from (f"{hook.name}: {one}" for one in more)


def find_missing_guards(folder: Path, before: InstalledSkill, now: FetchedSkill) -> Iterator[str]:
    """Yield what the skill's hooks no longer guard; a removed hook that decided guards nothing.

    `folder`: of the installed version.
    """
    left = {hook.name: hook for hook in now.hooks}
    for name, known in before.hooks.items():
        if hook := left.get(name):
            lost = list_missing_guards(folder / BROUGHT_FOLDER / name, hook.manifest, known.grants.intercepts)
            yield from (f"{name}: {one}" for one in lost)
        elif known.grants.intercepts:
            yield f"{name}: it is brought no more, and decided on {', '.join(known.grants.intercepts)}"


def list_missing_observers(before: InstalledSkill, now: FetchedSkill) -> Iterator[str]:
    """Yield the hooks that the skill no longer brings, and that decided nothing."""
    left = {hook.name for hook in now.hooks}
    yield from (name for name, known in before.hooks.items() if name not in left and not known.grants.intercepts)


def show_skills(args: argparse.Namespace, home: Home) -> None:
    placed, wrong = find_skills([home.skills])
    installed, left_out = find_installed_skills(home, placed)
    known = read_installed_skills(home)
    findings = (*wrong, *left_out, *list_unused_hooks((*placed, *installed), list_hook_places(home)))
    found = [
        {"name": one.name, "version": one.version, "description": one.description, "folder": str(one.folder)}
        for one in sorted((*placed, *installed), key=lambda one: one.name)
    ]
    if args.json:
        said = [{**one, "source": known[one["name"]].source if one["name"] in known else None} for one in found]
        show_json({"skills": said, "findings": [*map(str, findings)]})
        return
    for one in found:
        print_data(to_one_line(f"{one['name']} {one['version']}".strip()), "", "bold")
        print_data(to_one_line(one["description"], 1000), "  ")
        print_data(to_one_line(one["folder"]), "  ", "dim")
    show_faults(home)
    if not found:
        print_note("there are no skills; look for some: hermes-gateway skills search")
    for finding in findings:
        print_note(f"! {finding}")


def show_other_hook(name: str, home: Home) -> None:
    """Show what runs in place of a skill's hook of this name."""
    if other := find_other(name, list_hook_places(home)):
        print_data(to_one_line(f"! its hook {name} does not run: {other} replaces it"), "", "yellow")


def list_hook_places(home: Home) -> Sequence[Source]:
    """List the places of hooks that may replace those of skills.

    With a right configuration, these include the places that it names.
    """
    configuration, _ = read_configuration(load_settings_schema(), home, get_process_environment())
    return list_sources(home, configuration) if configuration else list_places(home)


def show_skill(skill: FetchedSkill) -> None:
    """Show what a skill is, and what its hooks request."""
    brings = ", ".join(hook.name for hook in skill.hooks) or "no hooks: words and files for the agent alone"
    show_entry(skill, skill.description, [("brings", brings)])
    for hook in skill.hooks:
        show_request(hook)


def reload_skills(home: Home) -> bool:
    """Have the gateway reload its skills; return False if no gateway runs."""
    try:
        call_gateway(home.socket, "reload")
    except NotRunning:
        return False
    except GatewayError as error:
        print_note(str(error))
    return True

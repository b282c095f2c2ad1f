"""`hermes-gateway skills`: what the agent can learn, and skills of others, agreed to before anything of them counts.

They go the way of hooks: one lock, the same indexes. What runs is the hooks that a skill brings; all else is words and
files for the agent. All of it works without the gateway; one that runs is told.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.agent.skills import find_skills
from gateway.cli.hooks.index import run_publish, run_search
from gateway.cli.hooks.install import NOBODY_ASKED, SHORT_COMMIT, show_differences, show_request
from gateway.cli.hooks.options import (
    SOURCE_HELP,
    add_publish_options,
    add_search_options,
    add_update_options,
    add_yes_option,
)
from gateway.cli.output import ask_person, print_data, print_note, show_fields, show_json
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.control_socket.client import call_gateway
from gateway.daemon.installed_skills import find_installed_skills
from gateway.errors import ExitCode, GatewayError, HookError, NotRunning
from gateway.hooks.folders.installed import InstalledSkill, list_missing_grants
from gateway.installer.fetched_skill import FetchedSkill, fetch_skill
from gateway.installer.indexes import find_listed, is_listed_name, make_listed_source
from gateway.installer.lock_file import (
    add_installed_skill,
    open_workspace,
    read_installed_skills,
    remove_installed_skill,
)
from gateway.installer.source import parse_source
from gateway.logs.text import to_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="the skills there are")
    install = verbs.add_parser("install", help="install a skill that somebody else wrote, when you have seen it")
    install.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    add_yes_option(install)
    update = verbs.add_parser("update", help="take what there is now of skills that were installed")
    add_update_options(update)
    remove = verbs.add_parser("remove", help="remove a skill that was installed")
    remove.add_argument("name", help="its name")
    search = verbs.add_parser("search", help="look for skills by a word, in all indexes")
    add_search_options(search)
    publish = verbs.add_parser("publish", help="write a skill of yours into an index")
    add_publish_options(publish)
    for verb in (listed, install, update, remove, search, publish):
        verb.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace, home: Home) -> int | None:
    prepare_home(home)
    if args.json and not (getattr(args, "yes", True) or getattr(args, "check", False)):
        raise HookError(NOBODY_ASKED)
    match args.verb:
        case "list":
            show_skills(args, home)
        case "install":
            return run_install(args, home)
        case "update":
            return run_update(args, home)
        case "remove":
            run_remove(args, home)
        case "search":
            run_search(args, home, "skill")
        case _:
            run_publish(args, home, "skill")
    return None


@dataclass(frozen=True, slots=True)
class SkillUpdate:
    """What there is of an installed skill now, beside what is installed."""

    before: InstalledSkill
    now: FetchedSkill
    folder: Path  # of what is installed

    @property
    def more(self) -> list[str]:
        """What its hooks ask for besides; a hook that is new asks for all of it."""
        said = list[str]()
        for hook in self.now.hooks:
            known = self.before.hooks.get(hook.name)
            more = list_missing_grants(hook.manifest, known.grants) if known else ("a hook that it did not bring",)
            said += [f"{hook.name}: {one}" for one in more]
        return said


def show_skills(args: argparse.Namespace, home: Home) -> None:
    placed, wrong = find_skills([home.skills])
    installed, left_out = find_installed_skills(home, placed)
    known = read_installed_skills(home)
    found = [
        {"name": one.name, "version": one.version, "description": one.description, "folder": str(one.folder)}
        for one in sorted((*placed, *installed), key=lambda one: one.name)
    ]
    if args.json:
        said = [{**one, "source": known[one["name"]].source if one["name"] in known else None} for one in found]
        show_json({"skills": said, "findings": [str(one) for one in (*wrong, *left_out)]})
        return
    for one in found:
        print_data(to_one_line(f"{one['name']} {one['version']}".strip()), "", "bold")
        print_data(to_one_line(one["description"], 1000), "  ")
        print_data(to_one_line(one["folder"]), "  ", "dim")
    if not found:
        print_note("there are no skills; look for some: hermes-gateway skills search")
    for finding in (*wrong, *left_out):
        print_note(f"! {finding}")


def run_install(args: argparse.Namespace, home: Home) -> int | None:
    with open_workspace(home) as work:
        if is_listed_name(args.source):
            skill = fetch_listed(args.source, home, work)
        else:
            skill = fetch_skill(parse_source(args.source), work, get_process_environment())
        before = read_installed_skills(home).get(skill.name)
        if before and (before.index or before.source) != (skill.index or skill.source):
            what = f"{skill.name} is installed, from {before.index or before.source}"
            raise HookError(f"{what}\nremove that one first: hermes-gateway skills remove {skill.name}")
        if before:
            is_taken = take_update(SkillUpdate(before, skill, home.own_folder / before.path), args, home, work)
        else:
            is_taken = take_new(skill, args, home, work)
        if not is_taken:
            return int(ExitCode.FAILED)
    is_running = reload_skills(home)
    if args.json:
        said = {"installed": skill.name, "source": skill.source, "commit": skill.commit, "digest": skill.digest}
        show_json({**said, "running": is_running})
    elif (home.skills / skill.name).is_dir():
        print_note(f"{skill.name} is installed; {home.skills / skill.name} stands in for it")
    else:
        print_note(f"{skill.name} is installed")
    return None


def take_new(skill: FetchedSkill, args: argparse.Namespace, home: Home, work: Path) -> bool:
    """Show it, ask, and install it; whether it was."""
    if not args.json:
        show_skill(skill)
    if is_taken := ask_person(f"Install {skill.name}?", args.yes):
        add_installed_skill(home, skill, work)
    return is_taken


def fetch_listed(name: str, home: Home, work: Path, address: str = "") -> FetchedSkill:
    """The skill that an index, or this one, has under this name. HookError: it is not what the index says."""
    environ = get_process_environment()
    known, entry = find_listed("skill", name, home, work, environ, address)
    skill = fetch_skill(make_listed_source(known, entry), work, environ)
    if (skill.name, skill.digest) != (name, entry.digest):
        raise HookError(f"{name}: what lies at {skill.source} is not what {known.address} names; nothing was changed")
    return replace(skill, index=known.address)


def run_update(args: argparse.Namespace, home: Home) -> int:
    """Each that is named, or all. The exit code says whether something is left to do."""
    taken, left = list[str](), list[str]()
    for name in list_names(home, args.names):
        with open_workspace(home) as work:
            update = fetch_update(home, name, work)
            is_new = update.now.digest != update.before.digest
            if args.check and is_new and not args.json:
                show_update(update)
            if args.check:
                left += [name] if is_new else []
            else:
                (taken if take_update(update, args, home, work) else left).append(name)
    if taken:
        reload_skills(home)
    if args.json:
        show_json({"updated": taken, "left": left})
    return int(ExitCode.FAILED if left else ExitCode.OK)


def list_names(home: Home, names: Sequence[str]) -> list[str]:
    """HookError: one of them is not installed."""
    installed = read_installed_skills(home)
    for name in names:
        if name not in installed:
            placed = home.skills / name
            what = "was not installed, but placed by hand" if placed.is_dir() else "is not installed"
            raise HookError(f"{to_one_line(name)} {what}\nwhat there is, prints: hermes-gateway skills list")
    return list(names or installed)


def fetch_update(home: Home, name: str, work: Path) -> SkillUpdate:
    """What there is of it now. HookError: it is not there any more, or is another skill."""
    before = read_installed_skills(home)[name]
    if before.index:
        now = fetch_listed(name, home, work, before.index)
    else:
        now = fetch_skill(parse_source(before.source), work, get_process_environment())
    if now.name != name:
        raise HookError(f"what lies at {before.source} now is the skill {now.name}, and not {name}")
    return SkillUpdate(before, now, home.own_folder / before.path)


def take_update(update: SkillUpdate, args: argparse.Namespace, home: Home, work: Path) -> bool:
    """Show it, ask, and have it installed. What asks for more is never taken without somebody who sees that."""
    name = update.now.name
    if update.now.digest == update.before.digest:
        add_installed_skill(home, update.now, work)  # whatever lies there now, it is as it should be afterwards
        print_note(f"{name} is installed as it is there")
        return True
    if not args.json:
        show_update(update)
    if update.more and args.yes:
        what = f"{name} asks for more, and nobody is asked: it stays as it is"
        print_note(f"{what}\nhermes-gateway skills update {name}")
        return False
    if is_taken := ask_person(f"Update {name}?", args.yes):
        add_installed_skill(home, update.now, work)
    return is_taken


def run_remove(args: argparse.Namespace, home: Home) -> None:
    list_names(home, [args.name])
    with open_workspace(home):
        remove_installed_skill(home, args.name)
    with_gateway = reload_skills(home)
    print_note(f"{args.name} is removed")
    if args.json:
        show_json({"removed": args.name, "running": with_gateway})


def show_update(update: SkillUpdate) -> None:
    """What its hooks ask for that they did not, and how its files differ."""
    print_data(to_one_line(f"{update.now.name} {update.now.skill.version}".strip()), "", "bold")
    for more in update.more:
        print_data(f"asks for more: {to_one_line(more, len(more))}", "  ", "yellow")
    show_differences(update.folder, update.now.folder, f"hermes-gateway skills update {update.now.name}")


def show_skill(skill: FetchedSkill) -> None:
    """What it is, and what the hooks ask for that it brings."""
    print_data(to_one_line(f"{skill.name} {skill.skill.version}".strip()), "", "bold")
    print_data(to_one_line(skill.skill.description, 1000), "  ")
    what = f"{skill.files} files, {skill.size:,} bytes, {skill.digest.partition(':')[2][:SHORT_COMMIT]}"
    commit = (("commit", skill.commit),) if skill.commit else ()
    brings = ", ".join(hook.name for hook in skill.hooks) or "no hooks: words and files for the agent alone"
    show_fields((("from", skill.source), *commit, ("what", what), ("brings", brings)), is_whole=True)
    for hook in skill.hooks:
        show_request(hook)


def reload_skills(home: Home) -> bool:
    """Have its skills read again; whether a gateway runs."""
    try:
        call_gateway(home.socket, "reload")
    except NotRunning:
        return False
    except GatewayError as error:
        print_note(str(error))
    return True

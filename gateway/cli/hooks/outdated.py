"""`hooks outdated`: the hooks and skills of other authors that differ from their present sources."""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from gateway.cli.hooks.install import HookInstaller
from gateway.cli.hooks.installer import (
    SHORT_COMMIT,
    Entry,
    Fetched,
    Installer,
    describe_move,
    fetch_update,
    list_names,
)
from gateway.cli.hooks.skills import SkillInstaller
from gateway.cli.output import print_text, show_json, show_table
from gateway.cli.program import apply_program_name
from gateway.config.home import Home
from gateway.errors import HookError
from gateway.installer.lock_file import open_workspace
from gateway.logs.text import to_one_line


class OutdatedEntry(NamedTuple):
    """An installed entry that differs from its source, or whose source cannot be read: for programs, and as a row."""

    fields: dict[str, str | None]
    row: tuple[str, ...]


def run(args: argparse.Namespace, home: Home) -> None:
    installer = HookInstaller(args, home)
    hooks, skills = [*find_outdated(installer)], [*find_outdated(SkillInstaller(args, home, installer.indexes))]
    if args.json:
        show_json({"outdated": [one.fields for one in hooks], "skills": [one.fields for one in skills]})
        return
    for kind, found in (("hook", hooks), ("skill", skills)):
        if found:
            show_table((kind, "there is", "commit", ""), [one.row for one in found])
    if not (hooks or skills):
        print_text("everything that is installed is up to date")


def find_outdated(installer: Installer[Entry, Fetched]) -> Iterator[OutdatedEntry]:
    for name in list_names(installer, ()):
        with open_workspace(installer.home) as work:
            try:
                update = fetch_update(installer, name, work)
            except HookError as error:
                said = apply_program_name(to_one_line("; ".join(str(error).splitlines()), 1000))
                yield OutdatedEntry({"name": name, "error": str(error)}, (name, "", "", said))
                continue
        if update.is_new:
            now, more, less = update.now, "; ".join(update.more), "; ".join(update.less)
            fields = {"name": name, "commit": now.commit, "digest": now.digest, "more": more, "less": less}
            version = now.own_version or now.digest.partition(":")[2][:SHORT_COMMIT]
            changed = (more and f"asks for more: {more}", less and f"guards less: {less}")
            yield OutdatedEntry(fields, (name, version, describe_move(update), "; ".join(filter(None, changed))))

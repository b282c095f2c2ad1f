"""`hooks outdated`: the hooks and skills of other authors that differ from their present sources."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class OutdatedEntry:
    """The present version of an installed entry; `error`: why it cannot be found."""

    name: str
    version: str = ""
    commit: str | None = None
    digest: str = ""
    move: str = ""
    more: str = ""
    less: str = ""
    error: str = ""

    def to_fields(self) -> dict[str, str | None]:
        if self.error:
            return {"name": self.name, "error": self.error}
        found = {"name": self.name, "commit": self.commit, "digest": self.digest}
        return {**found, "more": self.more, "less": self.less}

    def to_row(self) -> tuple[str, ...]:
        said = apply_program_name(to_one_line("; ".join(self.error.splitlines()), 1000))
        version = self.version or self.digest.partition(":")[2][:SHORT_COMMIT]
        changed = (self.more and f"asks for more: {self.more}", self.less and f"guards less: {self.less}")
        return (self.name, version, self.move, said or "; ".join(filter(None, changed)))


def run(args: argparse.Namespace, home: Home) -> None:
    installer = HookInstaller(args, home)
    hooks, skills = [*find_outdated(installer)], [*find_outdated(SkillInstaller(args, home, installer.indexes))]
    if args.json:
        show_json({"outdated": [one.to_fields() for one in hooks], "skills": [one.to_fields() for one in skills]})
        return
    for kind, found in (("hook", hooks), ("skill", skills)):
        if found:
            show_table((kind, "there is", "commit", ""), [one.to_row() for one in found])
    if not (hooks or skills):
        print_text("all that is installed is as it is there")


def find_outdated(installer: Installer[Entry, Fetched]) -> Iterator[OutdatedEntry]:
    for name in list_names(installer, ()):
        with open_workspace(installer.home) as work:
            try:
                update = fetch_update(installer, name, work)
            except HookError as error:
                yield OutdatedEntry(name, error=str(error))
                continue
        if update.is_new:
            now = update.now
            more, less = "; ".join(update.more), "; ".join(update.less)
            yield OutdatedEntry(name, now.own_version, now.commit, now.digest, describe_move(update), more, less)

"""`hooks check`: what is wrong with hook folders, without the gateway and without running anything of them."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.cli.hooks.options import is_path
from gateway.cli.output import show_json
from gateway.config.environment import read_environment
from gateway.config.home import Home, get_process_environment
from gateway.errors import ExitCode, HookError
from gateway.hermes.sources import HermesFolderSource
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.readiness import find_missing_needs
from gateway.hooks.folders.sources import HookVersion
from gateway.logs.text import to_one_line
from gateway.yaml_source import Finding


class FolderCheck(NamedTuple):
    """What was found in a folder; `lacks` is no fault of it: it may be meant for another machine."""

    name: str
    findings: tuple[Finding, ...]
    lacks: tuple[str, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def run(args: argparse.Namespace, home: Home) -> int:
    checked = [check_folder(folder, home) for folder in find_folders(args.names, home)]
    if args.json:
        findings = {one.name: [*map(str, one.findings)] for one in checked}
        lacking = {one.name: one.lacks for one in checked if one.lacks}
        show_json({"ok": not any(one.is_wrong for one in checked), "hooks": findings, "missing": lacking})
    else:
        for one in checked:
            show_check(one)
        if not checked:
            print(f"there are no hooks in {home.hooks}")
    return int(ExitCode.FAILED if any(one.is_wrong for one in checked) else ExitCode.OK)


def check_folder(version: HookVersion, home: Home) -> FolderCheck:
    version = version.source.inspect(version)
    lacks = tuple(list_missing(version.manifest, home)) if version.manifest else ()
    return FolderCheck(version.name, version.findings, lacks)


def list_missing(manifest: Manifest, home: Home) -> Iterator[str]:
    """What it requires and is not here; which platforms are configured is a thing of the gateway."""
    outside = read_environment(get_process_environment(), home.env)
    packages = [str(home.hook_state / "packages" / manifest.folder), *sys.path]
    return find_missing_needs(manifest, outside.environ, manifest.requires.platforms, packages)


def show_check(one: FolderCheck) -> None:
    print(to_one_line(f"{one.name}: {'' if one.findings or one.lacks else 'fine'}".rstrip()))
    for finding in one.findings:
        print(f"  {finding}")
    for lack in one.lacks:
        print(f"  missing here: {lack}")


def find_folders(names: list[str], home: Home) -> Iterator[HookVersion]:
    if not names:
        yield from HermesFolderSource(home.hooks, "home").list()
    for name in names:
        path = Path(name).absolute() if is_path(name) else home.hooks / name
        folder = HermesFolderSource(path.parent, "home").find(path.name) if path.is_dir() else None
        if folder is None:
            raise HookError(f"{path} is no hook: it needs HOOK.yaml, and handler.py, a command or a URL")
        yield folder

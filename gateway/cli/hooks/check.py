"""`hooks check`: what is wrong with hook folders, without the gateway and without running anything of them."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.cli.hooks.options import is_path
from gateway.cli.output import show_json
from gateway.config.environment import read_environment
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import has_errors
from gateway.errors import ExitCode, HookError
from gateway.hermes.sources import HermesFolderSource
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.readiness import find_missing_needs
from gateway.hooks.folders.sources import HookVersion, Source
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> int:
    place = HermesFolderSource(home.hooks, "home")
    folders = [find_folder(name, home, (place,)) for name in args.names] or list(place.list())
    checked = [check_folder(folder, home) for folder in folders]
    is_wrong = any(has_errors(one.findings) for one, _ in checked)
    if args.json:
        findings = {one.name: [*map(str, one.findings)] for one, _ in checked}
        lacking = {one.name: lacks for one, lacks in checked if lacks}
        show_json({"ok": not is_wrong, "hooks": findings, "missing": lacking})
    else:
        for one, lacks in checked:
            show_check(one, lacks)
        if not checked:
            print(f"there are no hooks in {home.hooks}")
    return int(ExitCode.FAILED if is_wrong else ExitCode.OK)


def check_folder(version: HookVersion, home: Home) -> tuple[HookVersion, list[str]]:
    """What was found in a folder; and what it lacks, which is no fault of it: it may be meant for another machine."""
    version = version.source.inspect(version)
    return version, list(list_missing(version.manifest, home)) if version.manifest else []


def list_missing(manifest: Manifest, home: Home) -> Iterator[str]:
    """What it requires and is not here; which platforms are configured is a thing of the gateway."""
    outside = read_environment(get_process_environment(), home.env)
    packages = [str(home.hook_state / "packages" / manifest.folder), *sys.path]
    return find_missing_needs(manifest, outside.environ, manifest.requires.platforms, packages)


def show_check(one: HookVersion, lacks: Sequence[str]) -> None:
    print(to_one_line(f"{one.name}: {'' if one.findings or lacks else 'fine'}".rstrip()))
    for finding in one.findings:
        print(f"  {finding}")
    for lack in lacks:
        print(f"  missing here: {lack}")


def find_folder(name: str, home: Home, sources: Sequence[Source]) -> HookVersion:
    """The hook at this path, or of this name in the last of the places that have one.

    Raises:
        HookError: there is none.
    """
    path = Path(name).resolve() if is_path(name) else home.hooks / name
    places = (HermesFolderSource(path.parent, "path"),) if is_path(name) else sources
    folder = next((found for source in reversed(places) if (found := source.find(path.name))), None)
    if folder is None:
        raise HookError(f"{path} is no hook: it needs HOOK.yaml, and handler.py, a command or a URL")
    return folder

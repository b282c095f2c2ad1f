"""`hooks check` and `hooks schema`: the faults of hook folders, and the shape of a manifest.

They need no gateway, and run no code of a hook.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.hooks.options import is_path
from gateway.cli.output import print_lines, show_json
from gateway.config.environment import read_environment
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, has_errors, read_configuration
from gateway.config.settings import PLUGIN_PREFIX, HooksSettings
from gateway.daemon import dialects
from gateway.daemon.hooks import list_own_values
from gateway.desk.hook_faults import list_faults
from gateway.errors import ExitCode, HookError
from gateway.hermes.package_files import describe_needed_imports
from gateway.hooks.folders.readiness import check_filter, find_missing_needs
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.manifest_schema import build_manifest_schema
from gateway.hooks.manifests.reach import find_missing_paths
from gateway.hooks.places.sources import HookVersion, Source
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> int:
    if args.verb == "schema":
        print(json.dumps(build_manifest_schema(), indent=2, ensure_ascii=False))
        return ExitCode.OK
    return check_folders(args, home)


def check_folders(args: argparse.Namespace, home: Home) -> int:
    places = list_places(home)
    folders = [find_folder(name, home, places) for name in args.names] or list_all(places)
    configuration, _ = read_configuration(load_settings_schema(), home, get_process_environment())
    checked = [check_folder(folder, home, configuration) for folder in folders]
    is_wrong = any(has_errors(one.findings) for one, _ in checked)
    faults = {one.called: list_faults(one) for one, _ in checked} if args.desk else {}
    if args.json:
        findings = {one.called: [*map(str, one.findings)] for one, _ in checked}
        lacking = {one.called: lacks for one, lacks in checked if lacks}
        desk = {"desk": {name: found for name, found in faults.items() if found}} if args.desk else {}
        show_json({"ok": not is_wrong, "hooks": findings, "missing": lacking, **desk})
    else:
        for one, lacks in checked:
            show_check(one, lacks, faults.get(one.called, ()))
        if not checked:
            print(f"there are no hooks in {home.hooks}, and no plugins in {home.plugins}")
    return ExitCode.FAILED if is_wrong else ExitCode.OK


def list_places(home: Home) -> tuple[Source, ...]:
    """List the places of all kinds of hooks in this home."""
    return tuple(one for one in dialects.list_places(home, get_process_environment()) if not one.is_ours)


def list_all(sources: Sequence[Source]) -> list[HookVersion]:
    """List all versions, hooks first; of two with one name, the one that would run."""
    found = {version.name: version for source in sources for version in source.list()}
    others = {name.removeprefix(PLUGIN_PREFIX) if PLUGIN_PREFIX in name else PLUGIN_PREFIX + name for name in found}
    named = [replace(version, has_namesake=version.name in others) for version in found.values()]
    return sorted(named, key=lambda version: (version.name.startswith(PLUGIN_PREFIX), version.name))


def check_folder(
    version: HookVersion, home: Home, configuration: Configuration | None
) -> tuple[HookVersion, list[str]]:
    """Return the version with its findings, and what the machine lacks for it.

    A lack is not a finding: the hook may be meant for another machine. Other checks report an unreadable configuration.
    """
    settings = configuration.settings.hooks if configuration else HooksSettings()
    own = settings.find_overrides(version.name, version.short)
    version = version.source.inspect(replace(version, written_for=own.written_for))
    known = list_own_values(configuration) if configuration else {}
    findings = (*version.findings, *version.source.review(version), *check_filter(version, known))
    version = replace(version, findings=findings)
    return version, list(list_missing(version, version.manifest, home)) if version.manifest else []


def list_missing(version: HookVersion, manifest: Manifest, home: Home) -> Iterator[str]:
    """Yield the missing requirements of a hook, except platforms, which only the gateway knows."""
    outside = read_environment(get_process_environment(), home.env)
    packages = [str(home.hook_state / "packages" / version.name), *sys.path]
    yield from find_missing_needs(manifest, outside.environ, manifest.requires.platforms, packages, version.called)
    yield from find_missing_paths(manifest)
    if manifest.command and not shutil.which(version.path / name if "/" in (name := manifest.command[0]) else name):
        yield f"the program {name}: see that it is there and executable; one in this folder is ./{Path(name).name}"
    if manifest.wire == "worker" and not version.dialect.why_idle(manifest):
        yield from describe_needed_imports(version, manifest, packages)


def show_check(one: HookVersion, lacks: Sequence[str], faults: Sequence[str]) -> None:
    print(to_one_line(f"{one.called}: {'' if one.findings or lacks or faults else 'fine'}".rstrip()))
    for finding in one.findings:
        print_lines(to_one_line(str(finding)), "  ")
    if one.manifest and (doubt := one.dialect.describe_doubt(one.manifest)):
        print_lines(f"{to_one_line(doubt)}: until then it counts as a guard", "  ")
    for lack in lacks:
        print_lines(f"missing here: {to_one_line(lack)}", "  ")
    for fault in faults:
        print_lines(f"at a desk: {to_one_line(fault)}", "  ")


def find_folder(name: str, home: Home, sources: Sequence[Source]) -> HookVersion:
    """Return the hook or plugin at this path, or of this name in the last of the places that have one.

    Raises:
        HookError: it was not found.
    """
    path = Path(name).resolve() if is_path(name) else home.hooks / name
    if is_path(name):
        sources = dialects.list_places_of(path, home)
    for wanted in (path.name, PLUGIN_PREFIX + path.name):
        if folder := next((found for source in reversed(sources) if (found := source.find(wanted))), None):
            is_hook_there = any(source.find(folder.bare_name) for source in sources)
            return replace(folder, has_namesake=folder.name != folder.bare_name and is_hook_there)
    raise HookError(f"{path} is not a hook: it needs HOOK.yaml, and handler.py, a command or a URL")

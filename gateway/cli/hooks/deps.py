"""`hooks deps`: install the missing packages of a hook or a plugin into a folder that is on its path alone.

These are the packages that its manifest requires, those in its folder's files for pip, and those that you named. Named
ones are remembered in the folder, so that the next installation has them too. The new folder is made beside the old one
and replaces it whole, so that a failure changes nothing.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.hooks.check import find_folder
from gateway.cli.hooks.control import show_state
from gateway.cli.output import ask_person, print_note, print_text, show_json, show_progress
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.config.settings import PLUGIN_PREFIX
from gateway.control.client import call_gateway
from gateway.daemon.hooks import list_sources
from gateway.errors import ExitCode, GatewayError, HookError, NotRunning
from gateway.hermes.package_files import PackageFiles, find_missing_packages, refuse_hermes
from gateway.hermes.plugin_packages import GROUP, find_plugin_packages
from gateway.hooks.folders.readiness import fold_name, list_missing_packages, why_not_enabled
from gateway.hooks.manifests.requirement import read_requirement
from gateway.hooks.places.sources import HookVersion, describe_first_error
from gateway.hooks.places.switches import HookSwitches
from gateway.installer.packages import find_package_tool

ASKED_FILE = "requirements.txt"  # in the folder: the packages that you named


def run(args: argparse.Namespace, home: Home) -> int:
    if bool(args.name) == args.all:
        print_note("hermes-gateway hooks deps: name a hook, or add --all")
        return ExitCode.USAGE
    if args.all:
        return install_all(home, is_agreed=args.yes)
    install_for_one(args, home)
    return ExitCode.OK


def install_all(home: Home, *, is_agreed: bool) -> int:
    """Install the missing packages of all folders, after you have seen the list: imports only suggest some names."""
    lacking = list(list_missing_by_folder(home))
    for version, packages in lacking:
        print_text(f"{version.called}  {' '.join(packages)}")
    if not lacking:
        print_text("all hooks and plugins that are switched on have their packages")
        return ExitCode.OK
    if not ask_person("Install these packages?", is_agreed):
        return ExitCode.FAILED
    failed = []
    for version, packages in lacking:
        try:
            install_missing(version, packages, home)
        except HookError as error:
            print_note(f"{version.called}: {error}")
            failed.append(version)
    with suppress(NotRunning):
        call_gateway(home.socket, "hooks.reload", name="")
    return ExitCode.FAILED if failed else ExitCode.OK


def list_missing_by_folder(home: Home) -> Iterator[tuple[HookVersion, list[str]]]:
    """Yield each enabled folder with its missing packages: those that its files require, else those that it imports."""
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    settings, switches = configuration.settings.hooks, HookSwitches(home.hook_state)
    for source in list_sources(home, configuration):
        for listed in source.list():
            with suppress(OSError):
                version = source.inspect(listed)
                is_on = version.is_ready and not why_not_enabled(version, settings, switches)
                if is_on and (packages := find_missing_names(version, home)):
                    yield version, packages


def find_missing_names(version: HookVersion, home: Home) -> list[str]:
    assert version.manifest
    places = [str(find_place(version, home)), *sys.path]
    if missing := list_missing_packages(list_requirements(version), places):
        return missing
    return find_missing_packages(version, version.manifest, places)


def find_place(version: HookVersion, home: Home) -> Path:
    return home.hook_state / "packages" / version.name


def list_requirements(version: HookVersion) -> list[str]:
    """List the packages that the manifest and the files of a hook require."""
    assert version.manifest
    return [*version.manifest.requires.python, *PackageFiles(version.path).wanted]


def install_missing(version: HookVersion, packages: list[str], home: Home) -> None:
    """Install these packages, those that the folder declares, and those that you have named before."""
    place, declared = find_place(version, home), list_requirements(version)
    asked = merge_asked(read_asked(place), [one for one in packages if one not in declared])
    wanted = [*list_missing_packages(declared, sys.path), *asked]
    print_note(f"installing {' '.join(wanted)} into {place}")
    install(wanted, asked, place)


def install_for_one(args: argparse.Namespace, home: Home) -> None:
    refuse_hermes(args.packages)
    if args.name.startswith(PLUGIN_PREFIX) and args.packages:
        add_package_plugin(args, home)
    try:
        version, is_running = _find_version(args.name, home)
    except GatewayError as error:
        if not args.packages:
            raise
        packages = " ".join(args.packages)
        hint = f"a plugin that is itself a package: hermes-gateway hooks deps {PLUGIN_PREFIX}{args.name} {packages}"
        raise HookError(f"{error}\n{hint}") from None
    if version.manifest is None:
        raise HookError(f"{args.name} cannot be read: {describe_first_error(version.findings)}")
    for finding in PackageFiles(version.path).unread:
        print_note(str(finding))
    places = [str(find_place(version, home)), *sys.path]
    if args.packages or list_missing_packages(list_requirements(version), places):
        install_missing(version, args.packages, home)
    else:
        print_note(f"{args.name} lacks no package")
    if is_running:
        show_state(args.name, call_gateway(home.socket, "hooks.reload", name=args.name), as_json=args.json)
    elif args.json:
        show_json({"hook": None})


def _find_version(name: str, home: Home) -> tuple[HookVersion, bool]:
    """Return the hook of this name, and True if a gateway runs. Raises GatewayError if it was not found."""
    try:
        found = call_gateway(home.socket, "hooks.info", name=name)
    except NotRunning:
        return find_hook(name, home), False
    return find_hook(found["path"] if found["origin"].startswith("skill ") else found["name"], home), True


def find_hook(name: str, home: Home) -> HookVersion:
    """Return the inspected hook or plugin of this name or in this folder. Raises HookError if it was not found."""
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    version = find_folder(name, home, list_sources(home, configuration))
    return version.source.inspect(version)


def add_package_plugin(args: argparse.Namespace, home: Home) -> None:
    """Install a plugin that is itself one of these packages, unless it exists already.

    Raises:
        HookError: none of them is a plugin.
    """
    try:
        find_hook(args.name, home)
        return
    except HookError:
        place = home.hook_state / "packages" / args.name
    wanted = merge_asked([], args.packages)
    print_note(f"installing {' '.join(wanted)} into {place}")
    install(wanted, wanted, place)
    found = find_plugin_packages([place])
    if not found:
        shutil.rmtree(place)
        raise HookError(f"{' '.join(wanted)} brings no plugin: nothing there names the entry point {GROUP}")
    name = PLUGIN_PREFIX + next(iter(found))
    if args.name.removeprefix(PLUGIN_PREFIX) not in found:
        shutil.rmtree(place.with_name(name), ignore_errors=True)
        place.rename(place.with_name(name))
        args.name = name
    print_note(f"it is the plugin {', '.join(found)}; plugins are off at first: hermes-gateway hooks enable {name}")
    args.packages = []
    with suppress(NotRunning):
        call_gateway(home.socket, "hooks.reload", name="")


def read_asked(place: Path) -> list[str]:
    """Return the packages that you named before."""
    try:
        return (place / ASKED_FILE).read_text("utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def merge_asked(before: list[str], named: list[str]) -> list[str]:
    """Merge the named packages; the last version of each one counts.

    Raises:
        HookError: one of them is an option of pip.
    """
    found: dict[str, str] = {}
    for text in (*before, *named):
        if text.startswith("-") or "\n" in text:
            raise HookError(f"{text!r} is not a package\nname packages, as pip knows them: requests, 'httpx>=0.27'")
        try:
            found[fold_name(read_requirement(text).name)] = text
        except ValueError:  # a path or a URL, which pip understands
            found[text] = str(Path(text).resolve()) if Path(text).exists() else text
    return list(found.values())


def install(wanted: list[str], asked: list[str], place: Path) -> None:
    """Install all packages into a new folder, and replace the old one by it.

    Raises:
        HookError: the installer failed, or was not found.
    """
    beside, before = place.with_name(f".{place.name}.new"), place.with_name(f".{place.name}.old")
    for rest in (beside, before):
        shutil.rmtree(rest, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    words = [*find_package_tool().words, "--target", str(beside), *wanted]
    with show_progress("fetching and unpacking"):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print_note(done.stdout.rstrip())
        shutil.rmtree(beside, ignore_errors=True)
        raise HookError(f"{' '.join(wanted)} could not be installed; what there was is unchanged")
    (beside / ASKED_FILE).write_text("".join(f"{text}\n" for text in asked), "utf-8")
    if place.exists():
        place.rename(before)
    beside.rename(place)
    shutil.rmtree(before, ignore_errors=True)

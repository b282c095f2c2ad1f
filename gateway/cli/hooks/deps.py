"""`hooks deps`: what a hook's `requires.python` lacks is installed into a place on the path of that hook alone.

It is installed beside what was there before and put in its place whole, so that a failure changes nothing. pip does
it, that of this environment or of the Python which it was made from; else uv.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from gateway.cli.hooks.control import show_state
from gateway.cli.output import print_note, show_json
from gateway.config.home import Home
from gateway.control_socket.client import call_gateway
from gateway.errors import HookError, NotRunning
from gateway.hooks.folders.manifest import read_manifest
from gateway.hooks.folders.readiness import list_missing_packages


def run(args: argparse.Namespace, home: Home) -> None:
    try:
        folder, is_running = Path(call_gateway(home.socket, "hooks.info", name=args.name)["path"]), True
    except NotRunning:
        folder, is_running = home.hooks / Path(args.name).name, False
        if not folder.is_dir():
            raise HookError(f"there is no folder {folder}") from None
    manifest = read_manifest(folder).required(folder)
    wanted, place = list_missing_packages(manifest, sys.path), home.hook_state / "packages" / folder.name
    if list_missing_packages(manifest, [str(place), *sys.path]):
        print_note(f"installing {' '.join(wanted)} into {place}")
        install(wanted, place)
    else:
        print_note(f"{args.name} lacks no package")
    if is_running:
        show_state(args.name, call_gateway(home.socket, "hooks.reload", name=args.name), as_json=args.json)
    elif args.json:
        show_json({"hook": None})


def install(wanted: list[str], place: Path) -> None:
    """All of these, as a new folder in the place of the one before.

    Raises:
        HookError: the installer failed, or there is none.
    """
    beside, before = place.with_name(f".{place.name}.new"), place.with_name(f".{place.name}.old")
    for rest in (beside, before):
        shutil.rmtree(rest, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*find_installer(), "--target", str(beside), *wanted], stdout=sys.stderr, check=False)
    if done.returncode:
        shutil.rmtree(beside, ignore_errors=True)
        raise HookError(f"{' '.join(wanted)} could not be installed; what there was is unchanged")
    if place.exists():
        place.rename(before)
    beside.rename(place)
    shutil.rmtree(before, ignore_errors=True)


def find_installer() -> list[str]:
    """The words that begin a command which installs packages for this interpreter."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--no-config", "--python", sys.executable]
    python = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    asked = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
    if asked.returncode:
        raise HookError("neither pip nor uv is there to install packages\ninstall uv, or pip into this environment")
    return [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-warn-script-location"]

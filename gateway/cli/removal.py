"""`hermes-gateway uninstall`: remove the service and the program; the home stays, unless its path is typed too."""

import argparse
import shlex
import shutil
import subprocess
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

from gateway.cli.output import MissingAnswer, ask_person, print_note, print_text, show_fields, show_progress
from gateway.cli.service.launchd import LaunchdService
from gateway.cli.service.systemd import SystemdService
from gateway.cli.upgrade import describe_other_gateways
from gateway.cli.upgrade.running_gateway import RunningGateway, find_service
from gateway.config.home import Home, get_process_environment
from gateway.desk.settings_file import list_connections, write_file
from gateway.errors import ExitCode
from gateway.installation import PACKAGE, Installation, find_installation
from gateway.upgrade.plan import steer_upgrade


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--purge", action="store_true", help="also remove the gateway's data; you type the path of the home to confirm"
    )


def run(args: argparse.Namespace, home: Home) -> int | None:
    installation = find_installation(Path(sys.prefix), Path(sys.base_prefix))
    environ = get_process_environment()
    gateway = RunningGateway(home, environ)
    gateway.check_caller()
    shared = describe_other_gateways(home, installation.prefix)
    service, command = find_service(home, environ, 0), make_removal_command(installation)
    connected = list_connections(environ)
    show_fields(
        [
            ("gateway", f"{gateway.describe()}{'; it is stopped' if gateway.pid else ''}"),
            ("service", f"{service.unit} goes" if service else "this home has none"),
            (
                "program",
                f"{installation.prefix} ({installation.way}){'' if command else ' stays: it is yours to remove'}",
            ),
            ("home", f"{home.own_folder} {'goes' if args.purge else 'stays'}"),
            *((program.title, f"is disconnected: {file.path}") for program, file in connected),
            *([("also run by", f"{shared}, which has no program then: stop it first")] if shared else []),
        ]
    )
    if not ask_person("Uninstall?", args.yes):
        return None
    if args.purge and not can_purge(home):
        return ExitCode.FAILED
    for _, file in connected:  # first: without the gateway the program would deny its tools
        write_file(file)
    with show_progress("the gateway to end what it has begun"):
        done = remove_service(home, gateway, service, purge=args.purge)
    for line in [*done, describe_leftovers(home)]:
        print_text(line)
    if command and shutil.which(command[0]):
        return subprocess.run(command, env=environ | find_tool_folder(installation), check=False).returncode
    removal = command or ["rm", "-r", str(installation.prefix.parent)]
    print_text(f"the program is left; to remove it: {shlex.join(removal)}")
    return None


def remove_service(
    home: Home, gateway: RunningGateway, service: LaunchdService | SystemdService | None, *, purge: bool
) -> list[str]:
    """Remove the service, and return what was done.

    Raises UpgradeError during an upgrade, which would start it again.
    """
    with steer_upgrade(home) if home.own_folder.is_dir() else nullcontext():
        if not home.own_folder.is_dir():
            return list(service.uninstall()) if service else []
        with gateway.keep_stopped():
            done = list(service.uninstall()) if service else []
            if purge:
                shutil.rmtree(home.own_folder)
    return done


def can_purge(home: Home) -> bool:
    """Return True if the person typed the path of the home; a general agreement does not include this."""
    print_note(f"this removes all that was said, and cannot be undone; to go on type: {home.root}")
    said = sys.stdin.readline().strip()
    if not said:
        raise MissingAnswer("the path of the home was not typed; nothing was removed")
    if said != str(home.root):
        print_note("that is not its path; nothing was removed")
    return said == str(home.root)


def describe_leftovers(home: Home) -> str:
    """Describe where the home is, or what remains of it."""
    if home.own_folder.is_dir():
        return f"its home stays: {home.root}"
    left = sorted(path.name for path in home.root.iterdir()) if home.root.is_dir() else []
    if not left:
        return f"{home.own_folder} is gone"
    return f"{home.own_folder} is gone; what is yours, or Hermes's too, stays in {home.root}: {', '.join(left)}"


def find_tool_folder(installation: Installation) -> dict[str, str]:
    """Return the variables for the tool that made the environment: the user may not have those of that time."""
    match installation.way:
        case "uv tool":
            return {"UV_TOOL_DIR": str(installation.prefix.parent)}
        case "pipx":
            return {"PIPX_HOME": str(installation.prefix.parent.parent)}
    return {}


def make_removal_command(installation: Installation) -> list[str]:
    """Return the command that removes the program, by the way of its installation; none for a clone."""
    match installation.way:
        case "uv tool":
            return ["uv", "tool", "uninstall", installation.prefix.name]
        case "pipx":
            return ["pipx", "uninstall", installation.prefix.name]
        case "clone":
            return []
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "uninstall", "-y", PACKAGE]
    return ["uv", "pip", "uninstall", "--python", sys.executable, PACKAGE]

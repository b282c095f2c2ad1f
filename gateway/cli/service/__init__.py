"""`hermes-gateway service`: have the machine start the gateway, and restart it when it ends.

It uses systemd, for one person or for the whole machine. On macOS it uses launchd, by its makers' documentation; that
has not been run yet.
"""

import argparse
import subprocess
import sys

from gateway.cli.output import add_json_option, print_note, print_text, show_fields, show_json
from gateway.cli.program import apply_program_name
from gateway.cli.service.launchd import LaunchdService
from gateway.cli.service.program import find_program
from gateway.cli.service.systemd import SystemdService
from gateway.config.environment import read_environment
from gateway.config.home import Home, get_process_environment
from gateway.daemon.home_lock import lock_holder_of
from gateway.errors import ExitCode, HomeBusy

SECRET_ENDINGS = ("_TOKEN", "_API_KEY", "_SECRET")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, does in {
        "install": "start the gateway now, at each boot, and after a crash",
        "uninstall": "stop the service and remove it; your data stays",
        "status": "show if the service is installed and running",
        "logs": "show the service's output, even if the gateway could not start",
    }.items():
        verb = verbs.add_parser(name, help=does)
        verb.add_argument("--system", action="store_true", help="for the whole host, as a user of its own; needs root")
        if name == "status":
            add_json_option(verb)
        if name == "logs":
            verb.add_argument("-f", "--follow", action="store_true", help="follow what is written from now on")
            verb.add_argument(
                "-n", "--lines", type=int, default=50, metavar="N", help="show the last N lines first (50)"
            )


def run(args: argparse.Namespace, home: Home) -> int | None:
    service = make_service(home, is_system=args.system)
    if args.verb == "install":
        install(service, home)
    elif args.verb == "uninstall":
        for line in service.uninstall():
            print_text(line)
        print_text(f"its home stays: {service.home.root}")
    elif args.verb == "status":
        return show_status(service, as_json=args.json)
    else:
        return subprocess.run(service.make_log_command(args.lines, follow=args.follow), check=False).returncode
    return None


def make_service(home: Home, *, is_system: bool = False) -> LaunchdService | SystemdService:
    """Return the service of this home, or of the machine, on this operating system."""
    environ = get_process_environment()
    if sys.platform == "darwin":
        return LaunchdService(home, environ)
    return SystemdService(home, environ, is_system=is_system)


def install(service: LaunchdService | SystemdService, home: Home) -> None:
    """Install the service; raises HomeBusy if a gateway that a person started would be in its way."""
    service.check_presence()
    holder = lock_holder_of(service.home.lock)
    if holder and not service.is_running():
        raise HomeBusy(f"a gateway that is not a service has this home: {holder}\nstop it first: hermes-gateway stop")
    for line in service.install(find_program(get_process_environment(), sys.argv[0], sys.executable)):
        print_text(line)
    for name in list_shell_variables(home):
        print_note(f"{name} is set in this shell alone, where no service sees it: write it into {service.secrets}")


def list_shell_variables(home: Home) -> list[str]:
    """List secrets of this shell that no file has."""
    kept = read_environment({}, home.env).environ if home.env.exists() else {}
    own = [name for name in get_process_environment() if name.endswith(SECRET_ENDINGS)]
    return sorted(name for name in own if name not in kept)


def show_status(service: LaunchdService | SystemdService, *, as_json: bool) -> int:
    facts = service.describe()
    is_running = service.is_running()
    if as_json:
        show_json({"running": is_running, **facts})
    else:
        show_fields((name, apply_program_name(fact)) for name, fact in facts.items())
    return ExitCode.OK if is_running else ExitCode.NOT_RUNNING

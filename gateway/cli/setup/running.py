"""The gateway that uses what was set up: the running one, the installed service, or one in this terminal."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from gateway.cli import restart
from gateway.cli.output import print_lines, print_note, print_text, show_progress
from gateway.cli.setup.question import ask_yes, can_ask
from gateway.cli.upgrade.running_gateway import find_service
from gateway.config.home import Home, get_process_environment
from gateway.control.client import PATIENCE, call_gateway
from gateway.errors import NotRunning

START_PATIENCE = 60.0  # seconds for a gateway that was started here to answer
HERE = "\nThe gateway runs in this terminal, until Ctrl-C. In another one: hermes-gateway chat"


def apply_changes(home: Home) -> bool:
    """Have the running gateway use what was written; return False if none runs.

    A restart interrupts others, so it asks the person before it.

    Raises:
        GatewayError: the gateway cannot use it; the reason is the gateway's.
    """
    try:
        found = call_gateway(home.socket, "reload", PATIENCE)
    except NotRunning:
        return False
    if not found["restart"]:
        if found["changed"]:
            print_text("the running gateway uses it from now on")
        return True
    print_lines(f"the running gateway uses this after a restart: {', '.join(found['restart'])}", "")
    if can_ask() and ask_yes("Restart it now?", default=True):
        with show_progress("the gateway to restart"):
            restart.restart_gateway(home)
    else:
        print_note("to restart it: hermes-gateway restart")
    return True


def use_gateway(home: Home, act: Callable[[], int]) -> int:
    """Act with a gateway that uses what was written; if none runs, one is started.

    Raises:
        NotRunning: none runs, and the person did not want one started.
        GatewayError: it cannot be started, or cannot use what was written.
    """
    if apply_changes(home):
        return act()
    if service := find_service(home, get_process_environment(), 0):
        with show_progress("the service to start"):
            service.start()
            is_ready = restart.wait_until_running(home, START_PATIENCE, service.is_running)
        if not is_ready:
            raise NotRunning("the service does not answer\nsee why: hermes-gateway service logs")
        return act()
    if not can_ask() or not ask_yes("No gateway is running. Run it now, in this terminal?", default=True):
        raise NotRunning("no gateway is running\nstart it with: hermes-gateway run")
    return run_gateway(home, act)


def run_gateway(home: Home, act: Callable[[], int]) -> int:
    """Run the gateway in the foreground of this terminal, until it ends; it handles Ctrl-C."""
    command = [sys.executable, "-P", "-m", "gateway.cli", "--home", str(home.root), "run"]
    gateway = subprocess.Popen(command)
    with suppress(KeyboardInterrupt):
        if restart.wait_until_running(home, START_PATIENCE, lambda: gateway.poll() is None):
            act()
            print_text(HERE)
    while True:
        with suppress(KeyboardInterrupt):
            return gateway.wait()

"""`hermes-gateway restart`: end the running gateway in good order, and wait until it serves again."""

import argparse
import time
from collections.abc import Callable
from contextlib import suppress

from gateway.cli.output import print_note, show_progress
from gateway.cli.stop import wait_for_end
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import GatewayError, NotRunning

PATIENCE = 120.0  # seconds: a start may take 90, after a supervisor's pause
GLANCE = 0.1


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: the gateway restarts as it was started."""


def run(_args: argparse.Namespace, home: Home) -> None:
    with show_progress("the gateway to restart"):
        restart_gateway(home)
    print_note("the gateway has restarted")


def restart_gateway(home: Home) -> None:
    """Restart the gateway; it is ready when this returns.

    Raises NotRunning if none serves the home, or none came back.
    """
    wait_for_end(home, "restart")
    if not wait_until_running(home, PATIENCE):
        what = f"the gateway has ended, and is not ready after {PATIENCE:.0f} s"
        raise NotRunning(f"{what}\nsee why: hermes-gateway logs")


def wait_until_running(home: Home, patience: float, is_running: Callable[[], bool] = lambda: True) -> bool:
    """Wait until the gateway serves; False: it has ended, or the time is over."""
    limit = time.monotonic() + patience
    while is_running() and time.monotonic() < limit:
        with suppress(GatewayError):
            if call_gateway(home.socket, "status", patience)["state"] == "ready":
                return True
        time.sleep(GLANCE)
    return False

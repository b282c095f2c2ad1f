"""`hermes-gateway stop`: end the running gateway as its supervisor would, and wait until it has ended."""

import argparse
import time

from gateway.cli.output import print_note, show_progress
from gateway.config.home import Home
from gateway.control.client import ControlClient
from gateway.daemon.home_lock import lock_holder_of

GLANCE = 0.05  # seconds between two checks of the home's lock


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: the time limit is a setting, `gateway.shutdown_timeout`."""


def run(_args: argparse.Namespace, home: Home) -> None:
    with show_progress("the gateway to end what it has begun"):
        stop_gateway(home)
    print_note("the gateway has stopped")


def wait_for_end(home: Home, verb: str) -> None:
    """Request the gateway's end by this verb, and wait until it disconnects.

    Raises NotRunning if none serves the home.
    """
    with ControlClient(home.socket, timeout=None) as client:
        client.call(verb)
        for _ in client.messages():
            pass


def stop_gateway(home: Home) -> None:
    """Stop the gateway; when this returns, it has released the home. Raises NotRunning if none serves it."""
    holder = lock_holder_of(home.lock)
    wait_for_end(home, "stop")
    while holder and lock_holder_of(home.lock) == holder:  # it closes its files before it releases the lock
        time.sleep(GLANCE)

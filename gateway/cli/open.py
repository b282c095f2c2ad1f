"""`hermes-gateway open`: a link to the operator's page, which works once within a minute; `--end` ends all logins."""

import argparse
import webbrowser

from gateway.cli.output import print_note, show_result
from gateway.config.home import Home, get_process_environment
from gateway.control.client import PATIENCE, call_gateway
from gateway.daemon.home_lock import lock_holder_of
from gateway.errors import NotRunning

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    says = "end all logins and unused links"
    parser.add_argument("--end", action="store_true", help=says)
    parser.add_argument("--json", action="store_true", help="print a JSON object, and open nothing")


def run(args: argparse.Namespace, home: Home) -> None:
    if args.end:
        found = call_gateway(home.socket, "web.end", PATIENCE)
        show_result(found, f"{found['ended']} logins have ended", as_json=args.json)
        return
    try:
        found = call_gateway(home.socket, "web.open", PATIENCE)
    except NotRunning:
        if holder := lock_holder_of(home.lock):
            raise NotRunning(f"the gateway starts or stops just now: {holder}\ntry again in a moment") from None
        raise
    show_result(found, found["url"], as_json=args.json)
    if args.json:
        return
    print_note(f"valid once, for {found['seconds']:.0f} seconds; the person who opens it is logged in as the owner")
    if any(get_process_environment().get(name) for name in SCREENS):  # a browser in this terminal would occupy it
        webbrowser.open(found["url"])

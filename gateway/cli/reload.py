"""`hermes-gateway reload`: have the gateway read the configuration again, as SIGHUP does."""

import argparse

from gateway.cli.output import add_json_option, print_note, show_result
from gateway.config.home import Home
from gateway.control.client import call_gateway


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def run(args: argparse.Namespace, home: Home) -> None:
    found = call_gateway(home.socket, "reload")
    changed = ", ".join(found["changed"])
    show_result(found, f"changed: {changed}" if changed else "nothing has changed", as_json=args.json)
    if found["restart"] and not args.json:
        print_note(f"only after hermes-gateway restart: {', '.join(found['restart'])}")

"""`hermes-gateway setup`: all steps in one conversation, or one step.

The steps are the model, a chat network, the service, and the bot's first message. Each one works by flags too, for use
without a terminal. Input is tested before anything is written, and secrets are written to `.env` alone.
"""

import argparse
import sys
from typing import Any

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.folder import load_setup
from gateway.cli import CommandParser, service
from gateway.cli.setup import first_steps, message, model, network
from gateway.cli.setup.network import NetworkParser
from gateway.config.home import Home
from gateway.config.platform_settings import PlatformPlace

MODEL, SERVICE, MESSAGE = "model", "service", "message"


def add_arguments(parser: CommandParser) -> None:
    """Add the steps; without a step the setup asks a person, so a terminal is required."""
    steps = parser.add_subparsers(
        dest="network", metavar="NETWORK", required=not sys.stdin.isatty(), parser_class=make_parser
    )
    model.add_model_arguments(steps.add_parser(MODEL, help="connect a language model, and try it"))
    of_service = steps.add_parser(SERVICE, help="run the gateway as a service of this host")
    of_service.add_argument(
        "--system", action="store_true", help="for the whole host, as a user of its own; needs root"
    )
    message.add_message_arguments(steps.add_parser(MESSAGE, help="make the bot write a first message to its owners"))
    for name, place in list_places(parser.home, all_packages=True).items():
        does = f"from {place.origin}; it runs inside the gateway" if place.origin else load_setup(place).summary
        steps.add_parser(name, help=does, description=does, network=name, place=place)


def make_parser(network: str = "", place: PlatformPlace | None = None, **given: Any) -> CommandParser:
    """Make the parser of one step."""
    return NetworkParser(network, place, **given) if place else CommandParser(**given)


def run(args: argparse.Namespace, home: Home) -> int | None:
    if args.network == MESSAGE:
        return message.run(args, home)
    if args.network is None:
        first_steps.run(home)
    elif args.network == MODEL:
        model.run(args, home)
    elif args.network == SERVICE:
        service.run(argparse.Namespace(verb="install", system=args.system), home)
    else:
        network.run(args, home)
    return None

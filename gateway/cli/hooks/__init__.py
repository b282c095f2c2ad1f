"""`hermes-gateway hooks`: what hooks there are and how they fare, and everything that one does with a hook."""

import argparse

from gateway.cli.hooks import check, dead, listing, making, steering
from gateway.config.home import Home


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in (listing, making, check, steering, dead):
        module.add(verbs)


def run(args: argparse.Namespace, home: Home) -> int:
    code: int = args.does(args, home)
    return code

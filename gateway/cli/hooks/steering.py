"""Verbs that say a word to the running gateway about one hook: enable, disable, reload, reset, trust."""

import argparse
from typing import Any

from gateway.cli.hooks.listing import ask
from gateway.cli.output import show_json
from gateway.config.home import Home
from gateway.errors import Exit


def run(args: argparse.Namespace, home: Home) -> int:
    show_state(args.name, ask(home, args.verb, name=args.name), as_json=args.json)
    return int(Exit.OK)


def show_state(name: str, hook: dict[str, Any], *, as_json: bool) -> None:
    """What has become of it."""
    if as_json:
        show_json({"hook": hook})
    else:
        print(f"{name}: {hook['state']}{': ' + hook['reason'] if hook['reason'] else ''}")

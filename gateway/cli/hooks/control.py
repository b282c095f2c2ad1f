"""The verbs that change a hook in the running gateway: enable, disable, reload (or all), reset, trust, forget."""

import argparse
from typing import Any

from gateway.cli.hooks.list import select_listed
from gateway.cli.output import show_json, show_progress, show_result
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> None:
    with show_progress(f"{args.name or 'all hooks'}: {args.verb}"):
        answer = call_gateway(home.socket, f"hooks.{args.verb}", name=args.name)
    if args.name:
        show_state(args.name, answer, as_json=args.json)
    elif args.json:
        show_json(answer)
    else:
        for hook in select_listed(answer["hooks"], is_all=False):
            show_state(hook["name"], hook, as_json=False)


def show_state(name: str, hook: dict[str, Any], *, as_json: bool) -> None:
    """Print the hook's new state."""
    text = f"{name}: {hook['state']}{': ' + hook['reason'] if hook['reason'] else ''}"
    show_result({"hook": hook}, to_one_line(text), as_json=as_json)

"""`hooks dead-letters`: deliveries that were given up, and what becomes of them."""

import argparse
import json

from gateway.cli.hooks.list import call_hooks
from gateway.cli.output import format_ago, show_json, show_result, show_table
from gateway.config.home import Home
from gateway.errors import HookError


def run(args: argparse.Namespace, home: Home) -> None:
    match args.letters:
        case "list":
            show_list(args, home)
        case "show":
            show_one(args, home)
        case _:
            count = call_hooks(home, f"dead_{args.letters}", name=args.name, id=args.id)["count"]
            text = f"{args.name}: {count} {'delivered again' if args.letters == 'retry' else 'thrown away'}"
            show_result({"count": count}, text, as_json=args.json)


def show_list(args: argparse.Namespace, home: Home) -> None:
    letters = call_hooks(home, "dead_letters", name=args.name)["letters"]
    if args.json:
        show_json({"letters": letters})
        return
    rows = [
        (one["hook"], one["number"], one["event"], format_ago(one["at"]), one["attempts"], one["reason"])
        for one in letters
    ]
    show_table(("hook", "id", "event", "given up", "attempts", "reason"), rows, "there are no dead letters")


def show_one(args: argparse.Namespace, home: Home) -> None:
    letters = call_hooks(home, "dead_letters", name=args.name)["letters"]
    letter = next((one for one in letters if one["number"] == args.id), None)
    if letter is None:
        raise HookError(f"{args.name} has no dead letter {args.id}\nhermes-gateway hooks dead-letters list {args.name}")
    show_result({"letter": letter}, json.dumps(letter, indent=2, ensure_ascii=False), as_json=args.json)

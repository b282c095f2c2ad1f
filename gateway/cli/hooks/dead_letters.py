"""`hooks dead-letters`: deliveries that were given up, and what becomes of them."""

import argparse
import json

from gateway.cli.hooks.list import call_hooks, format_ago
from gateway.cli.output import show_json, show_table
from gateway.config.home import Home
from gateway.errors import ExitCode, HookError


def run(args: argparse.Namespace, home: Home) -> int:
    match args.letters:
        case "list":
            return show_list(args, home)
        case "show":
            return show_one(args, home)
        case _:
            return retry_or_prune(args, home)


def show_list(args: argparse.Namespace, home: Home) -> int:
    letters = call_hooks(home, "dead_letters", name=args.name)["letters"]
    if args.json:
        show_json({"letters": letters})
    else:
        rows = [
            (one["hook"], one["number"], one["event"], format_ago(one["at"]), one["attempts"], one["reason"])
            for one in letters
        ]
        show_table(("hook", "id", "event", "given up", "attempts", "reason"), rows, "there are no dead letters")
    return int(ExitCode.OK)


def show_one(args: argparse.Namespace, home: Home) -> int:
    letters = call_hooks(home, "dead_letters", name=args.name)["letters"]
    for letter in letters:
        if letter["number"] == args.id:
            if args.json:
                show_json({"letter": letter})
            else:
                print(json.dumps(letter, indent=2, ensure_ascii=False))
            return int(ExitCode.OK)
    raise HookError(f"{args.name} has no dead letter {args.id}\nhermes-gateway hooks dead-letters list {args.name}")


def retry_or_prune(args: argparse.Namespace, home: Home) -> int:
    count = call_hooks(home, f"dead_{args.letters}", name=args.name, id=args.id)["count"]
    if args.json:
        show_json({"count": count})
        return int(ExitCode.OK)
    print(f"{args.name}: {count} {'delivered again' if args.letters == 'retry' else 'thrown away'}")
    return int(ExitCode.OK)

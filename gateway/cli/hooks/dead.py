"""`hooks dead-letters`: deliveries that were given up, and what becomes of them."""

import argparse
import json
from typing import Any

from gateway.cli.hooks.listing import ago, ask
from gateway.cli.output import show_json, show_table
from gateway.config.home import Home
from gateway.errors import Exit


def add(verbs: Any) -> None:
    dead = verbs.add_parser("dead-letters", help="events that a durable hook could not take, kept until you decide")
    letters = dead.add_subparsers(dest="letters", metavar="VERB", required=True)
    listed = letters.add_parser("list", help="all of them, or those of one hook")
    listed.add_argument("name", nargs="?", default="", help="the name of a hook's folder")
    listed.add_argument("--json", action="store_true", help="print one object")
    listed.set_defaults(does=show_list)
    show = letters.add_parser("show", help="one of them, with its event")
    show.add_argument("name", help="the name of the hook's folder")
    show.add_argument("id", type=int, help="its number in the list")
    show.set_defaults(does=show_one)
    retry = letters.add_parser("retry", help="deliver again: one, or all of a hook")
    prune = letters.add_parser("prune", help="throw away: one, or all of a hook")
    for verb in (retry, prune):
        verb.add_argument("name", help="the name of the hook's folder")
        verb.add_argument("id", type=int, nargs="?", help="its number in the list")
        verb.set_defaults(does=decide)


def show_list(args: argparse.Namespace, home: Home) -> int:
    letters = ask(home, "dead_letters", name=args.name)["letters"]
    if args.json:
        show_json({"letters": letters})
    else:
        rows = [
            (one["hook"], one["number"], one["event"], ago(one["at"]), one["attempts"], one["reason"])
            for one in letters
        ]
        show_table(("hook", "id", "event", "given up", "attempts", "reason"), rows, "there are no dead letters")
    return int(Exit.OK)


def show_one(args: argparse.Namespace, home: Home) -> int:
    letters = ask(home, "dead_letters", name=args.name)["letters"]
    for letter in letters:
        if letter["number"] == args.id:
            print(json.dumps(letter, indent=2, ensure_ascii=False))
            return int(Exit.OK)
    print(f"{args.name} has no dead letter {args.id}")
    return int(Exit.FAILED)


def decide(args: argparse.Namespace, home: Home) -> int:
    count = ask(home, f"dead_{args.letters}", name=args.name, id=args.id)["count"]
    print(f"{args.name}: {count} {'delivered again' if args.letters == 'retry' else 'thrown away'}")
    return int(Exit.OK)

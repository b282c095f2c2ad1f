"""`hooks dead-letters`: the deliveries that the gateway gave up, and how to retry or delete them."""

import argparse
import json
from typing import Any

from gateway.cli.output import format_ago, show_answer, show_result, show_table
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import HookError
from gateway.logs.text import to_json_text


def run(args: argparse.Namespace, home: Home) -> None:
    if args.letters in ("retry", "prune"):
        done = call_gateway(home.socket, f"hooks.dead_{args.letters}", name=args.name, id=args.id)
        text = f"{args.name}: {done['count']} {'delivered again' if args.letters == 'retry' else 'thrown away'}"
        show_result(done, text, as_json=args.json)
        return
    found = call_gateway(home.socket, "hooks.dead_letters", name=args.name)
    if args.letters == "show":
        show_one(args, found["letters"])
    else:
        show_answer(found, show_list, as_json=args.json)


def show_list(found: dict[str, Any]) -> None:
    rows = [
        (one["hook"], one["number"], one["event"], format_ago(one["at"]), one["attempts"], one["reason"])
        for one in found["letters"]
    ]
    show_table(("hook", "id", "event", "given up", "attempts", "reason"), rows, "there are no dead letters")


def show_one(args: argparse.Namespace, letters: list[dict[str, Any]]) -> None:
    letter = next((one for one in letters if one["number"] == args.id), None)
    if letter is None:
        raise HookError(f"{args.name} has no dead letter {args.id}\nhermes-gateway hooks dead-letters list {args.name}")
    text = to_json_text(json.dumps(letter, indent=2, ensure_ascii=False))
    show_result({"letter": letter}, text, as_json=args.json)

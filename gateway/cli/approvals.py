"""`hermes-gateway approvals`: what waits for somebody's yes before it runs, and the owner's yes or no."""

import argparse
import json
import time
from typing import Any

from gateway.cli.output import apply_style, format_duration, show_json, show_result
from gateway.config.home import Home
from gateway.control_socket.client import PATIENCE, call_gateway
from gateway.logs.signs import show_signs
from gateway.logs.text import to_one_line

NOTHING = "nothing waits for an approval"
REMEDY = "\nallow one, this once: hermes-gateway approvals yes ID    refuse it: hermes-gateway approvals no ID"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one object")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listed = verbs.add_parser("list", help="what waits, with all that would run; so without a verb")
    allowed = verbs.add_parser("yes", help="let it run, this once")
    refused = verbs.add_parser("no", help="do not let it run")
    for one in (allowed, refused):
        one.add_argument("id", help="as `list` shows it")
    for one in (listed, allowed, refused):
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one object")


def run(args: argparse.Namespace, home: Home) -> None:
    if args.verb in (None, "list"):
        show_approvals(call_gateway(home.socket, "approvals.list", PATIENCE), as_json=args.json)
        return
    did = call_gateway(home.socket, "approvals.answer", PATIENCE, id=args.id, allowed=args.verb == "yes")
    show_result(did, f"{to_one_line(did['id'])} is {'allowed' if did['allowed'] else 'refused'}", as_json=args.json)


def show_approvals(found: dict[str, Any], *, as_json: bool) -> None:
    """Each with its arguments whole, however long they are: what is shown is what runs."""
    if as_json:
        show_json(found)
        return
    for one in found["approvals"]:
        name = f"{one['user_name']} " if one["user_name"] else ""
        place = f"{one['platform']} {one['chat_id']}"
        left = format_duration(max(one["until"] - time.time(), 0))
        who = to_one_line(f"{name}({one['platform']} {one['user_id']}) in {place}, for {left} yet")
        print(f"{apply_style(one['id'], 'bold')}  {who}")
        for call in one["calls"]:
            print(f"  {to_one_line(call['tool'])}")
            for line in show_signs(json.dumps(call["args"], ensure_ascii=False, indent=2)).split("\n"):
                print(f"    {line}")
    print(REMEDY if found["approvals"] else apply_style(NOTHING, "dim"))

"""`hermes-gateway keys`: the API keys of programs for the port; each is shown once, when it is made."""

import argparse
from typing import Any, get_args

from gateway.cli.output import add_json_option, format_ago, print_note, show_answer, show_result, show_table
from gateway.config.home import Home
from gateway.control.client import PATIENCE, call_gateway
from gateway.logs.text import to_one_line
from gateway.messages.roles import KeyRole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the names of the keys")
    new = verbs.add_parser("new", help="create a key; it is shown only once")
    new.add_argument("name", help="a name, such as the program's: prometheus")
    says = "user: chat with an agent; operator: also read figures; desk: only ask for approvals"
    new.add_argument("--as", dest="role", choices=get_args(KeyRole), required=True, help=says)
    speaks = "the agent that it may use under /v1 (default: none)"
    new.add_argument("--agent", default="", metavar="NAME", help=speaks)
    revoke = verbs.add_parser("revoke", help="revoke a key; no program can use it any more")
    revoke.add_argument("name", help="as `list` shows it")
    add_json_option(listed, new, revoke)


def run(args: argparse.Namespace, home: Home) -> None:
    match args.verb:
        case "list":
            show_answer(call_gateway(home.socket, "keys.list", PATIENCE), show_keys, as_json=args.json)
        case "new":
            made = call_gateway(home.socket, "keys.create", PATIENCE, name=args.name, role=args.role, agent=args.agent)
            show_result(made, made["key"], as_json=args.json)
            print_note("keep it now: it is shown once, and only its checksum is kept")
            if args.role == "user" and not args.agent:
                print_note(
                    "this key has no access yet: for an agent, add `--agent NAME`; for figures, use `--as operator`"
                )
        case "revoke":
            gone = call_gateway(home.socket, "keys.revoke", PATIENCE, name=args.name)
            show_result(gone, to_one_line(f"the key {gone['name']} is revoked"), as_json=args.json)


def show_keys(found: dict[str, Any]) -> None:
    rows = [(one["name"], one["role"], one["agent"] or "-", format_ago(one["at"])) for one in found["keys"]]
    show_table(("key", "as", "agent", "made"), rows, "no API keys: hermes-gateway keys new NAME --as operator")

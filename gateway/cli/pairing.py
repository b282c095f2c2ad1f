"""`hermes-gateway pairing`: people who ask to be let in, and those who were."""

import argparse
from typing import Any

from gateway.adapters import ADAPTERS
from gateway.cli.output import format_ago, join_choices, show_json, show_result, show_table
from gateway.config.home import Home
from gateway.control_socket.client import PATIENCE, call_gateway
from gateway.dispatcher.pairing_commands import GIVEN_ROLES
from gateway.logs.text import to_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="who asks, and who was let in")
    approve = verbs.add_parser("approve", help="let in whoever has this code: as a user, for direct messages")
    code = (
        "as the person was told it; the number of who asks, as `list` shows it: '#3'; or platform:id of who was let in"
    )
    approve.add_argument("code", help=code)
    says = "with this role; a higher one than user counts wherever they write"
    approve.add_argument("--as", dest="role", choices=GIVEN_ROLES, default="user", help=says)
    revoke = verbs.add_parser("revoke", help="let somebody in no more")
    revoke.add_argument("platform", help=join_choices(ADAPTERS))
    revoke.add_argument("user", help="their id, as `list` shows it")
    for one in (listed, approve, revoke):
        one.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace, home: Home) -> None:
    match args.verb:
        case "list":
            show_people(call_gateway(home.socket, "pairing.list", PATIENCE), as_json=args.json)
        case "approve":
            guest = call_gateway(home.socket, "pairing.approve", PATIENCE, code=args.code, role=args.role)
            show_person(guest, f"may speak now, as {guest['role']}", as_json=args.json)
        case "revoke":
            guest = call_gateway(home.socket, "pairing.revoke", PATIENCE, platform=args.platform, user_id=args.user)
            show_person(guest, "may speak no more", as_json=args.json)


def show_people(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    rows = [
        (_number_of(one), one["platform"], one["user_id"], one["user_name"], what.format(**one), format_ago(one["at"]))
        for what, people in (("asks", found["asking"]), ("was let in as {role}", found["people"]))
        for one in people
    ]
    show_table(("", "platform", "id", "name", "", "when"), rows, "nobody asks, and nobody was let in by a code")
    if found["asking"]:
        print("\nlet somebody in with the code that they were told: hermes-gateway pairing approve CODE")
        print("or, if you know who it is, with the number in this list: hermes-gateway pairing approve '#3'")


def _number_of(one: dict[str, Any]) -> str:
    return f"#{one['number']}" if one.get("number") else ""


def show_person(guest: dict[str, Any], what: str, *, as_json: bool) -> None:
    text = f"{guest['user_name'] or guest['user_id']} ({guest['platform']} {guest['user_id']}) {what}"
    show_result(guest, to_one_line(text), as_json=as_json)

"""`hermes-gateway pairing`: pairing requests, invitations, and paired users."""

import argparse
from typing import Any

from gateway.adapters.shared.adapter_finder import list_places
from gateway.cli import CommandParser
from gateway.cli.output import (
    add_json_option,
    format_ago,
    format_duration,
    join_choices,
    print_text,
    show_answer,
    show_result,
    show_table,
)
from gateway.cli.program import apply_program_name
from gateway.config.home import Home
from gateway.control.client import PATIENCE, call_gateway
from gateway.dispatcher.pairing_commands import GIVEN_ROLES, NUMBER
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import parse_duration


def add_arguments(parser: CommandParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list pairing requests, paired users and invitations")
    approve = verbs.add_parser("approve", help="authorize the person with this code, for direct messages")
    code = "the code; or a request's number in `list`: '#3'; or platform:id of a paired user"
    approve.add_argument("code", help=code)
    says = "the role; any role above user holds in every chat"
    approve.add_argument("--as", dest="role", choices=GIVEN_ROLES, default="user", help=says)
    invite = verbs.add_parser("invite", help="create a link that authorizes the first person who opens it")
    invite.add_argument("--as", dest="role", choices=GIVEN_ROLES, default="user", help=says)
    lasts = "how long the link is valid, at most 7d (default: 1h)"
    invite.add_argument("--for", dest="lifetime", metavar="TIME", default="1h", type=check_duration, help=lasts)
    uninvite = verbs.add_parser("uninvite", help="cancel an invitation")
    uninvite.add_argument("number", type=parse_invitation, help="its number, as `list` shows it: '#3'")
    revoke = verbs.add_parser("revoke", help="remove a paired user")
    revoke.add_argument("platform", help=join_choices(list_places(parser.home)))
    revoke.add_argument("user", help="their id, as `list` shows it")
    add_json_option(listed, approve, invite, uninvite, revoke)


def run(args: argparse.Namespace, home: Home) -> None:
    match args.verb:
        case "list":
            show_answer(call_gateway(home.socket, "pairing.list", PATIENCE), show_people, as_json=args.json)
        case "approve":
            guest = call_gateway(home.socket, "pairing.approve", PATIENCE, code=args.code, role=args.role)
            show_person(guest, f"may write to the bot now, as {guest['role']}", as_json=args.json)
        case "invite":
            made = call_gateway(home.socket, "pairing.invite", PATIENCE, role=args.role, lifetime=args.lifetime)
            show_answer(made, show_invitation, as_json=args.json)
        case "uninvite":
            gone = call_gateway(home.socket, "pairing.uninvite", PATIENCE, number=args.number)
            show_result(gone, f"invitation #{args.number} is no longer valid", as_json=args.json)
        case "revoke":
            guest = call_gateway(home.socket, "pairing.revoke", PATIENCE, platform=args.platform, user_id=args.user)
            show_person(guest, "may speak no more", as_json=args.json)


def check_duration(text: str) -> float:
    """Parse a duration; raises argparse.ArgumentTypeError for anything else."""
    if (seconds := parse_duration(text)) is None:
        raise argparse.ArgumentTypeError("write how long it is valid: `30m`, `2h` or `7d`")
    return seconds


def parse_invitation(written: str) -> int:
    """Parse the number of an invitation; raises argparse.ArgumentTypeError for anything else."""
    if not (numbered := NUMBER.fullmatch(f"#{written.removeprefix('#')}")):
        raise argparse.ArgumentTypeError("write its number, as `pairing list` shows it: '#3'")
    return int(numbered[1])


def show_invitation(made: dict[str, Any]) -> None:
    left = format_duration(made["left"])
    print(f"invitation #{made['number']}: valid once, for {left}; gives the role {made['role']}\n")
    for way in made["ways"]:
        text = f"{way['platform']}: {way['text']}" if way["platform"] else way["text"]
        print(apply_program_name(to_one_line(text)))  # not folded, since it has an address in it
    print_text(f"\ncancel it: hermes-gateway pairing uninvite '#{made['number']}'")


def show_people(found: dict[str, Any]) -> None:
    rows = [
        (_number_of(one), one["platform"], one["user_id"], one["user_name"], what.format(**one), format_ago(one["at"]))
        for what, people in (("asks", found["asking"]), ("paired as {role}", found["people"]))
        for one in people
    ]
    rows += [
        (
            f"#{one['number']}",
            "",
            "",
            "",
            f"an invitation as {one['role']}, by {one['by']}",
            f"{format_duration(one['left'])} left",
        )
        for one in found["invited"]
    ]
    show_table(("", "platform", "id", "name", "", "when"), rows, "no pairing requests, and no paired users")
    if found["asking"]:
        print_text("\nauthorize a person by their code: hermes-gateway pairing approve CODE")
        first = _number_of(found["asking"][0])
        print_text(f"or, if you know who it is, with the number in this list: hermes-gateway pairing approve '{first}'")


def _number_of(one: dict[str, Any]) -> str:
    return f"#{one['number']}" if one.get("number") else ""


def show_person(guest: dict[str, Any], what: str, *, as_json: bool) -> None:
    text = f"{guest['user_name'] or guest['user_id']} ({guest['platform']} {guest['user_id']}) {what}"
    show_result(guest, to_one_line(text), as_json=as_json)

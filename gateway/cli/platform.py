"""`hermes-gateway platform`: the chat networks and their state; pause, restart or probe one of them."""

import argparse
from collections.abc import Iterator
from typing import Any

from gateway.cli import CommandParser
from gateway.cli.output import (
    add_json_option,
    format_ago,
    join_choices,
    print_lines,
    show_answer,
    show_result,
    show_table,
)
from gateway.cli.program import apply_program_name
from gateway.config.home import Home
from gateway.control.client import PATIENCE, call_gateway
from gateway.logs.text import to_one_line

RESTING = ("paused", "standby")  # it is down, which is not a fault
STEERING_VERBS = {
    "pause": "neither read nor send there until you resume it or restart the gateway",
    "resume": "resume after a pause, with the messages that arrived meanwhile",
    "restart": "reconnect this network alone",
}


def add_arguments(parser: CommandParser) -> None:
    from gateway.adapters.shared.adapter_finder import list_places  # noqa: PLC0415 - `status` needs nothing of it

    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the networks with their last event, delivery and probe")
    add_json_option(listed)
    for verb, does in {**STEERING_VERBS, "probe": "test now if the network answers"}.items():
        one = verbs.add_parser(verb, help=does)
        one.add_argument("name", help=join_choices(list_places(parser.home)))
        add_json_option(one)


def run(args: argparse.Namespace, home: Home) -> None:
    if args.verb == "list":
        show_answer(call_gateway(home.socket, "platform.list", PATIENCE), show_platforms, as_json=args.json)
    elif args.verb == "probe":
        done = call_gateway(home.socket, "platform.probe", name=args.name)
        show_result(done, f"{done['name']} has answered within {done['seconds'] * 1000:.0f} ms", as_json=args.json)
    else:
        did = call_gateway(home.socket, "platform.steer", PATIENCE, verb=args.verb, name=args.name)
        show_result(did, did["did"], as_json=args.json)


def show_platforms(found: dict[str, Any]) -> None:
    show_table(*table_of(found["platforms"]), "no chat network is served; see: hermes-gateway setup --help")
    for name, reason in found["off"].items():
        print_lines(to_one_line(f"off: {name} ({reason})", 2000), "")


def table_of(platforms: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a table of the networks' proofs of life; `never` since the start."""
    rows = [
        (
            one["name"],
            find_state(one),
            *(format_ago(one[f"last_{what}"]) for what in ("event", "send", "probe")),
            "; ".join(describe_state(one)),
        )
        for one in platforms
    ]
    return ("platform", "state", "last event", "last send", "last probe", ""), rows


def find_state(one: dict[str, Any]) -> str:
    """Return the state of a network in one word."""
    return str(one["state"]) if one["state"] in RESTING else "up" if one["up"] else "down"


def describe_state(one: dict[str, Any]) -> Iterator[str]:
    """Describe the other facts about a network."""
    yield from map(apply_program_name, (one["detail"], *one["complaints"]))
    if one["unreadable"]:
        yield f"{one['unreadable']} could not be read, see hermes-gateway/unreadable"
    if one.get("origin"):  # the code is another author's
        yield f"runs inside the gateway, from {one['origin']}"

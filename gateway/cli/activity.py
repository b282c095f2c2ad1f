"""`hermes-gateway activity`: the actions on the gateway, with their person, origin, object and outcome."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.cli.logs import parse_moment
from gateway.cli.output import add_json_option, print_note, show_json, show_table
from gateway.cli.sessions import format_moment
from gateway.config.home import Home
from gateway.control.client import call_gateway


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="who did what, the newest last")
    add_json_option(listed)
    listed.add_argument("-n", "--last", type=int, default=0, metavar="N", help="only the last N")
    listed.add_argument("--before", type=int, default=0, metavar="NUMBER", help="with -n: those before these")
    export = verbs.add_parser("export", help="the same for other programs: an object a line")
    for one in (listed, export):
        says = "only from then on: `1h`, `2026-01-31 12:00`"
        one.add_argument("--since", type=parse_moment, default=0.0, metavar="TIME", help=says)
        one.add_argument("--who", default="*", metavar="NAME", help="only what they did: ann, `*:1002`")
        one.add_argument("--what", default="*", metavar="DEED", help="only this: pairing.approve, `hooks.*`")


def run(args: argparse.Namespace, home: Home) -> None:
    wanted = {"since": args.since, "who": args.who, "what": args.what}
    if args.verb == "list" and args.last:
        page = call_gateway(home.socket, "activity.list", last=args.last, before=args.before, **wanted)
        found = iter(page["activity"])
        if page["before"]:
            print_note(f"there are some before these: the same with --before {page['before']}")
    else:
        found = read_activity(home, wanted)
    if args.verb == "export":
        for one in found:
            show_json(one)
    elif args.json:
        show_json({"activity": list(found)})
    else:
        is_part = wanted != {"since": 0.0, "who": "*", "what": "*"}
        rows = (
            (format_moment(one["at"]), one["who"], one["place"], one["what"], one["on"], one["outcome"])
            for one in found
        )
        show_table(
            ("when", "who", "from", "what", "on", ""),
            rows,
            "nobody has done anything of that kind" if is_part else "nobody has done anything yet",
        )


def read_activity(home: Home, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all entries, page by page."""
    after = 0
    while True:
        page = call_gateway(home.socket, "activity.list", after=after, **wanted)
        yield from page["activity"]
        if not (after := page["next"]):
            return

"""`hermes-gateway activity`: the actions on the gateway, with their person, origin, object and outcome."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.cli.logs import parse_moment
from gateway.cli.output import add_json_option, format_name, format_names, print_note, show_json, show_table
from gateway.cli.sessions import format_moment
from gateway.config.home import Home
from gateway.control.client import call_gateway


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list who did what; the newest comes last")
    add_json_option(listed)
    listed.add_argument("-n", "--last", type=int, default=0, metavar="N", help="only the last N")
    listed.add_argument("--before", type=int, default=0, metavar="NUMBER", help="with -n: only entries before this one")
    export = verbs.add_parser("export", help="the same for other programs: one JSON object a line")
    for one in (listed, export):
        says = "only since then: `1h`, `2026-01-31 12:00`"
        one.add_argument("--since", type=parse_moment, default=0.0, metavar="TIME", help=says)
        one.add_argument("--who", default="*", metavar="NAME", help="only what this person did: ann, `*:1002`")
        one.add_argument("--what", default="*", metavar="DEED", help="only this action: pairing.approve, `hooks.*`")


def run(args: argparse.Namespace, home: Home) -> None:
    wanted = {"since": args.since, "who": args.who, "what": args.what}
    if args.verb == "list" and args.last:
        page = call_gateway(home.socket, "activity.list", last=args.last, before=args.before, **wanted)
        pages: Iterator[dict[str, Any]] = iter((page,))
        if page["before"]:
            print_note(f"there are some before these: the same with --before {page['before']}")
    else:
        pages = read_pages(home, wanted)
    if args.verb == "export":
        for page in pages:
            for one in page["activity"]:
                show_json(one)
    elif args.json:
        show_json({"activity": [one for page in pages for one in page["activity"]]})
    else:
        is_part = wanted != {"since": 0.0, "who": "*", "what": "*"}
        show_table(
            ("when", "who", "from", "what", "on", ""),
            [row for page in pages for row in format_rows(page)],
            "no activity of that kind" if is_part else "no activity yet",
        )


def format_rows(page: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a page with the names of people."""
    names = page["names"]
    for one in page["activity"]:
        moment, who, on = format_moment(one["at"]), format_name(names, one["who"]), format_names(names, one["on"])
        yield moment, who, one["place"], one["what"], on, one["outcome"]


def read_pages(home: Home, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all entries, page by page."""
    after = 0
    while True:
        page = call_gateway(home.socket, "activity.list", after=after, **wanted)
        yield page
        if not (after := page["next"]):
            return

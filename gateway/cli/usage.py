"""`hermes-gateway usage`: the tokens of model calls and their cost, by person or by another key."""

import argparse
from typing import Any

from gateway.cli.output import add_json_option, print_note, show_json, show_table
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.yaml_source.units import format_count

MOST_DAYS = 36_600
KEYS = ("person", "model", "day", "hook", "session")
UNPRICED = (
    "{calls} of models without a known price, which cost more than is shown: set `input_price` and "
    "`output_price` of the model in config.yaml"
)
ESTIMATED = "{calls} cut off, or of an endpoint that did not say their tokens: those are estimated"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", choices=KEYS, default="person", help="what it is summed by (person)")
    parser.add_argument("--days", type=read_days, default=30, metavar="N", help="of the last N days, with today (30)")
    parser.add_argument("--person", default="", metavar="ID", help="of one person alone, by the id that the table has")
    add_json_option(parser)


def read_days(written: str) -> int:
    """Parse a number of days; raises argparse.ArgumentTypeError for anything else."""
    if not written.isascii() or not written.isdecimal() or not 1 <= int(written[:9]) <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"a number of days, from 1 to {MOST_DAYS}")
    return int(written)


def run(args: argparse.Namespace, home: Home) -> None:
    found = call_gateway(home.socket, "usage", by=args.by, days=args.days, person=args.person)
    if args.json:
        show_json(found)
        return
    rows = [(one["name"] or "-", *format_usage(one)) for one in found["rows"]]
    if len(rows) > 1:
        rows.append(("all", *format_usage(found["total"])))
    show_table((args.by, "calls", "in", "cached", "out", "cost"), rows, "no model was called in these days")
    if found["budgets"]:
        print()
        rows = [
            (one["budget"], one["window"], *map(str, (one["used"], one["limit"])), one["unit"])
            for one in found["budgets"]
        ]
        show_table(("budget", "in", "used", "of", "unit"), rows)
    for text, field in ((UNPRICED, "unpriced"), (ESTIMATED, "estimated")):
        if calls := found["total"][field]:
            print_note(text.format(calls=format_count(calls, "call")))


def format_usage(used: dict[str, Any]) -> tuple[str, ...]:
    """Format calls, tokens and cost for a table."""
    counts = (f"{used[name]:,}" for name in ("calls", "input_tokens", "cached_tokens", "output_tokens"))
    return (*counts, format_price(used["cost"], used["unpriced"]))


def format_price(cost: float | None, unpriced: int) -> str:
    if cost is None:
        return "unknown"
    return f"{cost:.4f}{'+' if unpriced else ''}"

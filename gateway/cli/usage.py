"""`hermes-gateway usage`: the tokens of model calls and their cost, by person or by another key."""

import argparse
from functools import partial
from typing import Any

from gateway.cli.output import add_json_option, format_name, format_names, print_note, show_answer, show_table
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.yaml_source.units import format_count

MOST_DAYS = 36_600
ORDERS = ("cost", "tokens", "calls", "name")
BUDGET_FIELDS = ("window", "used", "limit", "unit")
KEYS = ("person", "model", "day", "hook", "session")
UNPRICED = (
    "{calls} of models without a known price, which cost more than is shown: set `input_price` and "
    "`output_price` of the model in config.yaml"
)
ESTIMATED = "{calls} cut off, or of an endpoint that did not say their tokens: those are estimated"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", choices=KEYS, default="person", help="one row for each of these (person)")
    parser.add_argument("--days", type=read_days, default=30, metavar="N", help="the last N days, including today (30)")
    parser.add_argument("--person", default="", metavar="ID", help="only this person, by the id in the table")
    parser.add_argument("--search", default="", metavar="TEXT", help="only names that contain this text")
    parser.add_argument("--sort", choices=ORDERS, default="", help="the order of the rows (cost; days by date)")
    parser.add_argument("-n", "--limit", type=int, default=-1, metavar="N", help="at most N rows (all)")
    add_json_option(parser)


def read_days(written: str) -> int:
    """Parse a number of days; raises argparse.ArgumentTypeError for anything else."""
    if not written.isascii() or not written.isdecimal() or not 1 <= int(written[:9]) <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"a number of days, from 1 to {MOST_DAYS}")
    return int(written)


def run(args: argparse.Namespace, home: Home) -> None:
    wanted = {name: getattr(args, name) for name in ("by", "days", "person", "search", "sort", "limit")}
    show_answer(call_gateway(home.socket, "usage", **wanted), partial(show_usage, args.by), as_json=args.json)


def show_usage(by: str, found: dict[str, Any]) -> None:
    rows = [(format_name(found["names"], one["name"]) or "-", *format_usage(one)) for one in found["rows"]]
    if found["count"] > 1:
        rows.append(("all", *format_usage(found["total"])))
    show_table((by, "calls", "in", "cached", "out", "cost"), rows, "no model was called in these days")
    if found["budgets"]:
        print()
        rows = [
            (format_names(found["names"], one["budget"]), *(str(one[field]) for field in BUDGET_FIELDS))
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

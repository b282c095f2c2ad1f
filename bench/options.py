"""What a benchmark is asked for on its command line."""

import argparse
from typing import Any


def parse_options(parser: argparse.ArgumentParser, **short: Any) -> argparse.Namespace:
    """What was asked for; `short` stands in for what was not, where `--short` was: the tests run each like that."""
    parser.add_argument("--short", action="store_true", help="every row, in at most half a minute")
    if parser.parse_known_args()[0].short:
        parser.set_defaults(**short)
    return parser.parse_args()

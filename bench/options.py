"""Read a benchmark's command line."""

import argparse
from typing import Any


def parse_options(parser: argparse.ArgumentParser, **short: Any) -> argparse.Namespace:
    """Parse the options. With `--short`, `short` gives the defaults: the tests run each benchmark like that."""
    parser.add_argument("--short", action="store_true", help="every row, in at most half a minute")
    if parser.parse_known_args()[0].short:
        parser.set_defaults(**short)
    return parser.parse_args()

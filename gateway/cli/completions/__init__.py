"""`hermes-gateway completions`: the scripts by which a shell completes our commands and options on Tab.

The files beside this module are generated from the commands (by `./x reference`), so that nothing is computed here.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.cli.output import print_note
from gateway.config.home import Home

FILES: Mapping[str, str] = {"bash": "hermes-gateway.bash", "zsh": "_hermes-gateway", "fish": "hermes-gateway.fish"}
PLACES: Mapping[str, str] = {
    "bash": "~/.local/share/bash-completion/completions/hermes-gateway",
    "zsh": "${fpath[1]}/_hermes-gateway",
    "fish": "~/.config/fish/completions/hermes-gateway.fish",
}
"""The place where each shell looks for its script."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=list(FILES), help="bash, zsh or fish")


def run(args: argparse.Namespace, home: Home) -> None:  # noqa: ARG001 - it prints what is the same everywhere
    print(Path(__file__).with_name(FILES[args.shell]).read_text("utf-8"), end="")
    if sys.stdout.isatty():
        print_note(f"to keep it: hermes-gateway completions {args.shell} > {PLACES[args.shell]}")

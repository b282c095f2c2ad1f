"""`hermes-gateway disconnect`: take the lines of `connect`, and these alone, out of a program's settings."""

import argparse

from gateway.cli.connect import add_program as add_arguments  # noqa: F401 - the program calls it
from gateway.cli.connect import change
from gateway.config.home import Home, get_process_environment
from gateway.desk.programs import PROGRAMS
from gateway.desk.settings_file import disconnect, find_file


def run(args: argparse.Namespace, _home: Home) -> None:
    program = PROGRAMS[args.program]
    change(program, disconnect(program, find_file(program, get_process_environment())), "disconnected", args.yes)

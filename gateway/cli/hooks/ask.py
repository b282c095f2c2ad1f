"""`hermes-gateway hooks ask PROGRAM`: ask the gateway for a program on this machine, as a line in its settings.

`connect` writes another form of this command, which starts sooner: each tool of the program waits for it. A fault
before the question denies the call, since programs run a tool whose hook ends with exit code 1.
"""

import argparse
import json
import sys

from gateway.cli.output import print_note
from gateway.cli.program import load_command
from gateway.config.desk_settings import DeskSettings
from gateway.config.home import Home
from gateway.desk import ask
from gateway.errors import ConfigError

LONGEST = 3600.0 + 60  # seconds; the gateway answers sooner, and the program has a limit of its own


def run(args: argparse.Namespace, home: Home) -> int:
    body = sys.stdin.buffer.read()
    try:
        event = str(json.loads(body)["hook_event_name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        print_note("this is not an event of a hook: `hook_event_name` was not found in the standard input")
        return ask.DENIED
    answer = ask.ask_gateway(args.program, event, LONGEST, str(home.desk_socket), body)
    return ask.write_answer(answer or ask.make_own_answer(args.program, event, read_setting(home)))


def read_setting(home: Home) -> str:
    """Read the setting `desk.down`, or its default if the configuration has a fault.

    The module that reads it is loaded only if no gateway answers.
    """
    try:
        return str(load_command("gateway.cli.connect").read_settings(home).down)
    except ConfigError:
        return DeskSettings().down

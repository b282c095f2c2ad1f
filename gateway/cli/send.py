"""`hermes-gateway send`: send a text, and files, to a chat; for scripts and cron."""

import argparse
import sys
from pathlib import Path

from gateway.cli.output import add_json_option, print_note, show_json
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        required=True,
        metavar="PLATFORM[:CHAT[:THREAD]]",
        help="the chat, by its id or a name such as #general (default: the home channel)",
    )
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="a file to send with the text; may be repeated"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="wait so long for the delivery (30); later, it is still sent",
    )
    add_json_option(parser)
    parser.add_argument("text", nargs="*", help="the text (default, or with `-`: standard input)")


def run(args: argparse.Namespace, home: Home) -> int:
    """Queue the text for the chat, and wait for its arrival, which the exit code reports.

    The command waits longer for the gateway than the gateway itself waits, so that the gateway's answer decides.
    """
    text = " ".join(args.text)
    if text == "-" or (not text and not args.file):
        if sys.stdin.isatty():
            print_note("type the text, and end it with Ctrl-D")
        text = sys.stdin.read()
    files = [str(Path(path).absolute()) for path in args.file]
    asked = {"to": args.to, "text": text, "files": files, "wait": args.wait}
    sent = call_gateway(home.socket, "chat.send", args.wait + 30, **asked)
    if args.json:
        show_json(sent)
    elif sent["state"] == "owed":
        print_note("not sent yet: it is kept, and goes out as soon as the network takes it")
    return ExitCode.KEPT if sent["state"] == "owed" else ExitCode.OK

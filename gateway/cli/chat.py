"""`hermes-gateway chat`: talk to the running gateway from a terminal, or send one message from a script."""

import argparse
import shlex
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from gateway.cli.chat_screen import GATEWAY_LEFT, SILENCE, STILL_WORKING, UNSAID, AnswerFolder, render_answer
from gateway.cli.output import print_note, show_json, show_progress
from gateway.config.home import Home
from gateway.control.client import ControlClient
from gateway.errors import ExitCode, NotRunning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--message", metavar="TEXT", help="send this message, print the reply, and exit")
    parser.add_argument("-s", "--session", metavar="NAME", default="main", help="the session to use (main)")
    parser.add_argument("--json", action="store_true", help="with -m: print a JSON object instead of the text")


def run(args: argparse.Namespace, home: Home) -> int:
    if args.message is not None and not args.message.strip():
        print_note("hermes-gateway chat: --message is empty")
        return ExitCode.USAGE
    if args.message is not None:
        return send_message(home.socket, args.message, args.session, [], is_single=True, as_json=args.json)
    if not sys.stdin.isatty():
        return send_lines(home.socket, sys.stdin, args.session)
    # The line editor is heavy, and only a typing person needs it.
    from gateway.cli.chat_prompt import run_interactive  # noqa: PLC0415

    return run_interactive(home, args.session)


def send_message(
    socket: Path, text: str, session: str, shown: list[str], *, is_single: bool, as_json: bool = False
) -> int:
    """Send one message; print its reply on stdout and other texts beside it. The exit code says if it was answered.

    `shown` has the ids of earlier replies that were shown; the ids of this one's replies are added.
    """
    said: list[str] = []

    def hear(method: str, params: Any) -> None:
        if method == "reply":
            shown.append(params["id"])
        if method == "reply" and not params["turn_id"]:
            said.append(params["text"])

    moving = show_progress(STILL_WORKING, after=SILENCE) if sys.stderr.isatty() else nullcontext()
    with ControlClient(socket, timeout=None) as client, moving:
        try:
            request = {"text": text, "session": session, "shown": [*shown], "is_single": is_single}
            answer = client.call("chat.say", request, hear)
        except NotRunning:
            raise NotRunning(f"{GATEWAY_LEFT}\nthe answer will be in: hermes-gateway sessions list") from None
    if as_json:
        show_json(answer)
    elif answer["reply"]:
        render = render_answer if answer["status"] == "ok" else AnswerFolder().fold  # a question stays sign by sign
        print(render(answer["reply"]) if sys.stdout.isatty() else answer["reply"])
    else:
        print_note(f"({answer['status']}, without a reply)")
    if answer["status"] == "unsaid":
        where = "" if session == "main" else f"-s {shlex.quote(session)} "
        print_note(f"{UNSAID}\nto answer it: hermes-gateway chat {where}-m ANSWER")
    for text in said:
        if text != answer["reply"]:  # for example a warning about a budget
            print_note(text)
    return ExitCode.FAILED if answer["status"] in ("failed", "unsaid") else ExitCode.OK


def send_lines(socket: Path, lines: Iterable[str], session: str) -> int:
    """Send each line of a pipe as a message; the replies come in order."""
    shown: list[str] = []
    said = (line.strip() for line in lines if line.strip())
    return max((send_message(socket, line, session, shown, is_single=not shown) for line in said), default=0)

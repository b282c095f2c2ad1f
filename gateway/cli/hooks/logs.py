"""`hooks logs`: the output of a hook so far, and from now on."""

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from gateway.cli.logs import POLL_PAUSE, find_hook_name
from gateway.cli.output import fold_log, print_note, show_json
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import HookError, NotRunning
from gateway.logs.log_files import LogFollower
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> None:
    path = home.hook_logs / f"{find_hook_name(args.name, home)}.log"
    if path.resolve().parent != home.hook_logs.resolve():
        raise HookError(f"{args.name} is not the name of a hook")
    if not path.exists():
        with suppress(NotRunning):
            call_gateway(home.socket, "hooks.info", name=args.name)  # it reports an unknown hook
    with LogFollower(path) as follower:
        lines: deque[str] = deque(maxlen=max(args.lines, 0))
        if path.exists():
            with path.open("rb") as file:
                lines.extend(line.decode("utf-8", "replace") for line in file.read(follower.begin).splitlines())
        if args.json:
            show_json({"name": args.name, "file": str(path), "lines": list(lines)})
            return
        if not path.exists():
            print_note(f"{args.name} has printed nothing yet ({path})")
        show_lines(lines)
        while args.follow:
            time.sleep(POLL_PAUSE)
            show_lines(follower.read())


def show_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(fold_log(sys.stdout, to_one_line(line)))
    sys.stdout.flush()

"""`hermes-gateway logs`: the gateway's log, across its files."""

import argparse
import sys
import time
from datetime import datetime

from gateway.cli.output import fold_log, has_colours
from gateway.config.home import Home
from gateway.config.settings import PLUGIN_PREFIX
from gateway.errors import GatewayError
from gateway.logs.lines import LEVELS, format_for_pipe, format_for_terminal, from_json
from gateway.logs.log_files import LineFilter, LogFollower, read_last_lines
from gateway.logs.text import to_json_text, to_one_line
from gateway.yaml_source.units import parse_duration

POLL_PAUSE = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="follow what is written from now on")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="show the last N lines first (50)")
    parser.add_argument("--level", choices=LEVELS, metavar="LEVEL", help="only this level and more severe ones")
    parser.add_argument("--hook", metavar="NAME", help="only lines about this hook")
    parser.add_argument("--session", metavar="KEY", help="only lines about this session")
    parser.add_argument("--text", default="", metavar="TEXT", help="only lines that contain this text")
    parser.add_argument("--since", type=parse_moment, metavar="TIME", help="only since then: `1h`, `2026-01-31 12:00`")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, as it is stored")


def run(args: argparse.Namespace, home: Home) -> None:
    hook = find_hook_name(args.hook, home) if args.hook else None
    wanted = LineFilter(LEVELS.index(args.level or LEVELS[0]), hook, args.session, args.since or 0.0, args.text)
    if not home.log.exists() and not args.follow:
        raise GatewayError(f"no log yet: {home.log}\nthe first run of the gateway makes it")
    with LogFollower(home.log) as follower:  # the last lines end where it begins: none is missed or shown twice
        for raw in read_last_lines(home.log, wanted, max(args.lines, 0), follower.begin):
            show_line(raw, as_json=args.json)
        while args.follow:
            sys.stdout.flush()
            time.sleep(POLL_PAUSE)
            for raw in follower.read():
                if wanted.takes(from_json(raw)):
                    show_line(raw, as_json=args.json)


def find_hook_name(name: str, home: Home) -> str:
    """Return the name in the log: of the hook, or if no such hook exists of the plugin."""
    is_plugin = (home.plugins / name).is_dir() or (home.hook_logs / f"{PLUGIN_PREFIX}{name}.log").exists()
    return PLUGIN_PREFIX + name if is_plugin and not (home.hooks / name).is_dir() else name


def parse_moment(text: str) -> float:
    """Parse a time, or how long ago it was.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    if (seconds := parse_duration(text)) is not None:
        return time.time() - seconds
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError("write how long ago, as `1h`, or when, as `2026-01-31 12:00`") from None


def show_line(raw: str, *, as_json: bool) -> None:
    line = from_json(raw)
    if as_json:
        print(to_json_text(raw))
    elif line is None:
        print(fold_log(sys.stdout, to_one_line(raw)))
    else:
        look = format_for_terminal if has_colours(sys.stdout) else format_for_pipe
        print(fold_log(sys.stdout, look(line)))

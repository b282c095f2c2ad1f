"""`hermes-gateway events`: the events that exist, those that happen now, and those that were kept."""

import argparse
import json
import sys
import time
from contextlib import suppress
from typing import Any

from gateway.cli.logs import parse_moment
from gateway.cli.output import add_json_option, apply_style, fold_log, print_note, show_answer, show_json, show_table
from gateway.config.home import Home
from gateway.control.client import ControlClient
from gateway.errors import ExitCode
from gateway.events.catalogue import EVENT_SPECS, suggest_event
from gateway.events.fields import COMMON_FIELDS, TURN_FIELDS, build_schema
from gateway.logs.text import to_one_line

MAX_LINE_LENGTH = 400
HIDDEN_FIELDS = frozenset(field.name for field in (*COMMON_FIELDS, *TURN_FIELDS)) - {"user_id"}  # `--json` has them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list every event, and what hooks may do at it")
    listed.add_argument("--json", action="store_true", help="print one object, with a JSON schema of each event")
    tail = verbs.add_parser("tail", help="show events as they happen, until Ctrl-C")
    tail.add_argument("names", nargs="*", metavar="NAME", help="only these events; `tool:*` means every event of tools")
    tail.add_argument("-n", "--number", type=int, default=0, metavar="N", help="end after N events")
    tail.add_argument("--json", action="store_true", help="an object a line, with all fields")
    again = verbs.add_parser("replay", help="send a hook the past events that the journal keeps for durable hooks")
    again.add_argument("hook", help="the name of the hook's folder")
    again.add_argument("names", nargs="*", metavar="NAME", help="only these events (default: those in its HOOK.yaml)")
    again.add_argument("--since", type=parse_moment, metavar="TIME", help="only since then: `1h`, `2026-01-31 12:00`")
    add_json_option(again)


def run(args: argparse.Namespace, home: Home) -> int:
    if args.verb == "list":
        return show_list(as_json=args.json)
    if args.verb == "replay":
        return replay_events(args, home)
    return tail_events(home, args.names, args.number, as_json=args.json)


def show_list(*, as_json: bool) -> int:
    if as_json:
        events = [
            {
                "name": name,
                "writable": sorted(point.writable),
                "outcomes": sorted(point.outcomes),
                "schema": build_schema(point),
            }
            for name, point in EVENT_SPECS.items()
        ]
        show_json({"events": events})
    else:
        rows = [
            (name, " ".join(sorted(point.outcomes)), " ".join(sorted(point.writable)), point.doc)
            for name, point in EVENT_SPECS.items()
        ]
        show_table(("event", "outcomes", "can be changed", "when"), rows)
    return ExitCode.OK


def tail_events(home: Home, names: list[str], number: int, *, as_json: bool) -> int:
    """Show events until Ctrl-C, until the gateway ends, or until the wanted number."""
    for name in names:
        if meant := suggest_event(name):
            print_note(f"unknown event {name}; did you mean {meant}?")
    with ControlClient(home.socket, timeout=None) as client, suppress(KeyboardInterrupt):
        client.start("events.tail", {"names": names})
        for seen, message in enumerate((one for one in client.messages() if "method" in one), start=1):
            show_answer(message["params"], show_event, as_json=as_json)
            if seen == number:
                break
    return ExitCode.OK


def show_event(event: dict[str, Any]) -> None:
    fields = {key: value for key, value in event["fields"].items() if key not in HIDDEN_FIELDS and value}
    at = time.strftime("%H:%M:%S", time.localtime(event["fields"].get("time")))
    where = event["fields"].get("session_key", "")
    said = to_one_line(json.dumps(fields, ensure_ascii=False), MAX_LINE_LENGTH)
    name, where = to_one_line(event["event"]), to_one_line(where)
    line = f"{apply_style(at, 'dim')} {apply_style(name, 'bold')} {apply_style(where, 'dim')} {said}"
    print(fold_log(sys.stdout, line), flush=True)


def replay_events(args: argparse.Namespace, home: Home) -> int:
    """Print each event as it is replayed; return 1 if the hook failed at one."""
    trials: list[dict[str, Any]] = []

    def heard(_method: str, trial: dict[str, Any]) -> None:
        trials.append(trial)
        if not args.json:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trial["at"]))
            said = to_one_line(f"{trial['event']}: {'ok' if trial['ok'] else trial['error']}")
            print(fold_log(sys.stdout, f"{apply_style(at, 'dim')} {said}"), flush=True)

    wanted = {"name": args.hook, "names": args.names, "since": args.since}
    with ControlClient(home.socket, timeout=None) as client:
        told = client.call("events.replay", wanted, heard)
    if args.json:
        show_json({**told, "trials": trials})
    elif not trials:
        print_note("the journal keeps no such events; it keeps those for hooks with `delivery: durable`")
    return ExitCode.FAILED if told["failed"] else ExitCode.OK

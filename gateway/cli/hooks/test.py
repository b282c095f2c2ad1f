"""`hooks test` and `hooks fire`: send an event to a hook on purpose, and show the outcome."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.cli.hooks.list import format_milliseconds
from gateway.cli.hooks.offline import run_offline
from gateway.cli.hooks.options import is_path
from gateway.cli.output import apply_style, escape_text, print_note, show_json, show_progress
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import ExitCode, HookError, NotRunning
from gateway.logs.text import to_one_line


def run(args: argparse.Namespace, home: Home) -> int:
    fields = read_payload(args.payload)
    trials = [fire_event(args, home, fields)] if args.verb == "fire" else run_test(args, home, fields)
    if args.json:
        show_json({"trial": trials[0]} if args.verb == "fire" else {"trials": trials})
    else:
        for trial in trials:
            show_trial(trial)
    return ExitCode.OK if all(trial["ok"] for trial in trials) else ExitCode.FAILED


def fire_event(args: argparse.Namespace, home: Home, fields: dict[str, Any]) -> dict[str, Any]:
    with show_progress(f"{args.name} has {args.event}"):
        return dict(call_gateway(home.socket, "hooks.fire", name=args.name, event=args.event, payload=fields))


def run_test(args: argparse.Namespace, home: Home, fields: dict[str, Any]) -> list[dict[str, Any]]:
    with show_progress(f"{args.name} is being tried"):
        if not is_path(args.name):
            with suppress(NotRunning):
                return list(
                    call_gateway(home.socket, "hooks.test", name=args.name, event=args.event, payload=fields)["trials"]
                )
            print_note("no gateway is running; tried without it, with the settings of the files")
        return run_offline(args.name, home, args.event, fields)


def show_trial(trial: dict[str, Any]) -> None:
    verdict = apply_style("ok", "green") if trial["ok"] else apply_style("failed", "red")
    print(f"{to_one_line(trial['event'])}: {verdict} in {format_milliseconds(trial['seconds'])}")
    if trial["result"] is not None:
        print(f"  result   {format_json(trial['result'])}")
    for field, value in trial["changed"].items():
        print(f"  changed  {to_one_line(field)}: {format_json(value)}")
    for asked in trial["asked"]:
        print(f"  asked    {format_json(asked)}")
    for remark in trial["remarks"]:
        print(f"  {apply_style('warning', 'yellow')}  {to_one_line(remark)}")
    shown = (trial["traceback"] or trial["error"]).splitlines()
    for line in shown:
        print(f"  {to_one_line(line)}")
    for line in trial["output"].splitlines():
        if not any(line.endswith(line_shown) for line_shown in shown):  # the hook's log repeats its error
            print(f"  | {to_one_line(line)}")


def format_json(value: Any) -> str:
    return escape_text(json.dumps(value, ensure_ascii=False))


def read_payload(given: str | None) -> dict[str, Any]:
    """Read the fields of the event: JSON, a file, or the standard input (`-`); empty without any.

    Raises:
        HookError: it is something else.
    """
    if given is None:
        return {}
    is_text = given.lstrip().startswith("{")
    where = "--payload" if is_text else "the standard input" if given == "-" else given
    try:
        fields = json.loads(given if is_text else sys.stdin.read() if given == "-" else Path(given).read_bytes())
    except ValueError as error:
        raise HookError(f"{where} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise HookError(f"{where}: the fields of an event are an object, not {type(fields).__name__}")
    return fields

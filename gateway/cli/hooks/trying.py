"""`hooks test` and `hooks fire`: a hook is told of an event on purpose, and one sees what comes of it."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway.cli.hooks.alone import try_alone
from gateway.cli.hooks.listing import ask, milliseconds
from gateway.cli.hooks.options import is_path
from gateway.cli.output import note, show_json, styled
from gateway.cli.waiting import waiting
from gateway.config.home import Home
from gateway.errors import ExitCode, HookError, NotRunning
from gateway.events.catalogue import get_event_spec, suggest_event
from gateway.hooks.folders.subscription import patterns_of


def run(args: argparse.Namespace, home: Home) -> int:
    fields = payload(args.payload)
    trials = [fired(args, home, fields)] if args.verb == "fire" else tested(args, home, fields)
    if args.json:
        show_json({"trial": trials[0]} if args.verb == "fire" else {"trials": trials})
    else:
        for trial in trials:
            show_trial(trial)
    return int(ExitCode.OK if all(trial["ok"] for trial in trials) else ExitCode.FAILED)


def fired(args: argparse.Namespace, home: Home, fields: dict[str, Any]) -> dict[str, Any]:
    hook = ask(home, "info", name=args.name)
    if not any(patterns_of([*hook["intercepts"], *hook["events"]]).match(args.event)):
        meant = suggest_event(args.event)
        hint = f"; did you mean {meant}?" if meant else ""
        note(f"{args.name} does not subscribe to {args.event}, so the gateway never tells it of one{hint}")
    with waiting(f"{args.name} has {args.event}"):
        return dict(ask(home, "fire", name=args.name, event=args.event, payload=fields))


def tested(args: argparse.Namespace, home: Home, fields: dict[str, Any]) -> list[dict[str, Any]]:
    with waiting(f"{args.name} is being tried"):
        if not is_path(args.name):
            with suppress(NotRunning):
                return list(ask(home, "test", name=args.name, event=args.event, payload=fields)["trials"])
            note("no gateway is running; tried without it, with the settings as they stand in the files")
        return try_alone(args.name, home, args.event, fields)


def show_trial(trial: dict[str, Any]) -> None:
    verdict = styled("ok", "green") if trial["ok"] else styled("failed", "red")
    print(f"{trial['event']}: {verdict} in {milliseconds(trial['seconds'])}")
    if trial["result"] is not None:
        print(f"  result   {in_json(trial['result'])}")
    for field, value in trial["changed"].items():
        print(f"  changed  {field}: {in_json(value)}")
    for asked in trial["asked"]:
        print(f"  asked    {in_json(asked)}")
    if nothing := without_effect(trial):
        print(f"  {styled('warning', 'yellow')}  {nothing}")
    shown = (trial["traceback"] or trial["error"]).splitlines()
    for line in shown:
        print(f"  {line}")
    for line in trial["output"].splitlines():
        if not any(line.endswith(told) for told in shown):  # what it raised stands in its log too
            print(f"  | {line}")


def without_effect(trial: dict[str, Any]) -> str:
    """What the hook decided, where that means nothing at such an event."""
    known, result = get_event_spec(trial["event"]), trial["result"]
    word = result.get("decision", "") if isinstance(result, dict) else ""
    if known is None or word not in ("deny", "end", "retry") or word in known.outcomes:
        return ""
    honoured = ", ".join(sorted(known.outcomes)) or "no decision"
    return f"{word} has no effect at {trial['event']}, which honours {honoured}"


def in_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def payload(given: str | None) -> dict[str, Any]:
    """The fields that were given: as JSON, in a file, or on the standard input (`-`); none when nothing was.

    Raises:
        HookError: that is something else.
    """
    if given is None:
        return {}
    is_text = given.lstrip().startswith("{")
    where = "--payload" if is_text else "the standard input" if given == "-" else given
    try:
        fields = json.loads(given if is_text else sys.stdin.read() if given == "-" else Path(given).read_bytes())
    except ValueError as error:
        raise HookError(f"{where} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise HookError(f"{where}: the fields of an event are an object, not {type(fields).__name__}")
    return fields

"""What one does with a hook of the running gateway: test, fire, switch, reload, reset, trust, deps."""

import argparse
import json
from pathlib import Path
from typing import Any

from gateway.cli.hooks.listing import ask, milliseconds
from gateway.cli.output import note, show_json, styled
from gateway.config.home import Home
from gateway.errors import Exit, HookError

SIMPLE = {
    "enable": "switch a hook on",
    "disable": "switch a hook off",
    "reload": "read a hook anew and start it anew",
    "reset": "close its circuit breaker and try it again now",
    "trust": "let a hook run as it is now (where `hooks.trust` is `pinned`)",
    "deps": "install what its `requires.python` lacks, for it alone",
}


def add(verbs: Any) -> None:
    for verb, does in SIMPLE.items():
        simple = verbs.add_parser(verb, help=does)
        simple.add_argument("name", help="the name of its folder")
        simple.set_defaults(does=steer)
    test = verbs.add_parser("test", help="call a hook with samples of its events, in a process of its own")
    test.add_argument("name", help="the name of its folder")
    test.add_argument("--event", metavar="NAME", default="", help="only this event")
    test.add_argument("--payload", metavar="FILE", help="fields of the event, as JSON; over those of the sample")
    test.add_argument("--json", action="store_true", help="print one object")
    test.set_defaults(does=try_out)
    fire = verbs.add_parser("fire", help="tell a hook of an event as if it had happened")
    fire.add_argument("name", help="the name of its folder")
    fire.add_argument("event", help="the event, for instance agent:end")
    fire.add_argument("--payload", metavar="FILE", help="fields of the event, as JSON")
    fire.add_argument("--json", action="store_true", help="print one object")
    fire.set_defaults(does=fire_event)


def steer(args: argparse.Namespace, home: Home) -> int:
    if args.verb == "deps":
        note(f"installing what {args.name} needs ...")
    said = ask(home, args.verb, name=args.name)
    print(f"{args.name}: {said['state']}{': ' + said['reason'] if said['reason'] else ''}")
    return int(Exit.OK)


def try_out(args: argparse.Namespace, home: Home) -> int:
    trials = ask(home, "test", name=args.name, event=args.event, payload=payload(args.payload))["trials"]
    if args.json:
        show_json({"trials": trials})
    else:
        for trial in trials:
            show_trial(trial)
    return int(Exit.OK if all(trial["ok"] for trial in trials) else Exit.FAILED)


def show_trial(trial: dict[str, Any]) -> None:
    verdict = styled("ok", "green") if trial["ok"] else styled("failed", "red")
    print(f"{trial['event']}: {verdict} in {milliseconds(trial['seconds'])}")
    if trial["result"] is not None:
        print(f"  result  {json.dumps(trial['result'], ensure_ascii=False)}")
    for line in (trial["error"] or "").splitlines():
        print(f"  {line}")
    for line in trial["output"].splitlines():
        print(f"  | {line}")


def fire_event(args: argparse.Namespace, home: Home) -> int:
    trial = ask(home, "fire", name=args.name, event=args.event, payload=payload(args.payload))
    if args.json:
        show_json({"trial": trial})
    else:
        show_trial(trial)
    return int(Exit.OK if trial["ok"] else Exit.FAILED)


def payload(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        fields = json.loads(Path(file).read_bytes())
    except ValueError as error:
        raise HookError(f"{file} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise HookError(f"{file}: the fields of an event are an object, not {type(fields).__name__}")
    return fields

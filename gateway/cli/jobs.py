"""`hermes-gateway jobs`: texts for the agent, or commands, at their times, and what became of each time.

`hermes-gateway cron` is another spelling.
"""

import argparse
import json
from typing import Any, get_args

from gateway.cli.job_import import take_jobs
from gateway.cli.output import add_json_option, show_answer, show_fields, show_result, show_table
from gateway.cli.sessions import format_moment
from gateway.config.home import Home
from gateway.control.client import PATIENCE, call_gateway
from gateway.jobs.job import Missed, Overlap
from gateway.logs.text import to_json_text, to_one_line
from gateway.yaml_source.units import format_duration, parse_duration

DEEDS = {
    "pause": ("pause a job until you resume it", "the job {} is paused"),
    "resume": ("resume a job; runs that fell into the pause are skipped", "the job {} goes on"),
    "run": ("run a job now, in addition to its schedule", "the job {0} runs now: hermes-gateway jobs history {0}"),
    "remove": ("remove a job", "the job {} is removed"),
}
GIVEN = frozenset(
    {
        *("name", "when", "text", "command", "to", "zone", "agent", "model"),
        *("missed", "overlap", "max_time", "repeatable", "ping", "replace"),
    }
)
EXAMPLE = 'hermes-gateway jobs add NAME --when "every 2h" --text TEXT'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the jobs, and when each runs next")
    add = verbs.add_parser("add", help="create a job")
    add.add_argument("name", help="the name of the job")
    when = "20m, 2030-12-31T09:00, every 2h, or a cron line such as '0 9 * * 1-5'"
    add.add_argument("--when", required=True, metavar="WHEN", help=when)
    what = add.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", default="", help="the task for the agent")
    what.add_argument("--command", default="", metavar="CMD", help="the shell command to run, without a model")
    add.add_argument("--to", default="", metavar="PLACE", help="the chat that gets the answer, as `send` takes it")
    add.add_argument("--zone", default="", help="the time zone, such as Europe/Berlin (default: gateway.timezone)")
    add.add_argument("--agent", default="", metavar="NAME", help="the agent that does it (default: as `routes` says)")
    add.add_argument("--model", default="", metavar="NAME", help="the model (default: the agent's)")
    missed = "after a downtime, run the last missed time, or none (once)"
    add.add_argument("--missed", choices=get_args(Missed), default="once", help=missed)
    overlap = "if the last run still goes on, skip this one, or let it wait (skip)"
    add.add_argument("--overlap", choices=get_args(Overlap), default="skip", help=overlap)
    add.add_argument("--max-time", type=read_duration, default=600.0, metavar="TIME", help="stop it after that (10m)")
    add.add_argument("--repeatable", action="store_true", help="run the command again if a crash interrupted it")
    add.add_argument("--ping", default="", metavar="URL", help="a URL to call after each successful run")
    add.add_argument("--replace", action="store_true", help="replace the job with this name")
    imported = verbs.add_parser("import", help="import the jobs of Hermes; they are paused until you resume them")
    imported.add_argument("--yes", action="store_true", help="do not ask")
    shown = verbs.add_parser("show", help="show a job with its text")
    history = verbs.add_parser("history", help="show the past runs, the newest first")
    changing = [verbs.add_parser(name, help=does) for name, (does, _) in DEEDS.items()]
    for one in (shown, history, *changing):
        one.add_argument("name", help="as `list` shows it; MAKER/NAME if several have it")
    history.add_argument("--json", action="store_true", help="print a JSON array")
    add_json_option(listed, add, imported, shown, *changing)


def read_duration(text: str) -> float:
    """Read a duration of the command line."""
    if not (seconds := parse_duration(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 10m or 1h30m")
    return seconds


def run(args: argparse.Namespace, home: Home) -> int:
    if args.verb == "import":
        return take_jobs(args, home)
    given = {key: value for key, value in vars(args).items() if key in GIVEN}
    said = call_gateway(home.socket, f"jobs.{args.verb}", PATIENCE, **given)
    match args.verb:
        case "list":
            show_answer(said, show_jobs, as_json=args.json)
        case "show":
            show_answer(said, show_job, as_json=args.json)
        case "history" if args.json:
            print(to_json_text(json.dumps(said["moments"], ensure_ascii=False)))
        case "history":
            show_history(said["moments"])
        case "add":
            show_result(said, f"the job {said['name']} comes at {format_moment(said['next'])}", as_json=args.json)
        case verb:
            show_result(said, DEEDS[verb][1].format(said["name"]), as_json=args.json)
    return 0


def show_jobs(found: dict[str, Any]) -> None:
    rows = [
        (one["name"], one["state"], format_next(one), one["when"], format_last(one), one["maker"])
        for one in found["jobs"]
    ]
    show_table(("job", "state", "next", "when", "last", "maker"), rows, f"no jobs; to make one: {EXAMPLE}")


def show_job(one: dict[str, Any]) -> None:
    facts = {
        "job": f"{one['maker']}/{one['name']}",
        "state": f"{one['state']} {one['paused'] and '(' + one['paused'] + ')'}".strip(),
        "when": f"{one['when']} {one['zone']}".strip(),
        "next": format_next(one),
        "last": format_last(one),
        "to": one["to"] or "its history",
        "agent": one["agent"] or "-",
        **({"model": one["model"]} if one["model"] else {}),
        **({"ping": one["ping"]} if one["ping"] else {}),
        "rules": f"missed {one['missed']}, overlap {one['overlap']}, at most {format_duration(one['max_time'])}",
        **({"command": one["command"]} if one["command"] else {"text": one["text"]}),
    }
    show_fields(facts.items(), is_whole=True)


def show_history(found: list[dict[str, Any]]) -> None:
    rows = [
        (
            format_moment(one["due"]),
            one["state"],
            format_duration(round(one["late_by"])) if one["late_by"] >= 1 else "-",
            str(one.get("count", 1)),
            to_one_line(one["reason"] or one["answer"]),
        )
        for one in found
    ]
    show_table(("due", "state", "late", "times", "what"), rows, "none of its times has come")


def format_next(one: dict[str, Any]) -> str:
    return format_moment(one["next"] or 0) or "-"


def format_last(one: dict[str, Any]) -> str:
    if not (last := one["last"]):
        return "-"
    ended = format_moment(last.get("to") or last["due"]) if one["state"] == "over" else ""
    return f"{last['state']} {ended}".strip()

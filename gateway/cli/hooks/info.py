"""All that the running gateway knows of one hook: `info`. It reads timetables, for which `list` has no use."""

import argparse
import time
from typing import Any

from gateway.cli.hooks.listing import ago, ask, elsewhere, milliseconds, show_findings
from gateway.cli.output import show_fields, show_json, show_table
from gateway.config.home import Home
from gateway.cron import parse_timetable
from gateway.errors import ExitCode, NotRunning
from gateway.logs.text import to_one_line

APART = ("traces", "last_error", "findings", "kept", "hangs")  # shown below the rest


def run(args: argparse.Namespace, home: Home) -> int:
    try:
        show_info(args, home)
    except NotRunning as error:
        raise elsewhere(error) from None
    return int(ExitCode.OK)


def show_info(args: argparse.Namespace, home: Home) -> None:
    hook = ask(home, "info", name=args.name)
    if args.json:
        show_json({"hook": hook})
        return
    shown = {key: value for key, value in hook.items() if key not in APART and value}
    show_fields((key.replace("_", " "), in_words(key, value)) for key, value in shown.items())
    show_findings([hook])
    for key, value in hook.get("kept", {}).items():
        lines = value if isinstance(value, list) else [value]
        print(f"\nkept as {key}:", *(to_one_line(str(line)) for line in lines), sep="\n  ")
    if error := hook["last_error"]:
        print(f"\nlast error, {ago(error['at'])} at {error['event']}: {error['message']}")
        print(error.get("traceback", ""))
    where = hook["hangs"].strip()
    if where and where not in (error or {}).get("traceback", ""):
        print(f"\nwhere it hung last:\n{where}")
    if traces := hook["traces"]:
        print()
        rows = ((ago(one["at"]), one["event"], milliseconds(one["seconds"]), outcome(one)) for one in traces)
        show_table(("call", "event", "took", "outcome"), rows)


def in_words(key: str, value: Any) -> str:
    if key in ("loaded_at", "last_fired"):
        return ago(value)
    if key == "schedule":
        return f"{value}{next_time(value)}"
    if key in ("p50", "p95"):
        return milliseconds(value)
    if key == "memory":
        return f"{value // 1_000_000} MB"
    if value is True:
        return "yes"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def next_time(timetable: str) -> str:
    """When a line of the clock falls next; an interval counts from the last time, which only the gateway knows."""
    if timetable.startswith("every"):
        return ""
    due = parse_timetable(timetable).next_after(time.time())
    return time.strftime(" (next: %a %d %b %H:%M)", time.localtime(due))


def outcome(trace: dict[str, Any]) -> str:
    return f"{trace.get('outcome', 'ok')} {trace.get('error', '')}".strip()

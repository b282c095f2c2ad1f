"""`hooks info`: all facts of the running gateway about one hook. It reads timetables, which `list` does not need."""

import argparse
import json
import time
from typing import Any

from gateway.cli.hooks.list import format_milliseconds, read_hooks, show_findings
from gateway.cli.output import escape_text, format_ago, print_data, show_answer, show_fields, show_table
from gateway.cli.program import apply_program_name
from gateway.config.home import Home
from gateway.logs.text import to_json_text, to_one_line
from gateway.yaml_source.timetable import parse_timetable

SHOWN_BELOW = ("traces", "given", "last_error", "findings", "kept", "hangs")  # shown below the rest
SAID_ELSEWHERE = ("hermes", "stored_as")  # `written for` has it with the reason; `writes` names the folder


def run(args: argparse.Namespace, home: Home) -> None:
    show_answer({"hook": read_hooks(home, "info", name=args.name)}, show_hook, as_json=args.json)


def show_hook(found: dict[str, Any]) -> None:
    hook = found["hook"]
    shown = {key: value for key, value in hook.items() if value and key not in SHOWN_BELOW + SAID_ELSEWHERE}
    show_fields((key.replace("_", " "), format_field(key, value)) for key, value in shown.items())
    show_findings([hook])
    for key, value in hook.get("kept", {}).items():
        lines = value if isinstance(value, list) else [value]
        print(f"\nkept as {key}:")
        for line in lines:
            print_data(to_one_line(" ".join(str(line).splitlines())), "  ")
    if error := hook["last_error"]:
        where = f"{format_ago(error['at'])} at {to_one_line(error['event'])}"
        print()
        print_data(f"last error, {where}: {escape_text(error['message'])}", "")
        print(escape_text(error.get("traceback", "")))
    where = hook["hangs"].strip()
    if where and where not in (error or {}).get("traceback", ""):
        print(f"\nwhere it hung last:\n{escape_text(where)}")
    if traces := hook["traces"]:
        print()
        rows = (
            (format_ago(one["at"]), one["event"], format_milliseconds(one["seconds"]), format_outcome(one))
            for one in traces
        )
        show_table(("call", "event", "took", "outcome"), rows)
    for one in hook.get("given", [])[-1:]:
        print(f"\ngiven last, {format_ago(one['at'])} at {to_one_line(one['event'])}:")
        print(to_json_text(json.dumps(one["fields"], indent=2, ensure_ascii=False)))


def format_field(key: str, value: Any) -> str:
    if key in ("loaded_at", "last_fired"):
        return format_ago(value)
    if key == "schedule":
        return f"{value}{format_next_time(value)}"
    if key in ("p50", "p95"):
        return format_milliseconds(value)
    if key == "memory":
        return f"{value // 1_000_000} MB"
    if key == "reason":
        return apply_program_name(value)
    if value is True:
        return "yes"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def format_next_time(timetable: str) -> str:
    """Return the next time of a timetable; an interval counts from the last event, which only the gateway knows."""
    if timetable.startswith("every"):
        return ""
    due = parse_timetable(timetable).next_after(time.time())
    return time.strftime(" (next: %a %d %b %H:%M)", time.localtime(due))


def format_outcome(trace: dict[str, Any]) -> str:
    return f"{trace.get('outcome', 'ok')} {trace.get('error', '')}".strip()

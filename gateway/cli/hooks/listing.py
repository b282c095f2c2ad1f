"""What the running gateway knows of its hooks: `list`, `info`, `stats`, `logs`."""

import argparse
import time
from typing import Any

from gateway.cli.output import note, show_fields, show_json, show_table, styled
from gateway.config.home import Home
from gateway.control.client import Client
from gateway.errors import Exit, HookError

GOOD = {"loaded", "registered"}


def add(verbs: Any) -> None:
    listed = verbs.add_parser("list", help="the hooks there are, and how they fare")
    listed.add_argument("--all", action="store_true", help="also those that come with the gateway and are off")
    listed.add_argument("--json", action="store_true", help="print one object, with all of them")
    listed.set_defaults(does=show_list)
    info = verbs.add_parser("info", help="all that is known of one hook")
    info.add_argument("name", help="the name of its folder")
    info.add_argument("--json", action="store_true", help="print one object")
    info.set_defaults(does=show_info)
    stats = verbs.add_parser("stats", help="calls, failures and times of each hook")
    stats.add_argument("--json", action="store_true", help="print one object")
    stats.set_defaults(does=show_stats)
    logs = verbs.add_parser("logs", help="what a hook printed")
    logs.add_argument("name", help="the name of its folder")
    logs.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="the last N lines (50)")
    logs.set_defaults(does=show_log)


def ask(home: Home, verb: str, **params: Any) -> Any:
    with Client(home.socket, timeout=None) as client:
        return client.call(f"hooks.{verb}", params)


def show_list(args: argparse.Namespace, home: Home) -> int:
    hooks = ask(home, "list")["hooks"]
    if args.json:
        show_json({"hooks": hooks})
        return int(Exit.OK)
    shown = [hook for hook in hooks if args.all or not is_on_offer(hook)]
    empty = f"there are no hooks; put a folder into {home.hooks}, or: hermes-gateway hooks new NAME --event agent:end"
    show_table(("hook", "state", "from", "events", "calls", "failed", "p95", "last", ""), map(row, shown), empty)
    for hook in shown:
        for finding in hook["findings"]:
            print(styled(f"! {finding}", "yellow"))
    if len(shown) < len(hooks):
        note(f"{len(hooks) - len(shown)} hooks that come with the gateway are off; --all lists them")
    return int(Exit.OK)


def is_on_offer(hook: dict[str, Any]) -> bool:
    """Comes with the gateway, and nobody has switched it on."""
    return bool(hook["origin"] == "built-in" and hook["state"] == "disabled")


def row(hook: dict[str, Any]) -> tuple[object, ...]:
    events = [*(f"{name}!" for name in hook["intercepts"]), *hook["events"]]
    colour = "green" if hook["state"] in GOOD else "dim" if hook["state"] == "disabled" else "red"
    last = ago(hook["last_fired"])
    failed = hook["failures"]
    return (
        hook["name"],
        styled(hook["state"], colour),
        hook["origin"],
        " ".join(events),
        hook["calls"],
        failed,
        milliseconds(hook["p95"]),
        last,
        hook["reason"],
    )


def show_info(args: argparse.Namespace, home: Home) -> int:
    hook = ask(home, "info", name=args.name)
    if args.json:
        show_json({"hook": hook})
        return int(Exit.OK)
    shown = {key: value for key, value in hook.items() if key not in ("traces", "last_error", "findings") and value}
    show_fields((key.replace("_", " "), in_words(key, value)) for key, value in shown.items())
    for finding in hook["findings"]:
        print(styled(f"! {finding}", "yellow"))
    if error := hook["last_error"]:
        print(f"\nlast error, {ago(error['at'])} at {error['event']}: {error['message']}")
        print(error.get("traceback", ""))
    if traces := hook["traces"]:
        print()
        rows = ((ago(one["at"]), one["event"], milliseconds(one["seconds"]), outcome(one)) for one in traces)
        show_table(("call", "event", "took", "outcome"), rows)
    return int(Exit.OK)


def outcome(trace: dict[str, Any]) -> str:
    return f"{trace.get('outcome', 'ok')} {trace.get('error', '')}".strip()


def show_stats(args: argparse.Namespace, home: Home) -> int:
    hooks = ask(home, "list")["hooks"]
    keys = ("name", "calls", "failures", "skipped", "queued", "dropped", "owed", "dead", "restarts", "p50", "p95")
    if args.json:
        show_json({"hooks": [{key: hook[key] for key in keys} for hook in hooks]})
        return int(Exit.OK)
    rows = [[milliseconds(hook[key]) if key in ("p50", "p95") else hook[key] for key in keys] for hook in hooks]
    show_table(keys, rows, "there are no hooks")
    return int(Exit.OK)


def show_log(args: argparse.Namespace, home: Home) -> int:
    path = home.hook_logs / f"{args.name}.log"
    if path.resolve().parent != home.hook_logs.resolve():
        raise HookError(f"{args.name} is no name of a hook")
    if not path.exists():
        note(f"{args.name} has printed nothing yet ({path})")
        return int(Exit.OK)
    for line in path.read_text("utf-8", "replace").splitlines()[-args.lines :]:
        print(line)
    return int(Exit.OK)


def in_words(key: str, value: Any) -> str:
    if key in ("loaded_at", "last_fired"):
        return ago(value)
    if key in ("p50", "p95"):
        return milliseconds(value)
    if key == "memory":
        return f"{value // 1_000_000} MB"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f} ms"


def ago(at: float) -> str:
    if not at:
        return ""
    seconds = max(0.0, time.time() - at)
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds:.0f} s ago"

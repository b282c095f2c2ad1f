"""`hooks list` and `hooks stats`: the facts of the running gateway about all its hooks."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.cli.output import format_ago, print_lines, print_note, show_json, show_table
from gateway.cli.program import apply_program_name, load_command
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import NotRunning
from gateway.logs.text import to_one_line

WOULD_RUN = {"registered": "would run"}
STATS_FIELDS = (
    *("name", "calls", "failures", "skipped", "queued", "dropped"),
    *("owed", "behind", "dead", "restarts", "p50", "p95"),
)


def run(args: argparse.Namespace, home: Home) -> None:
    wanted = {"by": "worst", "limit": args.worst} if args.worst else {}
    if args.verb == "list" and args.all and not is_served(home):
        show_offline(args, home)
        return
    known = read_hooks(home, "list", text=args.text, **wanted)
    hooks, unused = known["hooks"], known["unused"]
    shown = select_listed(hooks, args.all)
    if args.verb == "stats":
        show_stats(hooks, shown, as_json=args.json)
    elif args.json:
        show_json({"hooks": hooks, "unused": unused})
    else:
        show_list(select_listed(hooks, is_all=False), home)
        show_reasons(unused)
        show_own_hooks(hooks, "hermes-gateway hooks enable NAME")


def read_hooks(home: Home, verb: str, **params: Any) -> Any:
    """Call a verb that only reads; without a gateway, the error names commands that work without it."""
    try:
        return call_gateway(home.socket, f"hooks.{verb}", **params)
    except NotRunning as error:
        hint = "without it: hermes-gateway hooks list --all shows how they would be, and hooks check what is wrong"
        raise NotRunning(f"{error}\n{hint}") from None


def is_served(home: Home) -> bool:
    try:
        call_gateway(home.socket, "hooks.list", by="worst", limit=1)
    except NotRunning:
        return False
    return True


def show_offline(args: argparse.Namespace, home: Home) -> None:
    """Show the hooks that a gateway would have, without counts of calls."""
    there, unused = load_command("gateway.cli.hooks.offline").read_offline(home)
    hooks = [
        {
            "name": one.called,
            "state": WOULD_RUN.get(one.state, one.state),
            "origin": one.source.origin,
            "reason": one.reason,
            "description": one.manifest.description if one.manifest else "",
            "events": [*one.manifest.events] if one.manifest else [],
            "intercepts": [*one.manifest.intercepts] if one.manifest else [],
        }
        for one in there
    ]
    if args.json:
        show_json({"running": False, "hooks": hooks, "unused": unused})
        return
    shown = select_listed(hooks, is_all=False)
    rows = ((hook["name"], hook["state"], hook["origin"], describe_events(hook)) for hook in shown)
    show_table(("hook", "state", "from", "events"), rows)
    show_reasons(unused)
    show_own_hooks(hooks, "write into config.yaml hooks: {enabled: [NAME]}")
    print_note("no gateway is running: this is how they would be")


def describe_events(hook: Mapping[str, Any]) -> str:
    """Return the hook's events, those on which it decides with an exclamation mark; and why it does not run."""
    events = [*(f"{name}!" for name in hook["intercepts"]), *hook["events"]]
    return "; ".join(filter(None, [" ".join(events), apply_program_name(hook["reason"])]))


def show_list(shown: list[dict[str, Any]], home: Home) -> None:
    empty = f"there are no hooks; put a folder into {home.hooks}, or: hermes-gateway hooks new NAME --event agent:end"
    show_table(("hook", "state", "from", "calls", "failed", "p95", "last", "events"), map(row_of, shown), empty)
    for hook in shown:
        if hook["webhook"]:
            print_lines(to_one_line(f"- {hook['name']}: {hook['webhook']}", 2000), "")
    show_findings(shown)


def select_listed(hooks: list[dict[str, Any]], is_all: bool) -> list[dict[str, Any]]:
    """List all hooks, or leave out the built-in ones that are not enabled."""
    return [hook for hook in hooks if is_all or not is_extra(hook)]


def is_extra(hook: Mapping[str, Any]) -> bool:
    """Return True for a built-in hook that is not enabled."""
    return is_own_hook(hook) and hook["state"] == "disabled"


def is_own_hook(hook: Mapping[str, Any]) -> bool:
    return bool(hook["origin"] == "built-in")


def show_own_hooks(hooks: Iterable[Mapping[str, Any]], switch: str) -> None:
    """Show the built-in hooks and their purposes. `switch`: how to enable one."""
    if own := list(filter(is_own_hook, hooks)):
        print()
        rows = [(hook["name"], "off" if is_extra(hook) else "on", hook["description"]) for hook in own]
        show_table(("comes with it", "", "what it does"), rows)
        print_note(f"to switch one on: {switch}")


def row_of(hook: dict[str, Any]) -> tuple[object, ...]:
    return (
        hook["name"],
        hook["state"],
        hook["origin"],
        hook["calls"],
        hook["failures"],
        format_milliseconds(hook["p95"]),
        format_ago(hook["last_fired"]) if hook["last_fired"] else "",
        describe_events(hook),
    )


def show_findings(hooks: Iterable[dict[str, Any]]) -> None:
    """Show each finding once: hooks in one place share its findings, and some are a hook's reason already."""
    findings = (
        finding
        for hook in hooks
        for finding in hook["findings"]
        if finding.replace(": error: ", ": ", 1) not in hook["reason"]
    )
    show_reasons(dict.fromkeys(findings))


def show_reasons(findings: Iterable[str]) -> None:
    for finding in findings:
        print_lines(to_one_line(f"! {finding}", 1000), "", "yellow")


def show_stats(hooks: list[dict[str, Any]], shown: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        show_json({"hooks": [{key: hook[key] for key in STATS_FIELDS} for hook in hooks]})
        return
    shapes = {"p50": format_milliseconds, "p95": format_milliseconds, "behind": "{:.0f} s".format}
    rows = [[shapes[key](hook[key]) if key in shapes else hook[key] for key in STATS_FIELDS] for hook in shown]
    show_table(STATS_FIELDS, rows, "there are no hooks")


def format_milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.{0 if seconds >= 0.1 else 1}f} ms"

"""`hermes-gateway status`: the gateway's present work, or that it is not running (exit 3)."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway import __version__
from gateway.cli import platform
from gateway.cli.output import (
    add_json_option,
    format_ago,
    format_duration,
    format_name,
    print_lines,
    show_fields,
    show_json,
    show_table,
)
from gateway.cli.program import apply_program_name
from gateway.config.home import Home, get_process_environment
from gateway.config.node_settings import NODE_ROLES
from gateway.control.client import PATIENCE, call_gateway
from gateway.daemon.home_lock import read_waiting
from gateway.errors import ExitCode, GatewayError, NotRunning
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", action="store_true", help="list all parts, networks and webhooks")
    add_json_option(parser)


def run(args: argparse.Namespace, home: Home) -> int:
    try:
        facts = call_gateway(home.socket, "status", PATIENCE)
    except NotRunning:
        return show_not_running(home, as_json=args.json)
    if args.json:
        show_json({"running": True, **facts})
    else:
        (show_parts if args.parts else show_status)(facts)
    return ExitCode.OK


def show_not_running(home: Home, *, as_json: bool) -> int:
    attention = list_problems(home)
    if as_json:
        show_json({"running": False, "home": str(home.root), "attention": attention})
    elif waiting := read_waiting(home.lock):
        show_fields([("gateway", waiting), ("home", home.root)])
    else:
        from gateway.upgrade.plan import describe_open_plan  # noqa: PLC0415 - a running gateway does without it

        left = describe_open_plan(home)
        next_step = "hermes-gateway upgrade" if left else "hermes-gateway run"
        show_fields(
            [
                ("gateway", "not running"),
                ("home", home.root),
                *([("upgrade", left)] if left else []),
                ("next", apply_program_name(next_step)),
            ]
        )
    for trouble in () if as_json else attention:
        print_remark("!", trouble)
    return ExitCode.NOT_RUNNING


def list_problems(home: Home) -> list[str]:
    """List packages that the configuration requires for a start, and that are not installed."""
    from gateway.adapters.shared.folder import load_settings_schema  # noqa: PLC0415 - as above
    from gateway.config.loading import read_configuration  # noqa: PLC0415
    from gateway.daemon.journal import find_missing_client  # noqa: PLC0415

    configuration, _ = read_configuration(load_settings_schema(), home, get_process_environment())
    return [f"{one.what}: {one.remedy}" for one in find_missing_client(configuration)] if configuration else []


def show_status(facts: dict[str, Any]) -> None:
    """Show in ten lines how the gateway is, and in one more each thing that needs a person."""
    since, megabytes = format_duration(time.time() - facts["since"]), facts["memory_kb"] // 1024
    show_fields(
        [
            ("gateway", f"{facts['state']}, pid {facts['pid']}, for {since}; {megabytes} MB"),
            ("home", describe_home(Path(facts["home"]), Path(facts["configuration"]))),
            ("model", facts["model"]),
            ("networks", describe_networks(facts)),
            ("hooks", describe_hooks(facts)),
            ("turns", describe_turns(facts)),
            ("owner", describe_owners(facts)),
            ("page", describe_page(facts["web"]["url"])),
            ("journal", describe_journal(facts["journal"])),
            ("backup", describe_backup(facts["backup"])),
            *describe_nodes(facts["nodes"]),
        ]
    )
    for trouble in facts["attention"]:
        print_remark("!", trouble)
    for notice in facts["notices"]:
        print_remark("-", notice)


def show_parts(facts: dict[str, Any]) -> None:
    """Show the parts of the gateway, and what they hold."""
    rows = [
        (one["name"], one["state"], one["restarts"], one["does"], apply_program_name(one["detail"]))
        for one in facts["parts"]
    ]
    show_table(("part", "state", "restarts", "what it does", ""), rows)
    print()
    show_fields([("sandbox", describe_sandbox(facts["sandbox"])), ("intake", describe_intake(facts))])
    if facts["platforms"]:
        print()
        states = {part["name"]: part["state"] for part in facts["parts"]}
        served = [{**one, "name": name, "state": states[name]} for name, one in facts["platforms"].items()]
        show_table(*platform.table_of(served))
    if facts["platforms_off"]:
        off = ", ".join(f"{name} ({reason})" for name, reason in facts["platforms_off"].items())
        print_lines(to_one_line(f"off: {off}"), "")
    if len(facts.get("nodes", ())) > 1:
        print()
        show_table(("node", "for", "roles", "it alone does"), map(describe_node, facts["nodes"]))
    if facts["webhooks"]:
        print()
        headers = ("webhook", "by", "from", "taken", "refused", "last refused because")
        show_table(headers, map(row_of, facts["webhooks"]))
        if url := facts["webhooks"][0]["url"]:
            print_lines(to_one_line(f"called by POST {url.rpartition('/')[0]}/WEBHOOK"), "")


def print_remark(mark: str, text: str) -> None:
    """Print a remark in one line: the fault, and its remedy from the second line."""
    print_lines(to_one_line(f"{mark} {'; '.join(text.splitlines())}"), "")


def row_of(webhook: dict[str, Any]) -> tuple[object, ...]:
    """Return the row of a webhook."""
    return tuple(webhook[key] for key in ("name", "verify", "origin", "taken", "refused", "refusal"))


def describe_home(home: Path, file: Path) -> str:
    """Describe the home, and the files there with settings; a power cut may leave an empty file."""
    files = [one for one in (file, home / ".env") if one.exists()]
    found = [one.name if one.stat().st_size else f"{one.name} of 0 bytes" for one in files]
    return f"{home} ({', '.join(found) or f'no settings yet: {file.name}'})"


def describe_networks(facts: dict[str, Any]) -> str:
    """Describe each network by its state, and why it is down."""
    states, found = {part["name"]: part["state"] for part in facts["parts"]}, list[str]()
    for name, one in facts["platforms"].items():
        state = platform.find_state({**one, "state": states[name]})
        why = "; ".join(filter(None, platform.describe_state(one))) if state == "down" else ""
        found.append(f"{name} {state}{f' ({why})' if why else ''}")
    return ", ".join(found) or "none but the terminal"


def describe_hooks(facts: dict[str, Any]) -> str:
    """Describe the number of hooks in each state, and the delay of the durable ones."""
    counts = ", ".join(f"{count} {state}" for state, count in facts["hooks"].items()) or "none"
    late = ", ".join(f"{name} {format_duration(round(seconds))}" for name, seconds in facts.get("behind", {}).items())
    return f"{counts}; behind: {late}" if late else counts


def describe_roles(roles: Sequence[str]) -> str:
    """Describe the roles of a node."""
    return "all" if set(roles) == set(NODE_ROLES) else ", ".join(roles)


def describe_nodes(nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Describe the gateways on this journal, unless this one is alone and does all."""
    if len(nodes) == 1 and describe_roles(nodes[0]["roles"]) == "all":
        return []
    return [("nodes", ", ".join(f"{one['name']} ({describe_roles(one['roles'])})" for one in nodes))]


def describe_node(node: dict[str, Any]) -> tuple[str, str, str, str]:
    """Describe a gateway that shares the journal: its uptime, its roles, and its work for all of them."""
    since, roles = format_duration(time.time() - node["since"]), describe_roles(node["roles"])
    return node["name"], since, roles, ", ".join(sorted(node["alone"]))


def describe_turns(facts: dict[str, Any]) -> str:
    """Describe the running turns, the calls of programs by their keys, and whether messages are taken."""
    turns = f"{facts['turns']['running']} running, {facts['turns']['waiting']} waiting"
    calls = ", ".join(f"{key} {count}" for key, count in facts["calls"].items())
    intake = describe_intake(facts)
    said = (turns, f"calls of programs: {calls}" if calls else "", "" if intake == "open" else f"intake {intake}")
    return "; ".join(filter(None, said))


def describe_backup(backup: dict[str, Any]) -> str:
    """Describe if copies are made automatically, and the last one."""
    last = f"the last {format_ago(backup['last'])}, {backup['kept']} kept" if backup["last"] else "none yet"
    if not backup["every"]:
        return f"no automatic backups; backup.every: 1d makes one a day{f'; {last}' if backup['last'] else ''}"
    return f"every {format_duration(backup['every'])}; {last}"


def describe_page(url: str) -> str:
    """Describe the address of the page, and how to log in."""
    return f"{apply_program_name('hermes-gateway open')} ({url})" if url else "none: the port is off"


def describe_owners(facts: dict[str, Any]) -> str:
    """Describe the owners, and why they are."""
    found = [(f"{one['platform']}:{one['user_id']}", one["why"]) for one in facts["owners"]]
    named = [f"{format_name(facts['names'], name, name.replace(':', ' ', 1))} ({why})" for name, why in found]
    return ", ".join(["the person at this terminal", *named])


def describe_sandbox(sandbox: dict[str, Any]) -> str:
    """Describe the limits of restricted hooks and tools here."""
    held = "; ".join(sandbox["missing"]) or "files, network, sockets and signals can be restricted"
    return f"{held}; {sandbox['exposed']}" if sandbox["exposed"] else held


def describe_journal(journal: dict[str, Any]) -> str:
    files = f", {size / 1e6:.1f} MB of files" if (size := journal.get("file_size", 0)) else ""
    return f"{format_count(journal['records'], 'record')}{files}; {journal['detail']}"


def describe_intake(facts: dict[str, Any]) -> str:
    """Describe if messages are accepted, and the work that is left of earlier ones."""
    replies = sum(facts["backlog"]["replies"].values())
    owed = f"{format_count(facts['backlog']['sessions'], 'session')} and {format_count(replies, 'chat')} have work left"
    return f"{facts['intake']}; {owed}" if facts["backlog"]["sessions"] or replies else facts["intake"]


def describe_other_build(home: Home) -> str:
    """Describe the remedy if the running gateway is another build than this program.

    Returns "" if it is the same one, or if none runs.
    """
    with suppress(GatewayError):
        facts = call_gateway(home.socket, "status", 5.0)
        if facts["version"] != __version__:
            what = f"the gateway that runs is {facts['version']}, and this program is {__version__}"
        elif find_last_change() > facts["since"]:
            what = "the gateway that runs is another build: this program was changed after it had started"
        else:
            return ""
        return f"{what}; they do not fit\nstart it again: hermes-gateway stop, and as it was started before"
    return ""


def find_last_change() -> float:
    """Return when a file of this program was last changed or replaced, by any way of installation."""
    return max(path.stat().st_ctime for path in Path(__file__).parents[1].rglob("*.py"))

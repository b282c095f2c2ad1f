"""`hermes-gateway sessions`: the sessions and their content; search, export, stop or delete one."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gateway.cli.output import (
    add_json_option,
    apply_style,
    escape_text,
    format_name,
    print_note,
    show_answer,
    show_progress,
    show_result,
    show_table,
    wait_for_yes,
)
from gateway.config.home import Home
from gateway.control.client import call_gateway
from gateway.errors import ExitCode
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

ORDERS = ("latest", "began", "turns", "name")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="list the sessions; those last used come first")
    listed.add_argument("--platform", default="", help="only sessions of this platform")
    listed.add_argument("--person", default="", metavar="ID", help="only sessions of this person: NETWORK:ID")
    listed.add_argument(
        "--search", default="", metavar="TEXT", help="only sessions with this text in the title, a name or the key"
    )
    listed.add_argument("--sort", choices=ORDERS, default="latest", help="in which order (latest)")
    listed.add_argument("-n", "--limit", type=int, default=50, metavar="N", help="at most N (50)")
    show = verbs.add_parser("show", help="show the messages of a session")
    show.add_argument("-n", "--limit", type=int, default=-1, metavar="N", help="only the last N entries (all)")
    show.add_argument("--before", type=int, default=-1, metavar="NUMBER", help="only entries before this one")
    show.add_argument("--longest", type=int, default=-1, metavar="N", help="at most N characters of each text (all)")
    search = verbs.add_parser("search", help="find the messages that contain all these words")
    search.add_argument("query", nargs="+", metavar="WORD", help="a word, or the beginning of a word with a *")
    search.add_argument("-n", "--limit", type=int, default=20, metavar="N", help="at most N (20)")
    for one in (listed, search):
        one.add_argument("--after", default="", metavar="PAGE", help="the next page, as the page before it named it")
    export = verbs.add_parser("export", help="export a session as Markdown or JSON")
    export.add_argument(
        "--format", choices=("markdown", "json"), default="markdown", help="the format of the file (markdown)"
    )
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: standard output)")
    stop = verbs.add_parser("stop", help="interrupt a session's turn, or cancel its question")
    delete = verbs.add_parser("delete", help="delete a session, or all with the same key")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for one in (show, export, stop, delete):
        one.add_argument("session", help="its id, the beginning of its id, or a session key")
    rebuild = verbs.add_parser("rebuild", help="build the search index again from the journal")
    add_json_option(listed, show, search, stop, rebuild)


def run(args: argparse.Namespace, home: Home) -> int | None:
    verbs: dict[str, Callable[[argparse.Namespace, Home], int | None]] = {
        "list": show_list,
        "show": show_one,
        "search": show_hits,
        "export": export,
        "stop": stop,
        "delete": delete,
        "rebuild": rebuild,
    }
    return verbs[args.verb](args, home)


def show_list(args: argparse.Namespace, home: Home) -> None:
    wanted = {name: getattr(args, name) for name in ("platform", "person", "search", "sort", "limit", "after")}
    is_part = args.platform or args.person or args.search
    empty = "no session is like that" if is_part else "there are no sessions yet"
    show_answer(call_gateway(home.socket, "sessions.list", **wanted), partial(show_sessions, empty), as_json=args.json)


def show_sessions(empty: str, found: dict[str, Any]) -> None:
    rows = [
        (
            f"{'*' if one['is_current'] else ' '} {one['session_id']}",
            one["platform"],
            format_name(found["names"], f"{one['platform']}:{one['user_id']}", one["user_id"]),
            one["turns"],
            format_moment(one["last_active"]),
            one["title"] or format_name(found["names"], one["chat"], one["session_key"]),
        )
        for one in found["sessions"]
    ]
    show_table(("  session", "platform", "person", "turns", "last used", ""), rows, empty)
    show_next(found)


def show_next(found: dict[str, Any]) -> None:
    """Print how to get the next page, if one exists."""
    if found["next"]:
        print_note(f"there may be more: the same with --after {shlex.quote(found['next'])}")


def show_one(args: argparse.Namespace, home: Home) -> None:
    wanted = {"before": args.before, "limit": args.limit, "longest": args.longest}
    session = call_gateway(home.socket, "sessions.show", session=args.session, **wanted)
    show_answer(session, show_entries, as_json=args.json)


def show_entries(session: dict[str, Any]) -> None:
    called = session["title"] or format_name(session["names"], session["chat"], session["session_key"])
    print(apply_style(to_one_line(f"{session['session_id']}  {called}"), "bold"))
    if session["first"]:
        before = session["first"]
        print_note(f"{format_count(before, 'entry', 'entries')} before these: the same with --before {before}")
    for at, entry in enumerate(session["entries"], session["first"]):
        show_decisions(session, at)
        print(f"\n{apply_style(entry['role'], 'cyan')}  {escape_text(entry['content'])}".rstrip())
        for call in entry.get("tool_calls", ()):
            print(f"  calls {to_one_line(call['name'])} {to_one_line(str(call['args']))}")
    show_decisions(session, session["count"])


def show_decisions(session: dict[str, Any], at: int) -> None:
    """Print the hooks' decisions at this entry."""
    for one in session["decisions"]:
        if one["entry"] == at:
            says = f"hook {one['hook']}: {one['decision']} at {one['event']}: {one['reason']}"
            print(f"\n{apply_style(to_one_line(says), 'yellow')}")


def show_hits(args: argparse.Namespace, home: Home) -> None:
    query = " ".join(args.query)
    found = call_gateway(home.socket, "sessions.search", query=query, limit=args.limit, after=args.after)
    show_answer(found, show_hit_table, as_json=args.json)


def show_hit_table(found: dict[str, Any]) -> None:
    rows = [(one["session_id"], format_moment(one["at"]), one["role"], one["snippet"]) for one in found["hits"]]
    show_table(("session", "when", "who", ""), rows, "no such message")
    show_next(found)


def export(args: argparse.Namespace, home: Home) -> None:
    text = call_gateway(home.socket, "sessions.export", session=args.session, format=args.format)["text"]
    if args.output:
        Path(args.output).write_text(text, "utf-8")
        print_note(f"written to {args.output}")
    else:
        print(escape_text(text) if sys.stdout.isatty() else text)


def stop(args: argparse.Namespace, home: Home) -> None:
    found = call_gateway(home.socket, "sessions.stop", session=args.session)
    says = {"running": "stopped", "waiting": "its question is withdrawn", "nothing": "nothing runs there"}
    show_result(found, says[found["stopped"]], as_json=args.json)


def delete(args: argparse.Namespace, home: Home) -> int:
    if not args.yes:
        if not sys.stdin.isatty():
            print_note("nothing was deleted, since no terminal can ask you; add --yes")
            return ExitCode.USAGE
        if not wait_for_yes(f"Forget {args.session}, for good?"):
            return ExitCode.FAILED
    call_gateway(home.socket, "sessions.delete", session=args.session)
    print(to_one_line(f"{args.session} is forgotten"))
    print_note("what people had the agent remember stays: hermes-gateway people forget NETWORK:ID")
    return ExitCode.OK


def rebuild(args: argparse.Namespace, home: Home) -> None:
    with show_progress("reading the journal"):
        found = call_gateway(home.socket, "sessions.rebuild")
    show_result(found, f"{format_count(found['records'], 'record')} read", as_json=args.json)


def format_moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""

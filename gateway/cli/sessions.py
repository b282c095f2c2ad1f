"""`hermes-gateway sessions`: the conversations there are, what was said in them, and what becomes of them."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gateway.cli.output import apply_style, escape_text, print_note, show_json, show_result, show_table
from gateway.config.home import Home
from gateway.control_socket.client import call_gateway
from gateway.errors import ExitCode
from gateway.logs.text import to_one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = verbs.add_parser("list", help="the sessions, those last used first")
    listed.add_argument("--platform", default="", help="only of this platform")
    listed.add_argument("-n", "--limit", type=int, default=50, metavar="N", help="at most N (50)")
    show = verbs.add_parser("show", help="what was said in one")
    search = verbs.add_parser("search", help="where all these words were said")
    search.add_argument("query", nargs="+", metavar="WORD", help="words, or the beginnings of words with a *")
    export = verbs.add_parser("export", help="one as a file of Markdown or JSON")
    export.add_argument("--format", choices=("markdown", "json"), default="markdown", help="of the file (markdown)")
    export.add_argument("-o", "--output", metavar="FILE", help="where to; by default the standard output")
    delete = verbs.add_parser("delete", help="forget one, or all under a session key")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for one in (show, export, delete):
        one.add_argument("session", help="its id, the beginning of its id, or a session key")
    rebuild = verbs.add_parser("rebuild", help="make the index for searching anew from the journal")
    for one in (listed, show, search, rebuild):
        one.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace, home: Home) -> int | None:
    verbs: dict[str, Callable[[argparse.Namespace, Home], int | None]] = {
        "list": show_list,
        "show": show_one,
        "search": show_hits,
        "export": export,
        "delete": delete,
        "rebuild": rebuild,
    }
    return verbs[args.verb](args, home)


def show_list(args: argparse.Namespace, home: Home) -> None:
    found = call_gateway(home.socket, "sessions.list", platform=args.platform, limit=args.limit)
    if args.json:
        show_json(found)
        return
    rows = [
        (
            f"{'*' if one['is_current'] else ' '} {one['session_id']}",
            one["platform"],
            one["user_id"],
            one["turns"],
            format_moment(one["last_active"]),
            one["title"] or one["session_key"],
        )
        for one in found["sessions"]
    ]
    show_table(("  session", "platform", "person", "turns", "last used", ""), rows, "there are no sessions yet")


def show_one(args: argparse.Namespace, home: Home) -> None:
    session = call_gateway(home.socket, "sessions.show", session=args.session)
    if args.json:
        show_json(session)
        return
    print(apply_style(to_one_line(f"{session['session_id']}  {session['title'] or session['session_key']}"), "bold"))
    for entry in session["entries"]:
        print(f"\n{apply_style(entry['role'], 'cyan')}  {escape_text(entry['content'])}".rstrip())
        for call in entry.get("tool_calls", ()):
            print(f"  calls {to_one_line(call['name'])} {to_one_line(str(call['args']))}")


def show_hits(args: argparse.Namespace, home: Home) -> None:
    found = call_gateway(home.socket, "sessions.search", query=" ".join(args.query))
    if args.json:
        show_json(found)
        return
    rows = [(one["session_id"], format_moment(one["at"]), one["role"], one["snippet"]) for one in found["hits"]]
    show_table(("session", "when", "who", ""), rows, "nobody said that")


def export(args: argparse.Namespace, home: Home) -> None:
    text = call_gateway(home.socket, "sessions.export", session=args.session, format=args.format)["text"]
    if args.output:
        Path(args.output).write_text(text, "utf-8")
        print_note(f"written to {args.output}")
    else:
        print(escape_text(text) if sys.stdout.isatty() else text)


def delete(args: argparse.Namespace, home: Home) -> int:
    if not args.yes:
        if not sys.stdin.isatty():
            print_note("nothing was deleted: say --yes, since there is nobody to ask")
            return int(ExitCode.USAGE)
        if input(f"Forget {args.session}, for good? [y/N] ").strip().lower() not in ("y", "yes"):
            return int(ExitCode.FAILED)
    call_gateway(home.socket, "sessions.delete", session=args.session)
    print(to_one_line(f"{args.session} is forgotten"))
    return int(ExitCode.OK)


def rebuild(args: argparse.Namespace, home: Home) -> None:
    print_note("reading the journal ...")
    found = call_gateway(home.socket, "sessions.rebuild")
    show_result(found, f"{found['records']} records read", as_json=args.json)


def format_moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""

"""`hermes-gateway approvals`: the calls and questions that wait for a person, and the person's answer."""

import argparse
import json
import sys
import time
from typing import Any

from gateway.cli.output import apply_style, fold_for, format_duration, format_name, print_text, show_answer, show_result
from gateway.config.home import Home
from gateway.control.client import PATIENCE, call_gateway
from gateway.logs.signs import show_signs
from gateway.logs.text import to_one_line

NOTHING = "nothing waits for an approval"
REMEDY = "\nallow one, this once: hermes-gateway approvals yes ID    refuse it: hermes-gateway approvals no ID"
SAY_REMEDY = "\nanswer a question: hermes-gateway approvals say ID WORDS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listed = verbs.add_parser("list", help="list what waits, with all that would run (the default)")
    allowed = verbs.add_parser("yes", help="approve the call, this once")
    says = "approve for longer, if the terminal's own user asks and the question offers it"
    allowed.add_argument("--for", dest="lasts", choices=("session", "always"), default="once", help=says)
    refused = verbs.add_parser("no", help="deny the call")
    said = verbs.add_parser("say", help="answer a question that is not an approval")
    for one in (allowed, refused, said):
        one.add_argument("id", help="as `list` shows it")
    said.add_argument("text", nargs="+", metavar="WORD", help="the answer, in words")
    for one in (listed, allowed, refused, said):
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print a JSON object")


def run(args: argparse.Namespace, home: Home) -> None:
    if args.verb in (None, "list"):
        show_answer(call_gateway(home.socket, "approvals.list", PATIENCE), show_approvals, as_json=args.json)
        return
    if args.verb == "say":
        did = call_gateway(home.socket, "questions.answer", PATIENCE, id=args.id, text=" ".join(args.text))
        show_result(did, f"{to_one_line(did['id'])} is answered", as_json=args.json)
        return
    answer = {"allowed": True, "lasts": args.lasts} if args.verb == "yes" else {"allowed": False}
    did = call_gateway(home.socket, "approvals.answer", PATIENCE, id=args.id, **answer)
    show_result(did, f"{to_one_line(did['id'])} is {'allowed' if did['allowed'] else 'refused'}", as_json=args.json)


def show_approvals(found: dict[str, Any]) -> None:
    """Print each call with its whole arguments, which are exactly what runs; then all other questions."""
    for one in found["approvals"]:
        show_question(one, found["names"])
        for call in one["calls"]:
            print(f"  {to_one_line(call['tool'])}")
            for line in show_signs(json.dumps(call["args"], ensure_ascii=False, indent=2)).split("\n"):
                print(f"    {line}")
    print_text(REMEDY if found["approvals"] else apply_style(NOTHING, "dim"))
    for one in found["questions"]:
        print()
        show_question(one, found["names"])
    if found["questions"]:
        print_text(SAY_REMEDY)


def show_question(one: dict[str, Any], names: dict[str, Any]) -> None:
    """Describe a question: its person, its chat, how long it is open, and the hook or tool that asks."""
    name = f"{one['user_name']} " if one["user_name"] else ""
    place = format_name(names, f"{one['platform']}:{one['chat_id']}", f"{one['platform']} {one['chat_id']}")
    left = format_duration(max(one["until"] - time.time(), 0))
    who = to_one_line(f"{name}({one['platform']} {one['user_id']}) in {place}, for {left} yet")
    print(fold_for(sys.stdout, f"{apply_style(one['id'], 'bold')}  {who}", "  "))
    if one["hooks"]:
        print(to_one_line(f"  the hook {', '.join(one['hooks'])} asks:"))
    for line in show_signs(one["question"]).split("\n") if one["question"] else ():
        print(f"  {line}")

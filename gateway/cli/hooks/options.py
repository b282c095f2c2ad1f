"""The arguments of every verb of `hooks`, apart from what the verbs do, so that to read them costs nothing."""

import argparse
from typing import Any

FOLDER_HELP = "the name of its folder"


def is_path(name: str) -> bool:
    """Whether a folder is meant by where it lies, not by its name."""
    return "/" in name or name.startswith(".")


def add_options(verb: str, parser: argparse.ArgumentParser) -> None:
    """Give the parser of this verb what the verb takes."""
    match verb:
        case "list" | "stats":
            parser.add_argument("--all", action="store_true", help="also those that come with the gateway and are off")
            says = "only N, those first that somebody should look at"
            parser.add_argument("--worst", type=int, default=0, metavar="N", help=says)
            says = "only those with this text in their name, description or events"
            parser.add_argument("--text", default="", help=says)
        case "new":
            _add_new_options(parser)
        case "check":
            parser.add_argument("names", nargs="*", metavar="NAME|PATH", help="only these; by default all of this home")
        case "dead-letters":
            _add_dead_letters_options(parser)
            return
        case "reload":
            parser.add_argument(
                "name", nargs="?", default="", help=f"{FOLDER_HELP}; without one, all folders are looked at"
            )
        case "test":
            parser.add_argument("name", metavar="NAME|PATH", help=f"{FOLDER_HELP}, or where that lies")
            parser.add_argument("--event", metavar="NAME", default="", help="only this event")
            _add_payload_option(parser)
        case _:
            parser.add_argument("name", help=FOLDER_HELP)
    match verb:
        case "deps":
            says = "further packages, where its README says `pip install PACKAGE`; they are remembered"
            parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=says)
        case "logs":
            parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="the last N lines (50)")
            parser.add_argument("-f", "--follow", action="store_true", help="go on with what it prints from now on")
        case "fire":
            parser.add_argument("event", help="the event, for instance agent:end")
            _add_payload_option(parser)
    _add_json_option(parser)


def _add_new_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=FOLDER_HELP)
    wanted: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME"}
    parser.add_argument("--event", help="an event to observe; may be repeated", **wanted)
    parser.add_argument("--intercept", help="an event to decide on; likewise", **wanted)
    parser.add_argument("--lang", choices=("python", "sh", "node"), default="python", help="its language (python)")


def _add_dead_letters_options(parser: argparse.ArgumentParser) -> None:
    letters = parser.add_subparsers(dest="letters", metavar="VERB", required=True)
    listed = letters.add_parser("list", help="all of them, or those of one hook")
    listed.add_argument("name", nargs="?", default="", help=FOLDER_HELP)
    show = letters.add_parser("show", help="one of them, with its event")
    show.add_argument("name", help=FOLDER_HELP)
    show.add_argument("id", type=int, help="its number in the list")
    retry = letters.add_parser("retry", help="deliver again: one, or all of a hook")
    prune = letters.add_parser("prune", help="throw away: one, or all of a hook")
    for verb in (retry, prune):
        verb.add_argument("name", help=FOLDER_HELP)
        verb.add_argument("id", type=int, nargs="?", help="its number in the list")
    for verb in (listed, show, retry, prune):
        _add_json_option(verb)


def _add_payload_option(parser: argparse.ArgumentParser) -> None:
    says = "fields of the event, over those of the sample: JSON, a file of it, or - for the standard input"
    parser.add_argument("--payload", metavar="JSON|FILE", help=says)


def _add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one object")

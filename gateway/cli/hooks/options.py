"""The arguments of all verbs of `hooks`, separate from the verbs' work, so that loading them costs nothing."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from gateway.cli.output import add_json_option

SOURCE_HELP = "a folder, an archive, git+https://HOST/REPOSITORY@REF#FOLDER, package:NAME, or a name of an index"
FOLDER_HELP = "the name of its folder"


def is_path(name: str) -> bool:
    """Return True if the argument is the path of a folder, and not a name."""
    return "/" in name or name.startswith(".")


def add_options(verb: str, parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb to its parser."""
    OPTIONS.get(verb, _add_name_option)(parser)
    if verb not in WITHOUT_OBJECT:
        add_json_option(parser)


def _add_name_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=FOLDER_HELP)


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all",
        action="store_true",
        help="also without a running gateway; for `stats`, also hooks that are off",
    )
    says = "only N hooks; those that need attention come first"
    parser.add_argument("--worst", type=int, default=0, metavar="N", help=says)
    says = "only hooks with this text in their name, description or events"
    parser.add_argument("--text", default="", help=says)


def _add_check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME|PATH", help="only these hooks (default: all of this home)")
    says = "also name the events and fields of a hook that calls of a connected program do not have"
    parser.add_argument("--desk", action="store_true", help=says)


def _add_reload_options(parser: argparse.ArgumentParser) -> None:
    says = f"{FOLDER_HELP} (default: all folders)"
    parser.add_argument("name", nargs="?", default="", help=says)


def _add_test_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|PATH", help=f"{FOLDER_HELP}, or its path")
    parser.add_argument("--event", metavar="NAME", default="", help="only this event")
    _add_payload_option(parser)


def _add_fire_options(parser: argparse.ArgumentParser) -> None:
    _add_name_option(parser)
    parser.add_argument("event", help="the event, such as agent:end")
    _add_payload_option(parser)


def _add_deps_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="", help=FOLDER_HELP)
    says = "more packages, as its README names them; the gateway remembers them"
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=says)
    says = "missing packages of every hook and plugin that is switched on"
    parser.add_argument("--all", action="store_true", help=says)
    add_yes_option(parser)


def _add_logs_options(parser: argparse.ArgumentParser) -> None:
    _add_name_option(parser)
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="the last N lines (50)")
    parser.add_argument("-f", "--follow", action="store_true", help="follow what it prints from now on")


def _add_install_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    add_yes_option(parser)


def add_update_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all that are installed)")
    parser.add_argument("--check", action="store_true", help="only show the changes; exit 1 if there are any")
    add_yes_option(parser)


def _add_sync_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what `hooks freeze` has printed")
    add_yes_option(parser)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", metavar="WORD", nargs="?", default="", help="a word of the name or description (default: all)"
    )


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="the folder to publish")
    parser.add_argument(
        "file", metavar="INDEX", help="the file of the index, such as index.json; created if it is missing"
    )
    place = parser.add_mutually_exclusive_group()
    says = "where others find it (default: its path relative to the index)"
    place.add_argument("--source", metavar="SOURCE", default="", help=says)
    says = "also write an archive beside the index, for web hosts that serve no folders"
    place.add_argument("--archive", action="store_true", help=says)


def _add_ask_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", metavar="PROGRAM", help="claude, codex or gemini")


def _add_index_options(parser: argparse.ArgumentParser) -> None:
    indexes = parser.add_subparsers(dest="index", metavar="VERB", required=True)
    added = indexes.add_parser("add", help="add an index")
    says = "https://HOST/index.json, git+https://HOST/REPOSITORY#index.json, or a file"
    added.add_argument("address", metavar="ADDRESS", help=says)
    says = "the public key of its signer: `ssh-ed25519 AAAA...`, or a file with that line"
    added.add_argument("--key", metavar="KEY", required=True, help=says)
    listed = indexes.add_parser("list", help="list the indexes")
    removed = indexes.add_parser("remove", help="remove an index")
    removed.add_argument("address", metavar="ADDRESS", help="as `list` shows it")
    add_json_option(added, listed, removed)


def _add_nothing(_parser: argparse.ArgumentParser) -> None:
    """Add nothing: the verb has no options of its own."""


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_dev_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="its folder")
    says = "run it with your rights; by default, it has the limits of an installed hook"
    parser.add_argument("--trusted", action="store_true", help=says)


def _add_new_options(parser: argparse.ArgumentParser) -> None:
    says = "a name, for a hook in this home; or a path in your repository, such as ./greet"
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", help=says)
    skill = "write a skill for coding agents into .claude/skills here; you see it first"
    what.add_argument("--skill", action="store_true", help=skill)
    wanted: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME"}
    parser.add_argument("--event", help="an event to observe; may be repeated", **wanted)
    parser.add_argument("--intercept", help="an event to decide on; may be repeated", **wanted)
    parser.add_argument("--webhook", action="store_true", help="a hook that programs call over HTTP: webhook:NAME")
    parser.add_argument("--schedule", action="store_true", help="a hook that runs at set times: schedule:NAME")
    parser.add_argument(
        "--lang", choices=("python", "sh", "node", "typescript"), default="python", help="its language (python)"
    )
    add_yes_option(parser)


def _add_dead_letters_options(parser: argparse.ArgumentParser) -> None:
    letters = parser.add_subparsers(dest="letters", metavar="VERB", required=True)
    listed = letters.add_parser("list", help="list all dead letters, or those of one hook")
    listed.add_argument("name", nargs="?", default="", help=FOLDER_HELP)
    show = letters.add_parser("show", help="show a dead letter with its event")
    show.add_argument("name", help=FOLDER_HELP)
    show.add_argument("id", type=int, help="its number in the list")
    retry = letters.add_parser("retry", help="retry one dead letter, or all of a hook")
    prune = letters.add_parser("prune", help="remove one dead letter, or all of a hook")
    for verb in (retry, prune):
        verb.add_argument("name", help=FOLDER_HELP)
        verb.add_argument("id", type=int, nargs="?", help="its number in the list")
    add_json_option(listed, show, retry, prune)


def _add_payload_option(parser: argparse.ArgumentParser) -> None:
    says = "fields that replace those of the sample: JSON, a JSON file, or - for standard input"
    parser.add_argument("--payload", metavar="JSON|FILE", help=says)


# Their own verbs have `--json`; a schema is an object.
WITHOUT_OBJECT = frozenset({"ask", "dead-letters", "dev", "index", "schema"})
OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": _add_list_options,
    "stats": _add_list_options,
    "logs": _add_logs_options,
    "new": _add_new_options,
    "dev": _add_dev_options,
    "check": _add_check_options,
    "schema": _add_nothing,
    "test": _add_test_options,
    "fire": _add_fire_options,
    "reload": _add_reload_options,
    "deps": _add_deps_options,
    "install": _add_install_options,
    "update": add_update_options,
    "outdated": _add_nothing,
    "freeze": _add_nothing,
    "sync": _add_sync_options,
    "search": add_search_options,
    "index": _add_index_options,
    "publish": add_publish_options,
    "ask": _add_ask_options,
    "dead-letters": _add_dead_letters_options,
}
"""The options of each verb that takes more than the name of a hook."""

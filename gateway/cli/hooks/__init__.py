"""`hermes-gateway hooks`: the hooks, their state, and all actions on a hook.

The module of a verb is imported when the verb is chosen, since verbs that read hook folders need much, and verbs that
call the gateway next to nothing. A verb's module has `run(args, home)`.
"""

import argparse
from collections.abc import Mapping

from gateway.cli.hooks.options import add_options
from gateway.cli.program import load_command
from gateway.config.home import Home

VERBS: Mapping[str, tuple[str, str]] = {
    "list": ("list", "the hooks there are, and how they fare"),
    "info": ("info", "all that is known of one hook"),
    "stats": ("list", "calls, failures and times of each hook"),
    "logs": ("logs", "what a hook printed"),
    "new": ("new", "make a hook that works at once, with a sample event and a test"),
    "dev": ("dev", "try a hook while you write it, in a gateway of its own: each save counts at once"),
    "check": ("check", "say everything that is wrong with hook folders; exit 1 if something is"),
    "schema": ("check", "print the JSON schema of HOOK.yaml, for editors"),
    "test": ("test", "call a hook with samples of its events, in a process of its own"),
    "fire": ("test", "tell a hook of an event as if it had happened"),
    "enable": ("control", "switch a hook on"),
    "disable": ("control", "switch a hook off"),
    "reload": ("control", "read a hook again and restart it"),
    "reset": ("control", "close its circuit breaker and try it again now"),
    "trust": (
        "control",
        "let a hook run as it is now (where `hooks.trust` is `pinned`, or a tool may have changed it)",
    ),
    "forget": ("control", "go on without a hook that is gone or cannot be read: nothing is denied for it any more"),
    "deps": ("deps", "install the packages that it lacks, or that you name, for it alone"),
    "install": ("install", "install another person's hook, after you have seen what it asks for"),
    "update": ("install", "take what there is now of hooks that were installed, when you have seen what differs"),
    "outdated": ("outdated", "which installed hooks and skills are not as they are where they came from"),
    "remove": ("install", "remove a hook that was installed"),
    "freeze": ("freeze", "print what is installed, so that `sync` makes another home the same"),
    "sync": ("freeze", "have just those hooks installed that `freeze` has printed"),
    "search": ("index", "look for hooks by a word, in all indexes"),
    "index": ("index", "the indexes in which hooks are looked for by name"),
    "publish": ("index", "write a hook of yours into an index"),
    "ask": ("ask", "ask this gateway for a program on this machine, as a line in its settings does"),
    "dead-letters": ("dead_letters", "events that a durable hook could not take, kept until you decide"),
}
"""The module and description of each verb, in the order of `--help`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (_, does) in VERBS.items():
        add_options(verb, verbs.add_parser(verb, help=does))


def run(args: argparse.Namespace, home: Home) -> int:
    module = load_command(f"{__name__}.{VERBS[args.verb][0]}")
    return int(module.run(args, home) or 0)

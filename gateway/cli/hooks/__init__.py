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
    "list": ("list", "list the hooks and their state"),
    "info": ("info", "show a hook: events, rights, state, last error"),
    "stats": ("list", "show calls, failures and times of each hook"),
    "logs": ("logs", "show what a hook printed"),
    "new": ("new", "create a hook that runs at once, with a sample event and a test"),
    "dev": ("dev", "try a hook in a gateway of its own while you write it; each save is live"),
    "check": ("check", "list all mistakes in hook folders; exit 1 if there is one"),
    "schema": ("check", "print the JSON schema of HOOK.yaml, for editors"),
    "test": ("test", "call a hook with sample events, in a separate process"),
    "fire": ("test", "send an event to a hook as if it had happened"),
    "enable": ("control", "switch a hook on"),
    "disable": ("control", "switch a hook off"),
    "reload": ("control", "read a hook again and restart it"),
    "reset": ("control", "close a hook's circuit breaker, and try the hook again now"),
    "trust": (
        "control",
        "let a changed hook run (if `hooks.trust` is `pinned`, or a tool may have changed it)",
    ),
    "forget": ("control", "stop denying calls for a guard that is missing or cannot be read"),
    "deps": ("deps", "install packages for one hook: those it lacks, or those you name"),
    "install": ("install", "install another person's hook; you see first what it asks for"),
    "update": ("install", "update installed hooks; you see first what changes"),
    "outdated": ("outdated", "list installed hooks and skills that have a newer version"),
    "remove": ("install", "remove an installed hook"),
    "freeze": ("freeze", "print the installed hooks, for `sync` in another home"),
    "sync": ("freeze", "install exactly the hooks that `freeze` has printed"),
    "search": ("index", "search all indexes for hooks"),
    "index": ("index", "list, add or remove indexes of hooks"),
    "publish": ("index", "add your hook to an index"),
    "ask": ("ask", "ask an approver for a program here; its settings call this"),
    "dead-letters": ("dead_letters", "show, retry or remove events that a durable hook could not process"),
}
"""The module and description of each verb, in the order of `--help`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (_, does) in VERBS.items():
        add_options(verb, verbs.add_parser(verb, help=does))


def run(args: argparse.Namespace, home: Home) -> int:
    module = load_command(f"{__name__}.{VERBS[args.verb][0]}")
    return int(module.run(args, home) or 0)

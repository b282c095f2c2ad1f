"""This program: its name, the name that the present person calls it, and its commands.

All texts use the name `hermes-gateway`: the daemon does not know their reader. On a terminal the name is replaced by
the one that the person typed, which is `./x` in a checkout.
"""

import gc
import importlib
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, TextIO

from gateway.config.home import get_process_environment
from gateway.installation import PROGRAM as PROGRAM
from gateway.installation import find_program_name

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("gateway.cli.run", "run the gateway in the foreground"),
    "chat": ("gateway.cli.chat", "chat with the agent"),
    "status": ("gateway.cli.status", "show what the gateway is doing"),
    "open": ("gateway.cli.open", "open the web page of the gateway in your browser"),
    "stop": ("gateway.cli.stop", "stop the gateway, and wait until it has ended"),
    "restart": ("gateway.cli.restart", "restart the gateway, and wait until it is ready"),
    "reload": ("gateway.cli.reload", "make the gateway read its configuration again"),
    "doctor": ("gateway.cli.doctor", "find problems, and show how to solve them"),
    "security": ("gateway.cli.security", "audit who can do too much, and show the fix"),
    "hooks": ("gateway.cli.hooks", "list, write, test, install and switch hooks"),
    "skills": ("gateway.cli.hooks.skills", "list, install and publish skills of the agent"),
    "events": ("gateway.cli.events", "list all events, or watch them as they happen"),
    "setup": (
        "gateway.cli.setup",
        "set up the gateway step by step: model, chat network, service",
    ),
    "service": ("gateway.cli.service", "run the gateway as a service of this host"),
    "platform": ("gateway.cli.platform", "show the chat networks; pause, resume or reconnect one"),
    "approvals": ("gateway.cli.approvals", "list tool calls that wait for approval, and answer them"),
    "pairing": ("gateway.cli.pairing", "authorize users by pairing codes and invitations"),
    "people": ("gateway.cli.people", "list people; show, export or remove a person's data"),
    "connect": ("gateway.cli.connect", "make Claude Code, Codex or Gemini CLI ask in a chat before tools"),
    "disconnect": ("gateway.cli.disconnect", "undo `connect`"),
    "keys": ("gateway.cli.keys", "create, list and revoke API keys"),
    "activity": ("gateway.cli.activity", "show who did what: approvals, switches, keys, deletions, logins"),
    "usage": ("gateway.cli.usage", "show tokens and cost by person, model, day, session or hook"),
    "send": ("gateway.cli.send", "send a text to a chat, for scripts and cron"),
    "jobs": ("gateway.cli.jobs", "schedule tasks and commands: cron jobs, reminders"),
    "cron": ("gateway.cli.jobs", "the same as `jobs`"),
    "sessions": ("gateway.cli.sessions", "list, search, export and delete conversations"),
    "backup": ("gateway.cli.backup", "make, verify and restore backups"),
    "migrate": ("gateway.cluster.migrate", "move the journal to NATS servers, or back"),
    "upgrade": ("gateway.cli.upgrade", "install another version, and go back if it fails"),
    "uninstall": ("gateway.cli.removal", "remove the service and the program; your data stays"),
    "demo": ("gateway.cli.demo", "show a tour that ends automatically"),
    "logs": ("gateway.cli.logs", "show the log, or follow it"),
    "config": ("gateway.cli.config", "check, show and change the configuration"),
    "completions": ("gateway.cli.completions", "print completions for bash, zsh or fish"),
}
"""The module and description of each command, in the order of `--help`."""

HINT = re.compile(rf"\b{PROGRAM}(?= (?:--|(?:{'|'.join(COMMANDS)})\b))")


@cache
def get_program_name() -> str:
    """Return what a person types to call us, as they just did."""
    return find_program_name(get_process_environment())


def apply_program_name(text: str) -> str:
    """Replace the program's name in commands by the one that this person can type."""
    return HINT.sub(lambda _: get_program_name(), text)


def load_command(name: str) -> Any:
    """Load the module of a command, or of a verb of one.

    Imported modules stay: a search for garbage in them, now and again at the end, would take a third of the time.
    """
    if name in sys.modules:
        return sys.modules[name]
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def close_output(stream: TextIO) -> None:
    """Redirect a stream that takes no more: the rest of its buffer must not make the program's end fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

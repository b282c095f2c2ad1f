"""This program: its name, the name that the present person calls it, and its commands.

All texts use the name `hermes-gateway`: the daemon does not know their reader. On a terminal the name is replaced by
the one that the person typed, which is `./x` in a checkout.
"""

import gc
import importlib
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from gateway.config.home import get_process_environment
from gateway.installation import PROGRAM as PROGRAM
from gateway.installation import find_program_name

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("gateway.cli.run", "serve, in the foreground"),
    "chat": ("gateway.cli.chat", "talk to the running gateway"),
    "status": ("gateway.cli.status", "what the gateway is doing"),
    "open": ("gateway.cli.open", "the operator's page in the browser: how everything fares, live"),
    "stop": ("gateway.cli.stop", "end the running gateway, and wait until it has ended"),
    "restart": ("gateway.cli.restart", "end the running gateway, and wait until it serves again"),
    "reload": ("gateway.cli.reload", "have the configuration read again"),
    "doctor": ("gateway.cli.doctor", "look for what is wrong, and say what helps"),
    "security": ("gateway.cli.security", "who could do what they should not, and the line that mends it"),
    "hooks": ("gateway.cli.hooks", "what hooks there are, and everything one does with a hook"),
    "skills": ("gateway.cli.hooks.skills", "what the agent can learn, and skills of others"),
    "events": ("gateway.cli.events", "which events there are, and those that happen now"),
    "setup": (
        "gateway.cli.setup",
        "set it up in one conversation, or one step of it: the model, a network, the service",
    ),
    "service": ("gateway.cli.service", "have the machine start it, and start it again"),
    "platform": ("gateway.cli.platform", "the chat networks and their state; pause one, or connect it again"),
    "approvals": ("gateway.cli.approvals", "tool calls that wait for approval, and the answer"),
    "pairing": ("gateway.cli.pairing", "pairing requests and paired users"),
    "people": ("gateway.cli.people", "the data of a person: show, export or remove it"),
    "connect": ("gateway.cli.connect", "ask an owner in a chat before Claude Code, Codex or Gemini CLI runs a tool"),
    "disconnect": ("gateway.cli.disconnect", "take what `connect` wrote out of that agent's settings"),
    "keys": ("gateway.cli.keys", "API keys by which programs use the port"),
    "activity": ("gateway.cli.activity", "who did what: approvals, switches, keys, deletions, logins"),
    "usage": ("gateway.cli.usage", "how many tokens models took and what that cost, by person, model, day, hook"),
    "send": ("gateway.cli.send", "a text into a chat, for scripts and cron"),
    "jobs": ("gateway.cli.jobs", "run texts and commands at set times: cron jobs, reminders"),
    "cron": ("gateway.cli.jobs", "another spelling of `jobs`"),
    "sessions": ("gateway.cli.sessions", "the conversations, and what was said in them"),
    "backup": ("gateway.cli.backup", "copies of the home, and putting one back"),
    "migrate": ("gateway.cluster.migrate", "take the journal from the home to NATS servers, or back"),
    "upgrade": ("gateway.cli.upgrade", "another version in the place of this one, and the way back where that fails"),
    "uninstall": ("gateway.cli.removal", "remove the service and the program; the home stays"),
    "demo": ("gateway.cli.demo", "a tour that ends by itself"),
    "logs": ("gateway.cli.logs", "show what the gateway wrote to its log, and follow it"),
    "config": ("gateway.cli.config", "check, show and change the configuration"),
    "completions": ("gateway.cli.completions", "have a shell complete commands and options"),
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

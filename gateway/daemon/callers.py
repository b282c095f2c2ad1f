"""The callers of the control socket: a person at a terminal may ask everything, a child of the gateway less.

The ancestors of a process tell its origin. Below the daemon are the workers and programs of hooks, the commands of the
agent, and the tool servers. A process that detaches itself from one of these is adopted by an ancestor, in the end by
the daemon (`own_process.py`), so the gateway never mistakes it for a person at a terminal.
"""

import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from gateway.control.callers import find_ancestors, find_user
from gateway.control.server import Judge, JudgeCaller
from gateway.daemon.verb_table import VERBS
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.places.sources import HookVersion
from gateway.records.activity import DESK_PLACE, HOOK_PLACE, TERMINAL_PLACE, Caller

FindProgram: TypeAlias = Callable[[Sequence[int]], str]
"""Returns the program on the desk from which these processes descend; "" if they descend from none."""


def build_caller_check(hooks: FolderHooks, find_program: FindProgram) -> JudgeCaller:
    return partial(find_caller, hooks, find_program, os.getpid())


def find_caller(
    hooks: FolderHooks, find_program: FindProgram, daemon: int, connection: socket.socket
) -> tuple[Caller, Judge]:
    """Return the caller, and a function that returns why the caller may not use a verb ("" for an allowed verb).

    Every caller of the socket has the owner's role; the row of a verb names the hooks that may use it (`authors`).

    Raises:
        CallerEnded: the caller has ended, or cannot be examined.
    """
    ancestors = find_ancestors(connection)
    if program := find_program(ancestors):
        return Caller(program, DESK_PLACE, "owner"), partial(refuse_program, program)
    if daemon not in ancestors[1:]:
        return Caller(find_user(connection), TERMINAL_PLACE, "owner"), refuse_nothing
    hook = hooks.find_by_process(ancestors[: ancestors.index(daemon)])
    return Caller(describe_caller(hook), HOOK_PLACE, "owner"), partial(refuse_verb, hook)


def describe_caller(hook: HookVersion | None) -> str:
    return "what a tool has started" if hook is None or hook.manifest is None else f"the hook {hook.called}"


def refuse_nothing(_verb: str) -> str:
    return ""


def refuse_program(program: str, verb: str) -> str:
    return f"{program} asks this gateway before it runs a tool, so what it starts may not ask for `{verb}`"


def refuse_verb(hook: HookVersion | None, verb: str) -> str:
    """Return why a process of this hook, or of a tool (None), may not use this verb; "" if the verb is allowed."""
    allowed, who, helps = {"all"}, describe_caller(hook), ""
    if hook is not None and hook.manifest is not None:
        if hook.source.is_placed and hook.reach is None:
            allowed |= {"send", "placed"}
        else:
            allowed |= {"send"}.intersection(hook.manifest.uses)
            helps = "; `uses` in its manifest says what the gateway does for it"
    if verb in VERBS and VERBS[verb].authors in allowed:
        return ""
    return f"{who} may not ask for `{verb}`: that is for a person, at a terminal of their own{helps}"

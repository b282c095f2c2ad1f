"""What the control socket answers to whom: all to the person at a terminal, less to what the gateway itself started.

A process is known by those that it comes from. Below the daemon are the workers and programs of hooks, the commands of
the agent, and the servers of tools; whatever detaches itself from one of these is adopted on the way up, at last by the
daemon (`own_process.py`), and so is never taken for the person.
"""

import os
import socket
from collections.abc import Mapping
from functools import partial

from gateway.control.callers import find_ancestors, find_user
from gateway.control.server import Judge, JudgeCaller
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.sources import HookVersion
from gateway.records.activity import HOOK_PLACE, Caller

FOR_EVERYBODY = frozenset({"status"})
# What a hook that was placed by hand may ask. All else approves, answers or speaks for a person, lets people in, makes
# keys, switches hooks, stops or restarts, or changes rights; what is not in this list is refused.
FOR_PLACED_HOOKS = FOR_EVERYBODY | {
    *("platform.list", "chat.send", "events.tail", "events.replay", "pairing.list"),
    *("hooks.list", "hooks.info", "hooks.reload", "hooks.reset", "hooks.test", "hooks.fire"),
    *("hooks.dead_letters", "hooks.dead_retry", "hooks.dead_prune"),
    *("sessions.list", "sessions.show", "sessions.search", "sessions.export", "sessions.stop", "sessions.delete"),
    *("sessions.rebuild", "sessions.statistics"),
}
# What `uses` gives on the socket too, to those that have nothing else there.
BY_USES: Mapping[str, str] = {"send": "chat.send"}


def build_caller_check(hooks: FolderHooks) -> JudgeCaller:
    return partial(find_caller, hooks, os.getpid())


def find_caller(hooks: FolderHooks, daemon: int, connection: socket.socket) -> tuple[Caller, Judge]:
    """Who it is, and what tells why a verb is refused to them ("": it is not). CallerEnded: nobody can say.

    Whoever reaches the socket has the owner's role; what a hook may ask with it is in the lists above.
    """
    ancestors = find_ancestors(connection)
    if daemon not in ancestors[1:]:
        return Caller(find_user(connection), "terminal", "owner"), refuse_nothing
    hook = hooks.find_by_process(ancestors[: ancestors.index(daemon)])
    return Caller(describe_caller(hook), HOOK_PLACE, "owner"), partial(refuse_verb, hook)


def describe_caller(hook: HookVersion | None) -> str:
    return "what a tool has started" if hook is None or hook.manifest is None else f"the hook {hook.called}"


def refuse_nothing(_verb: str) -> str:
    return ""


def refuse_verb(hook: HookVersion | None, verb: str) -> str:
    """Why a process of this hook, or of a tool (None), may not ask that."""
    allowed, who, helps = FOR_EVERYBODY, describe_caller(hook), ""
    if hook is not None and hook.manifest is not None:
        if hook.source.is_placed and hook.reach is None:
            allowed = FOR_PLACED_HOOKS
        else:
            allowed = FOR_EVERYBODY | {BY_USES[right] for right in hook.manifest.uses if right in BY_USES}
            helps = "; `uses` in its manifest says what the gateway does for it"
    if verb in allowed:
        return ""
    return f"{who} may not ask for `{verb}`: that is for a person, at a terminal of their own{helps}"

"""What the control socket answers to whom: all to the person at a terminal, less to what the gateway itself started.

A process is known by those that it comes from. Below the daemon are the workers and programs of hooks, the commands of
the agent, and the servers of tools; whatever detaches itself from one of these is adopted on the way up, at last by the
daemon (`own_process.py`), and so is never taken for the person.
"""

import os
import socket
from collections.abc import Mapping
from functools import partial

from gateway.control_socket.callers import find_ancestors
from gateway.control_socket.server import Judge, JudgeCaller
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.sources import HookVersion

FOR_EVERYBODY = frozenset({"status"})
# What a hook that was placed by hand may ask. All else approves, answers or speaks for a person, lets people in, makes
# keys, switches hooks, or changes rights; what is not in this list is refused.
FOR_PLACED_HOOKS = FOR_EVERYBODY | {
    *("stop", "platform.list", "platform.steer", "chat.send", "events.tail", "events.replay", "pairing.list"),
    *("hooks.list", "hooks.info", "hooks.reload", "hooks.reset", "hooks.test", "hooks.fire"),
    *("hooks.dead_letters", "hooks.dead_retry", "hooks.dead_prune"),
    *("sessions.list", "sessions.show", "sessions.search", "sessions.export", "sessions.delete"),
    *("sessions.rebuild", "sessions.statistics"),
}
# What `uses` gives on the socket too, to those that have nothing else there.
BY_USES: Mapping[str, str] = {"send": "chat.send"}


def build_caller_check(hooks: FolderHooks) -> JudgeCaller:
    return CallerRules(hooks).judge


class CallerRules:
    """Says of each connection what it may ask."""

    def __init__(self, hooks: FolderHooks) -> None:
        self._hooks = hooks
        self._daemon = os.getpid()

    def judge(self, connection: socket.socket) -> Judge:
        """What tells why a verb is refused to this caller ("": it is not). CallerEnded: nobody can say who it is."""
        ancestors = find_ancestors(connection)
        if self._daemon not in ancestors[1:]:
            return refuse_nothing
        below = ancestors[: ancestors.index(self._daemon)]
        return partial(refuse_verb, self._hooks.find_by_process(below))


def refuse_nothing(_verb: str) -> str:
    return ""


def refuse_verb(hook: HookVersion | None, verb: str) -> str:
    """Why a process of this hook, or of a tool (None), may not ask that."""
    allowed, who, helps = FOR_EVERYBODY, "what a tool has started", ""
    if hook is not None and hook.manifest is not None:
        who = f"the hook {hook.called}"
        if hook.source.is_placed and hook.reach is None:
            allowed = FOR_PLACED_HOOKS
        else:
            allowed = FOR_EVERYBODY | {BY_USES[right] for right in hook.manifest.uses if right in BY_USES}
            helps = "; `uses` in its manifest says what the gateway does for it"
    if verb in allowed:
        return ""
    return f"{who} may not ask for `{verb}`: that is for a person, at a terminal of their own{helps}"

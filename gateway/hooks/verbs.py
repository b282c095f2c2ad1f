"""The verbs of hooks."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, get_args

import msgspec

from gateway.hooks.wires.wire import FailureKind
from gateway.verbs import NameParams, Shown, Verb, show

OUTCOMES = frozenset({"ok", "changed", "end", "deny", "retry", "ask", *get_args(FailureKind)})
HOOK_SHOWN: Mapping[str, Shown] = {
    **show("name", "label", "version", "origin", "path", "state", "wire", "events", "intercepts", "order", "on_error"),
    **show("delivery", "schedule", "hermes", "digest", "loaded_at", "restarts", "last_fired", "calls", "failures"),
    **show("skipped", "queued", "owed", "behind", "dropped", "dead", "p50", "p95", "breaker", "breaker_opens_in"),
    **show("pid", "memory", "reads", "writes", "net", "unheld", "webhook"),
    "last_error": show("at", "event"),
    "traces": {**show("at", "event", "seconds"), "outcome": OUTCOMES},
}


class HookListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The range of hooks to list: at most `limit` (-1: all) from `first` on, by name, or those with trouble first.

    `text` is part of their name, of the names of their events or, for admins, of their description.
    """

    limit: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1
    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    by: Literal["name", "worst"] = "name"
    text: str = ""


class ListedHooksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook of this name, or all hooks without one."""

    name: str = ""


class HookLogParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hook of this name, and the number of its last lines of output."""

    name: str
    lines: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class TrialParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, and its trial: with this event or all that it subscribes to, and with these fields or samples."""

    name: str
    event: str = ""
    payload: dict[str, Any] | None = None


class FireParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, and the event to deliver to it, with these fields or with samples."""

    name: str
    event: str
    payload: dict[str, Any] | None = None


class LetterParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, and the number of one of its dead letters; without a number, all of them are meant."""

    name: str
    id: int | None = None

    @property
    def number(self) -> int | str:
        return "" if self.id is None else self.id


class ReplayParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A hook, and the past events to deliver again: of these names, or of all that it subscribes to, since a time."""

    name: str
    names: tuple[str, ...] | None = None
    since: float | None = None

    @property
    def patterns(self) -> str:
        return " ".join(self.names or ())


_placed = partial(Verb, authors="placed")

_LISTED = {**show("count", "calls", "failures"), "hooks": HOOK_SHOWN}
_LETTERS = {"letters": show("number", "hook", "event", "key", "at", "attempts")}

VERBS = (
    _placed("hooks.list", "List the hooks.", HookListParams, "operator", shown=_LISTED, page="shared"),
    _placed(
        "hooks.info",
        "Show a hook: events, rights, state, last error.",
        NameParams,
        "operator",
        shown=HOOK_SHOWN,
        page="look",
    ),
    Verb("hooks.logs", "Show the last lines that a hook printed.", HookLogParams, "admin", page="look"),
    Verb("hooks.enable", "Switch a hook on.", NameParams, "admin", on="{name}", page=("name",)),
    Verb("hooks.disable", "Switch a hook off.", NameParams, "admin", on="{name}", page=("name",)),
    _placed("hooks.reload", "Restart a hook, or all hooks.", ListedHooksParams, "admin", on="{name}", page=("name",)),
    _placed("hooks.reset", "Close the circuit breaker of a hook.", NameParams, "admin", on="{name}", page=("name",)),
    Verb("hooks.trust", "Let a hook run as it is now.", NameParams, "admin", on="{name}"),
    Verb("hooks.forget", "Stop denying calls for a missing guard.", NameParams, "admin", on="{name}"),
    _placed("hooks.test", "Test a hook without lasting effects.", TrialParams, "admin", on="{name} {event}"),
    _placed(
        "hooks.fire", "Notify a hook of an event.", FireParams, "admin", on="{name} {event}", page=("name", "event")
    ),
    _placed("hooks.dead_letters", "List dead letters.", ListedHooksParams, "operator", shown=_LETTERS, page="look"),
    _placed(
        "hooks.dead_retry",
        "Retry dead letters.",
        LetterParams,
        "operator",
        shown=show("count"),
        on="{name} {number}",
        page=("name", "id"),
    ),
    _placed(
        "hooks.dead_prune", "Remove dead letters.", LetterParams, "admin", on="{name} {number}", page=("name", "id")
    ),
    _placed(
        "events.replay",
        "Send a hook its past events again.",
        ReplayParams,
        "admin",
        on="{name} {patterns}",
        lasts=True,
        page=("name", "names", "since"),
        raw=True,
    ),
)

"""Who may ask for which verb, and what of its answer is shown to an operator: the one table of it.

Whoever asks has a role (`gateway.records.activity.CALLER`), and a verb has the lowest that may ask. Admins and owners
see an answer as it is. To operators only what the table names is shown, so that whatever people and models have said,
what tools were given and what they gave stays out of it, and so does what somebody adds to an answer tomorrow. A verb
that is not in the table is the owner's.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from gateway.control.server import Notify, Verb
from gateway.errors import AccessError, GatewayError, RoleRefused
from gateway.events.catalogue import get_event_spec
from gateway.hooks.wires.wire import FailureKind
from gateway.logs.lines import CONTEXT_KEYS
from gateway.records.activity import CALLER, OWNER, Activity
from gateway.records.records import ActivityRecord
from gateway.roles import Role, is_admin, rank_of

LONGEST_SHOWN = 200  # of what is a name, a number or a state, nothing is longer

Shown: TypeAlias = "bool | Literal['heading'] | frozenset[str] | Mapping[str, Shown] | Callable[[Any], Any]"
"""What is shown of a value, and of each in a list of them.

True: a number, a short text in one line. Texts: these alone. `heading`: of a text what stands before its first colon.
Names: of an object what stands under these, `*` being any. A function: what it makes of it. False: nothing.
"""


class VerbRight(NamedTuple):
    """The lowest role that may ask, and what of the answer is shown to an operator."""

    role: Role
    shown: Shown = False


def _name(*names: str) -> dict[str, Shown]:
    return dict.fromkeys(names, True)


_OUTCOMES = frozenset({"ok", "changed", "end", "deny", "retry", "ask", *get_args(FailureKind)})
_PLATFORM = _name("name", "state", "up", "last_event", "last_send", "last_probe", "unreadable")
_HOOK: dict[str, Shown] = {
    **_name("name", "label", "version", "origin", "path", "state", "wire", "events", "intercepts", "order", "on_error"),
    **_name("delivery", "schedule", "hermes", "digest", "loaded_at", "restarts", "last_fired", "calls", "failures"),
    **_name(
        "skipped", "queued", "owed", "behind", "dropped", "dead", "p50", "p95", "breaker", "breaker_opens_in", "pid"
    ),
    **_name("memory", "reads", "writes", "net", "unheld", "webhook"),
    "last_error": _name("at", "event"),
    "traces": {**_name("at", "event", "seconds"), "outcome": _OUTCOMES},
}
_TOTALS = _name("name", "sessions", "turns", "failed", "input_tokens", "output_tokens", "cost")
_STATUS: dict[str, Shown] = {
    **_name("state", "version", "pid", "since", "home", "socket", "model", "memory_kb", "intake"),
    **_name("unattended", "configuration"),
    "hooks": {"*": True},
    "behind": {"*": True},
    "nodes": {**_name("name", "since", "roles", "works", "alone"), "holds": {"*": True}},
    "platforms": {"*": _PLATFORM},
    "platforms_off": {"*": True},
    "turns": _name("running", "waiting"),
    "backlog": {"sessions": True, "replies": {"*": True}},
    "search": _name("progress"),
    "journal": _name("ok", "records", "size", "progress", "commits", "commit_seconds"),
    "web": _name("url", "trouble"),
    "calls": {"*": True},
    "owners": _name("platform", "user_id", "why"),
    "parts": _name("name", "state", "since", "restarts"),
    "webhooks": _name("name", "url", "origin", "verify", "taken", "known", "refused", "refused_at"),
    "attention": "heading",
}
# Neither `id` nor `cause`: the names that a model gave are in them.
_EVENT: dict[str, Shown] = {
    **_name("time", "resumed", "platform", "account", "platforms", "user_id", "chat_id", "thread_id", "chat_type"),
    **_name(
        "message_id",
        "message_ids",
        "role",
        "scope",
        "session_id",
        "session_key",
        "new_session_id",
        "old_session_id",
        "turn_id",
    ),
    **_name("agent", "hook", "iteration", "hop", "index", "tokens", "duration", "completed", "interrupted", "attempts"),
    **_name("in_place", "compression_count", "sent_at", "due", "late_by", "webhook"),
    "usage": _name("input_tokens", "output_tokens", "calls", "cost"),
    "person": True,
}
_USED = _name(
    *("name", "tokens", "input_tokens", "output_tokens", "cached_tokens", "cache_written_tokens", "reasoning_tokens"),
    *("calls", "cost", "unpriced", "estimated"),
)
_USAGE: dict[str, Shown] = {
    **_name("by", "since", "until", "counted_since", "prices_of"),
    "rows": _USED,
    "total": _USED,
    "budgets": _name("budget", "window", "period", "unit", "used", "limit", "held"),
}


def cut_event(told: Any) -> Any:
    """An event of `events.tail`, as an operator sees it: of one that a hook made up itself, that it happened."""
    fields = _EVENT if get_event_spec(told["event"]) else _name("time")
    return cut_answer(told, {**_name("event", "lost"), "fields": fields})


_SESSION = _name(
    *("session_id", "session_key", "platform", "user_id", "began", "last_active", "is_current", "turns", "entries")
)
_LOG_LINE: dict[str, Shown] = {**_name("time", "level", "logger"), "context": _name(*CONTEXT_KEYS)}
_LETTER = _name("number", "hook", "event", "key", "at", "attempts")

VERB_RIGHTS: Mapping[str, VerbRight] = MappingProxyType(
    {
        "status": VerbRight("operator", _STATUS),
        "platform.list": VerbRight("operator", {"platforms": _PLATFORM, "off": {"*": True}}),
        "platform.probe": VerbRight("operator", _name("name", "seconds")),
        "platform.steer": VerbRight("operator", _name("did")),
        "hooks.list": VerbRight("operator", {**_name("count", "calls", "failures"), "hooks": _HOOK}),
        "hooks.info": VerbRight("operator", _HOOK),
        "hooks.dead_letters": VerbRight("operator", {"letters": _LETTER}),
        "hooks.dead_retry": VerbRight("operator", _name("count")),
        "events.tail": VerbRight("operator", cut_event),
        "usage": VerbRight("operator", _USAGE),
        "logs.read": VerbRight("operator", {**_name("next", "gap"), "lines": _LOG_LINE}),
        "sessions.list": VerbRight("operator", {"sessions": _SESSION, "next": True}),
        "sessions.statistics": VerbRight("operator", {"total": _TOTALS, "platforms": _TOTALS, "days": _TOTALS}),
        **dict.fromkeys(("sessions.show", "sessions.search", "sessions.export", "sessions.delete"), VerbRight("admin")),
        **dict.fromkeys(("sessions.stop", "sessions.rebuild", "config.show"), VerbRight("admin")),
        **dict.fromkeys(("hooks.enable", "hooks.disable", "hooks.reload", "hooks.reset"), VerbRight("admin")),
        "hooks.logs": VerbRight("admin"),
        **dict.fromkeys(("hooks.test", "hooks.fire", "hooks.dead_prune"), VerbRight("admin")),
        **dict.fromkeys(("hooks.trust", "hooks.forget"), VerbRight("admin")),
        **dict.fromkeys(("pairing.list", "pairing.approve", "pairing.revoke"), VerbRight("admin")),
        **dict.fromkeys(("pairing.invite", "pairing.uninvite"), VerbRight("admin")),
        **dict.fromkeys(
            ("approvals.list", "approvals.answer", "questions.answer", "activity.list"), VerbRight("admin")
        ),
        **dict.fromkeys(("events.replay", "chat.send", "reload", "restart", "stop"), VerbRight("admin")),
        **dict.fromkeys(("people.list", "people.show", "people.export", "people.forget"), VerbRight("admin")),
        **dict.fromkeys(("keys.create", "keys.list", "keys.revoke"), VerbRight("admin")),
        **dict.fromkeys(("web.open", "web.end", "chat.say", "chat.show", "chat.commands"), VerbRight("owner")),
    }
)
UNKNOWN = VerbRight("owner")


def restrict_verb(name: str, params: Any, answer: Callable[[Any, Notify], Awaitable[Any]], activity: Activity) -> Verb:
    """The verb, as it answers whoever asks: it refuses those whose role is too low, and tells operators what they see.

    Raises, when it is asked:
        RoleRefused: the caller's role is too low; that is recorded.
    """
    right = VERB_RIGHTS.get(name, UNKNOWN)

    async def answer_by_role(given: Any, notify: Notify) -> Any:
        role = CALLER.get(OWNER).role
        if rank_of(role) < rank_of(right.role):
            await activity.write(ActivityRecord(what=name, outcome="refused"))
            raise RoleRefused(f"`{name}` is for a person with the role {right.role}; yours is {role}")
        if is_admin(role):
            return await answer(given, notify)

        async def tell(kind: str, told: Any) -> None:
            await notify(kind, cut_answer(told, right.shown))

        try:
            return cut_answer(await answer(given, tell), right.shown)
        except GatewayError:  # its words may be those of a hook, a tool or a person
            raise AccessError(f"`{name}` failed; an admin can see why") from None

    return Verb(params, answer_by_role, right.role)


def cut_answer(said: Any, shown: Shown) -> Any:
    """What is shown of it; None where that is nothing."""
    return shown(said) if callable(shown) else _cut(msgspec.to_builtins(said, enc_hook=str), shown)


def _cut(said: Any, shown: Shown) -> Any:
    if isinstance(said, list | tuple):
        return [cut for one in said if (cut := _cut(one, shown)) is not None]
    if isinstance(shown, Mapping):
        return _cut_object(said, shown) if isinstance(said, dict) else None
    if isinstance(said, bool | int | float):
        return said if shown is True else None
    if not isinstance(said, str) or not shown:
        return None
    if shown == "heading":
        return _cut(said.partition(": ")[0], True)
    if isinstance(shown, frozenset):
        return said if said in shown else None
    return said if len(said) <= LONGEST_SHOWN and said.isprintable() else None


def _cut_object(said: dict[Any, Any], shown: Mapping[str, Shown]) -> dict[str, Any]:
    """Keys are shown as values are: what is no name is none of ours."""
    named = {key: shown.get(key, shown.get("*", False)) for key in said if _cut(key, True) is not None}
    return {key: cut for key, part in named.items() if part and (cut := _cut(said[key], part)) is not None}

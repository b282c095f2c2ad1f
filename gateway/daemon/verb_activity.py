"""Which verbs of the control socket stand in the record of activity, and what each was done on.

Those that change what the gateway does, or for whom; and those by which somebody looks into a conversation.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gateway.records.activity import CALLER, HOOK_PLACE, OWNER, Activity
from gateway.records.records import ActivityRecord

log = logging.getLogger(__name__)

DescribeObject: TypeAlias = Callable[[Any, Any], str]
"""What a verb was done on, from its parameters and its answer."""

OFTEN = frozenset({"chat.send"})  # hooks do it all day, which is no deed of those who steer
LOOKS = frozenset({"sessions.show", "sessions.search", "sessions.export", "people.show", "events.tail"})


def _name(params: Any, _said: Any) -> str:
    return str(params.name)


def _session(params: Any, _said: Any) -> str:
    return str(params.session)


def _person(_params: Any, said: Any) -> str:
    return f"{said['platform']}:{said['user_id']} {said['role']}"


def _letter(params: Any, _said: Any) -> str:
    return params.name if params.id is None else f"{params.name} {params.id}"


def _approval(params: Any, _said: Any) -> str:
    lasts = "" if params.lasts == "once" else f"{params.lasts} "
    return f"{'allow' if params.allowed else 'deny'} {lasts}{params.id}"


def _nothing(_params: Any, _said: Any) -> str:
    return ""


def _key(params: Any, _said: Any) -> str:
    return f"{params.name} as {params.role}" + (f" for {params.agent}" if params.agent else "")


RECORDED_VERBS: Mapping[str, DescribeObject] = {
    **dict.fromkeys(("hooks.enable", "hooks.disable", "hooks.reload", "hooks.reset"), _name),
    **dict.fromkeys(("hooks.trust", "hooks.forget"), _name),
    **dict.fromkeys(("hooks.dead_retry", "hooks.dead_prune"), _letter),
    **dict.fromkeys(("pairing.approve", "pairing.revoke"), _person),
    **dict.fromkeys(("pairing.invite", "pairing.uninvite"), lambda _params, said: f"#{said['number']} {said['role']}"),
    "platform.steer": lambda params, _said: f"{params.verb} {params.name}",
    **dict.fromkeys(("hooks.test", "hooks.fire"), lambda params, _said: f"{params.name} {params.event}".rstrip()),
    "events.tail": lambda params, _said: " ".join(params.names or ()),
    "events.replay": lambda params, _said: " ".join((params.name, *(params.names or ()))),
    "chat.send": lambda params, _said: str(params.to),
    **dict.fromkeys(("sessions.show", "sessions.export", "sessions.stop", "sessions.delete"), _session),
    "sessions.search": _nothing,
    "approvals.answer": _approval,
    "questions.answer": lambda params, _said: str(params.id),
    "keys.create": _key,
    **dict.fromkeys(("people.show", "people.export"), lambda params, _said: params.person),
    "people.forget": lambda _params, said: said["pseudonym"],
    "keys.revoke": _name,
    **dict.fromkeys(("web.open", "web.end"), _nothing),
}


async def write_verb(activity: Activity, verb: str, params: Any, said: Any) -> None:
    """It was answered."""
    if (describe := RECORDED_VERBS.get(verb)) is None:
        return
    if verb in OFTEN and CALLER.get(OWNER).place == HOOK_PLACE:
        return
    on, is_look = describe(params, said), verb in LOOKS
    if not is_look:
        log.info("by command: %s", f"{verb} {on}".rstrip())
    await activity.write(ActivityRecord(what=verb, on=on), is_look=is_look or verb in OFTEN)


async def write_refusal(activity: Activity, verb: str) -> None:
    await activity.write(ActivityRecord(what=verb, outcome="refused"))

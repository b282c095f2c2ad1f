"""What an event comes from: its id, and the event during whose handling it came about.

A hook may cause events, for which hooks are called again, also by giving the agent something to do: its message and the
replies to it carry the cause on. Such a chain comes to its end at a depth of eight.

What a hook does because of an event it does with the rights of whoever the event is about, along the whole chain: each
event says whose they are in its field `role`, and one of a hook's own making in `rights`, which the gateway writes.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from time import time, time_ns
from types import MappingProxyType
from typing import Any, TypeAlias

from gateway.events.catalogue import get_event_spec
from gateway.roles import ROLES, Role

Cause: TypeAlias = tuple[str, int]  # the id of the event that is being handled, and its depth: how many came before it

MAX_DEPTH = 8

# Unique over all runs of the program, and in order: the clock's nanoseconds at its start, and one more for each event.
_IDS: list[Iterator[str]] = [map(hex, count(time_ns()))]


def _restart_ids() -> None:
    """A forked process would count on from the same number as its parent."""
    _IDS[0] = map(hex, count(time_ns()))


os.register_at_fork(after_in_child=_restart_ids)

CAUSE: ContextVar[Cause | None] = ContextVar("gateway_cause", default=None)

# With whose rights a hook acts that asks the gateway for something now; of nobody, where nobody is known.
RIGHTS: ContextVar[Role] = ContextVar("gateway_rights", default="guest")

# Of which agent, in which chat and for whom a hook acts that asks for something now; nothing where that is not known.
PLACE: ContextVar[Mapping[str, str]] = ContextVar("gateway_place", default=MappingProxyType({}))
PLACE_FIELDS = ("agent", "platform", "account", "chat_id", "user_id", "person")

OWNER = "terminal:owner"  # whoever starts the gateway, makes its timetables, and sits at its terminal
OWNERS_EVENTS = ("gateway:", "schedule:")  # a start and a timetable are the owner's own doing, and nobody else's


@contextmanager
def use_cause(cause: Cause | None) -> Iterator[None]:
    """What happens in this block was caused by that event; for those who act for a hook that runs elsewhere."""
    token = CAUSE.set(cause)
    try:
        yield
    finally:
        CAUSE.reset(token)


@contextmanager
def use_rights(role: Role, place: Mapping[str, str]) -> Iterator[None]:
    """What is asked for in this block is done with the rights of this role, by the agent of this place."""
    rights, before = RIGHTS.set(role), PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(before)
        RIGHTS.reset(rights)


def place_of_event(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(fields.get(name) or "") for name in PLACE_FIELDS}


def find_person(hook: str) -> str:
    """Who is charged with what a hook does now, as `platform:id`: whoever its event is about, else the hook itself.

    A start and a timetable are the owner's.
    """
    place = PLACE.get()
    if person := place.get("person"):
        return person
    if user := place.get("user_id"):
        return f"{place.get('platform', '')}:{user}"
    return OWNER if RIGHTS.get() == "owner" else f"hook:{hook}"


def role_of_event(name: str, fields: Mapping[str, Any]) -> Role:
    """Returns with whose rights a hook acts because of this event."""
    said = fields.get("role" if get_event_spec(name) else "rights")
    role = next((role for role in ROLES if role == said), None)
    return role or ("owner" if name.startswith(OWNERS_EVENTS) else "guest")


def stamp_event(fields: dict[str, Any], cause: Cause | None, at: float | None = None) -> None:
    """Give an event the fields that every event has, unless it has them."""
    if "id" not in fields:
        fields["id"] = next(_IDS[0])
    if "time" not in fields:
        fields["time"] = time() if at is None else at
    if "cause" not in fields:
        fields["cause"] = cause[0] if cause else None
    if "resumed" not in fields:
        fields["resumed"] = False

"""The cause of an event: the event that a hook was handling when the hook fired the new event.

A hook may cause further events, also by giving the agent a task: the message with the task, and the replies, carry the
cause on. The chain ends at a depth of eight.

A hook acts with the rights of the person whom its event is about, along the whole chain of events. The field `role` of
an event names these rights. In an event that a hook fires, the field `rights` names them, and only the gateway writes
this field.
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
from gateway.messages.roles import ROLES, Role

Cause: TypeAlias = tuple[str, int]  # the id of the handled event, and its depth: the number of events before it

MAX_DEPTH = 8

# Unique and ordered over all runs: the clock's nanoseconds at the start, plus one for each event.
_IDS: list[Iterator[str]] = [map(hex, count(time_ns()))]


def _restart_ids() -> None:
    """Start a new series of ids after a fork; otherwise parent and child would use the same ids."""
    _IDS[0] = map(hex, count(time_ns()))


os.register_at_fork(after_in_child=_restart_ids)

CAUSE: ContextVar[Cause | None] = ContextVar("gateway_cause", default=None)

# The rights of the hook that asks the gateway for something now; the rights of a guest if unknown.
RIGHTS: ContextVar[Role] = ContextVar("gateway_rights", default="guest")

# The agent, the chat and the person for whom a hook acts now; empty if unknown.
PLACE: ContextVar[Mapping[str, str]] = ContextVar("gateway_place", default=MappingProxyType({}))
PLACE_FIELDS = ("agent", "platform", "account", "chat_id", "user_id", "person")

OWNER = "terminal:owner"  # the person who starts the gateway, makes its timetables, and sits at its terminal
OWNERS_EVENTS = ("gateway:", "schedule:")  # a start and a timetable are acts of the owner


@contextmanager
def use_cause(cause: Cause | None) -> Iterator[None]:
    """Set the cause of all events within the context, on behalf of a hook in another process."""
    token = CAUSE.set(cause)
    try:
        yield
    finally:
        CAUSE.reset(token)


@contextmanager
def use_rights(role: Role, place: Mapping[str, str]) -> Iterator[None]:
    """Set the rights and the place of all requests within the context."""
    rights, before = RIGHTS.set(role), PLACE.set(place)
    try:
        yield
    finally:
        PLACE.reset(before)
        RIGHTS.reset(rights)


def place_of_event(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(fields.get(name) or "") for name in PLACE_FIELDS}


def find_person(hook: str) -> str:
    """Return the person who pays for a hook's act, as `platform:id`; without a person, return the hook itself.

    A start and a timetable belong to the owner.
    """
    place = PLACE.get()
    if person := place.get("person"):
        return person
    if user := place.get("user_id"):
        return f"{place.get('platform', '')}:{user}"
    return OWNER if RIGHTS.get() == "owner" else f"hook:{hook}"


def role_of_event(name: str, fields: Mapping[str, Any]) -> Role:
    """Return the role whose rights a hook has at this event."""
    said: Role | None = fields.get("role" if get_event_spec(name) else "rights")
    if said in ROLES:
        return said
    return "owner" if name.startswith(OWNERS_EVENTS) else "guest"


def stamp_event(fields: dict[str, Any], cause: Cause | None, at: float | None = None) -> None:
    """Set the fields that every event has, except fields that are set already."""
    if "id" not in fields:
        fields["id"] = next(_IDS[0])
    if "time" not in fields:
        fields["time"] = time() if at is None else at
    if "cause" not in fields:
        fields["cause"] = cause[0] if cause else None
    if "resumed" not in fields:
        fields["resumed"] = False

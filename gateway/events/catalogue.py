"""Every event that the gateway tells: its fields, which of them a hook may change, which outcomes it honours.

This table is the one source for write protection, for what a remote hook may change, for the JSON schemas of
`events list --json` and for docs/events.md. Names outside of it are free: all fields writable, all outcomes honoured.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from gateway.events.fields import COMMON_FIELDS, TURN_FIELDS, EventField, EventSpec, build_schema
from gateway.events.gateway_events import GATEWAY_EVENTS
from gateway.events.samples import build_sample
from gateway.events.turn_events import TURN_EVENTS

__all__ = [
    "COMMON_FIELDS",
    "EVENT_SPECS",
    "TURN_FIELDS",
    "EventField",
    "EventSpec",
    "build_schema",
    "get_event_spec",
    "list_matching_events",
    "make_sample",
    "suggest_event",
]

EVENT_SPECS: Mapping[str, EventSpec] = MappingProxyType(
    {point.name: point for point in (*GATEWAY_EVENTS, *TURN_EVENTS)}
)

_EVENT_FAMILIES: Mapping[str, EventSpec] = MappingProxyType(
    {name.removesuffix(":*"): point for name, point in EVENT_SPECS.items() if name.endswith(":*")}
)

# Names that hooks in the wild subscribe to and that never fire in Hermes either, and what they are called here.
_RENAMED_EVENTS: Mapping[str, str] = MappingProxyType(
    {
        "before_message": "message:received",
        "command:before": "command:*",
        "agent:interim": "agent:step",
        "agent:pre_process": "agent:start",
        "gateway:message_received": "message:received",
        "message:pre_route": "message:received",
        "session:finalize": "session:end",
    }
)


def get_event_spec(name: str) -> EventSpec | None:
    """What the catalogue says of an event; the members of a family share its entry."""
    domain, colon, _ = name.partition(":")
    return EVENT_SPECS.get(name) or (_EVENT_FAMILIES.get(domain) if colon else None)


def make_sample(name: str) -> dict[str, Any]:
    """Believable fields of this event; none for a name that is not in the catalogue."""
    known = get_event_spec(name)
    return build_sample(known, name) if known else {}


def list_matching_events(subscriptions: Iterable[str]) -> list[str]:
    """The events of which these subscriptions would hear, each once; of a family, one: `command:new`."""
    found: dict[str, None] = {}
    for pattern in subscriptions:
        matching = (name for name in map(_example_name_of, EVENT_SPECS) if fnmatchcase(name, pattern))
        heard = matching if "*" in pattern else [pattern]
        found |= dict.fromkeys(heard)
    return list(found)


def _example_name_of(name: str) -> str:
    return {"command:*": "command:new"}.get(name, name.replace("*", "sample"))


def suggest_event(name: str) -> str | None:
    """What was probably meant by a subscription that no event of the catalogue would ever reach; None when it is fine.

    Also None when nothing comes near: the event may be one that a hook emits.
    """
    if name in _RENAMED_EVENTS:
        return _RENAMED_EVENTS[name]
    if get_event_spec(name) or any(fnmatchcase(known, name) for known in EVENT_SPECS):
        return None
    domain, _, verb = name.replace("_", ":", 1).partition(":")
    if verb and "*" not in verb:
        near = get_close_matches(f"{domain}:{verb}", EVENT_SPECS, 1, cutoff=0.7)
        return near[0] if near else None
    domains = get_close_matches(domain, {known.partition(":")[0] for known in EVENT_SPECS}, 1, cutoff=0.7)
    return f"{domains[0]}:*" if domains and f"{domains[0]}:*" != name else None

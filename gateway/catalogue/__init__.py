"""Every event that the gateway tells: its fields, which of them a hook may change, which outcomes it honours.

This table is the one source for write protection, for what a remote hook may change, for the JSON schemas of
`events list --json` and for docs/events.md. Names outside of it are free: all fields writable, all outcomes honoured.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from gateway.catalogue.fields import EVERY, TURN, Field, Point, schema
from gateway.catalogue.outside import OUTSIDE
from gateway.catalogue.samples import sample_of
from gateway.catalogue.turn import INSIDE

__all__ = ["EVERY", "POINTS", "TURN", "Field", "Point", "members", "point", "sample", "schema", "suggest"]

POINTS: Mapping[str, Point] = MappingProxyType({point.name: point for point in (*OUTSIDE, *INSIDE)})

_FAMILIES: Mapping[str, Point] = MappingProxyType(
    {name.removesuffix(":*"): point for name, point in POINTS.items() if name.endswith(":*")}
)

# Names that hooks in the wild subscribe to and that never fire in Hermes either, and what they are called here.
_MEANT: Mapping[str, str] = MappingProxyType(
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


def point(name: str) -> Point | None:
    """What the catalogue says of an event; the members of a family share its entry."""
    domain, colon, _ = name.partition(":")
    return POINTS.get(name) or (_FAMILIES.get(domain) if colon else None)


def sample(name: str) -> dict[str, Any]:
    """Believable fields of this event; none for a name that is not in the catalogue."""
    known = point(name)
    return sample_of(known, name) if known else {}


def members(subscriptions: Iterable[str]) -> list[str]:
    """The events of which these subscriptions would hear, each once; of a family, one: `command:new`."""
    found: dict[str, None] = {}
    for pattern in subscriptions:
        matching = (name for name in map(_member, POINTS) if fnmatchcase(name, pattern))
        heard = matching if "*" in pattern else [pattern]
        found |= dict.fromkeys(heard)
    return list(found)


def _member(name: str) -> str:
    return {"command:*": "command:new"}.get(name, name.replace("*", "sample"))


def suggest(name: str) -> str | None:
    """What was probably meant by a subscription that no event of the catalogue would ever reach; None when it is fine.

    Also None when nothing comes near: the event may be one that a hook emits.
    """
    if name in _MEANT:
        return _MEANT[name]
    if point(name) or any(fnmatchcase(known, name) for known in POINTS):
        return None
    domain, _, verb = name.replace("_", ":", 1).partition(":")
    if verb and "*" not in verb:
        near = get_close_matches(f"{domain}:{verb}", POINTS, 1, cutoff=0.7)
        return near[0] if near else None
    domains = get_close_matches(domain, {known.partition(":")[0] for known in POINTS}, 1, cutoff=0.7)
    return f"{domains[0]}:*" if domains and f"{domains[0]}:*" != name else None

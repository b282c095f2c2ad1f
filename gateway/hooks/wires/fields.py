"""An event's fields as JSON for another process: all of them where that can be, and never an error where it cannot.

A live object of our own process stays here. What is no plain data is sent as text, to be read; nothing that comes back
for it counts.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.events.catalogue import EVENT_SPECS, get_event_spec

NO_JSON = (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError)
LONGEST = 10_000  # characters of an object that is shown as text

_LIVE: Mapping[str, frozenset[str]] = {
    name: live for name, known in EVENT_SPECS.items() if (live := frozenset(f.name for f in known.fields if f.live))
}
_NONE: frozenset[str] = frozenset()

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "object": Mapping,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}

_encode = msgspec.json.Encoder().encode


def live_in(name: str) -> frozenset[str]:
    """The fields of this event that hold objects of our own process."""
    return _LIVE.get(name, _NONE)


def misfit(name: str, changed: Mapping[str, Any]) -> str:
    """What was put into a field of this event that cannot stand there, in words; empty when all fits."""
    known = get_event_spec(name)
    for field in known.fields if known else ():
        if field.writable and field.name in changed and not _fits(changed[field.name], field.type):
            found = type(changed[field.name]).__name__
            return f"it put {found} into the field {field.name!r} of {name}, which takes {field.type}"
    return ""


def _fits(value: Any, kind: str) -> bool:
    if kind == "any" or (kind.endswith("?") and value is None):
        return True
    kind = kind.removesuffix("?")
    if kind.endswith("[]"):
        return isinstance(value, list | tuple) and all(_fits(part, kind[:-2]) for part in value)
    return isinstance(value, _TYPES[kind])


def encoded(name: str, fields: Mapping[str, Any]) -> tuple[bytes, frozenset[str]]:
    """The fields as one JSON object, and which of them cannot be changed from there."""
    live = live_in(name)
    try:
        return _encode({field: value for field, value in fields.items() if field not in live}), live
    except NO_JSON:
        sent, odd = plain({field: value for field, value in fields.items() if field not in live})
        return _encode(sent), odd | live


def plain(fields: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields as the other side will read them, and those that had to be made into text."""
    sent, odd = {}, set()
    for name, value in fields.items():
        try:
            sent[name] = msgspec.json.decode(_encode(value))
        except NO_JSON:
            odd.add(name)
            sent[name] = _dumped(value)
    return sent, frozenset(odd)


def _dumped(value: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_shown))
    except NO_JSON:
        return f"<{type(value).__name__}>"


def _shown(value: Any) -> str:
    try:
        return str(value)[:LONGEST]
    except Exception:  # noqa: BLE001 - the `__str__` of a foreign object may do anything
        return f"<{type(value).__name__}>"

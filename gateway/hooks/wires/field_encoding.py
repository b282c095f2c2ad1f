"""The encoding of an event's fields as JSON for another process; no field makes the encoding fail.

Live objects of our own process are left out. Other data that is not plain becomes text to read; a change to such text
does not count.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.events.catalogue import EVENT_SPECS, get_event_spec

JSON_ERRORS = (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError)
MAX_TEXT = 10_000  # characters of an object that becomes text

# The fields of each event that hold objects of our own process.
_LIVE_FIELDS: Mapping[str, frozenset[str]] = {
    name: live for name, known in EVENT_SPECS.items() if (live := frozenset(f.name for f in known.fields if f.live))
}

# The fields that make up most of an event: only hooks that read them get them.
LARGE_FIELDS: Mapping[str, frozenset[str]] = {
    "agent:start": frozenset({"messages"}),
    "llm:before": frozenset({"messages", "tools"}),
}

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "object": Mapping,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}

_encode = msgspec.json.Encoder().encode
NOTHING: frozenset[str] = frozenset()


def check_changes(name: str, changed: Mapping[str, Any]) -> str:
    """Describe a change of a wrong type; "" if all types are right."""
    known = get_event_spec(name)
    for field in known.fields if known else ():
        if field.writable and field.name in changed and not _is_of_type(changed[field.name], field.type):
            found = type(changed[field.name]).__name__
            return f"it put {found} into the field {field.name!r} of {name}, which takes {field.type}"
    return ""


def _is_of_type(value: Any, kind: str) -> bool:
    if kind == "any" or (kind.endswith("?") and value is None):
        return True
    kind = kind.removesuffix("?")
    if kind.endswith("[]"):
        return isinstance(value, list | tuple) and all(_is_of_type(part, kind[:-2]) for part in value)
    return isinstance(value, _TYPES[kind])


def encode_event(
    name: str, fields: Mapping[str, Any], left_out: frozenset[str] = frozenset()
) -> tuple[bytes, frozenset[str]]:
    """Return the fields as one JSON object, without large fields in `left_out`, and the names of read-only fields."""
    live, large = _LIVE_FIELDS.get(name, NOTHING), LARGE_FIELDS.get(name)
    without = live | (left_out & large) if large else live
    is_whole = not without or without.isdisjoint(fields)
    shown = fields if is_whole else {field: value for field, value in fields.items() if field not in without}
    try:
        return _encode(shown), live
    except JSON_ERRORS:
        sent, odd = to_plain(shown)
        return _encode(sent), odd | live


def to_plain(fields: Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the fields as the other side will read them, and the names of the fields that became text."""
    sent, odd = {}, set()
    for name, value in fields.items():
        try:
            sent[name] = msgspec.json.decode(_encode(value))
        except JSON_ERRORS:
            odd.add(name)
            sent[name] = _to_json_or_text(value)
    return sent, frozenset(odd)


def _to_json_or_text(value: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_to_text))
    except JSON_ERRORS:
        return f"<{type(value).__name__}>"


def _to_text(value: Any) -> str:
    try:
        return str(value)[:MAX_TEXT]
    except Exception:  # noqa: BLE001 - the `__str__` of a foreign object may do anything
        return f"<{type(value).__name__}>"

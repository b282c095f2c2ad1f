"""The check of values against the part of JSON schema that tools use: types, required, enum, const, nested, limits.

Schemas come from foreign tool servers: unknown keywords are ignored, and left to the tool itself; patterns in
particular, since a regular expression from outside could block the loop.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
DEPTH = 32


def check_value(value: Any, schema: Any) -> None:
    """Check a value against a JSON schema. Raises ValueError, with the place, if it does not match."""
    with suppress(TypeError, AttributeError):  # a schema that is none forbids nothing
        _check(value, schema, "$", 0)


def _check(value: Any, schema: Any, place: str, depth: int) -> None:
    if not isinstance(schema, Mapping) or depth > DEPTH:
        return
    _check_kind(value, schema, place)
    _check_choices(value, schema, place, depth)
    if isinstance(value, dict):
        _check_object(value, schema, place, depth)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, schema.get("items"), f"{place}[{number}]", depth + 1)


def _check_kind(value: Any, schema: Mapping[str, Any], place: str) -> None:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    known = [TYPES[name] for name in kinds if isinstance(name, str) and name in TYPES]
    if known and len(known) == len(kinds) and not any(fits(value) for fits in known):
        raise ValueError(f"expected {' or '.join(map(str, kinds))} at {place}, got {_type_name_of(value)}")
    if isinstance(schema.get("enum"), list) and value not in schema["enum"]:
        raise ValueError(f"{value!r} at {place} is not one of {', '.join(map(repr, schema['enum']))}")
    if "const" in schema and value != schema["const"]:
        raise ValueError(f"expected {schema['const']!r} at {place}")
    if TYPES["number"](value):
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(f"{value} at {place} is outside {low}..{high}")
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        raise ValueError(f"the text at {place} is longer than {schema['maxLength']} characters")


def _check_choices(value: Any, schema: Mapping[str, Any], place: str, depth: int) -> None:
    for word in ("anyOf", "oneOf"):
        choices = schema.get(word)
        if not isinstance(choices, list) or not choices:
            continue
        faults = []
        for choice in choices:
            try:
                _check(value, choice, place, depth + 1)
            except ValueError as error:
                faults.append(str(error))
        if len(faults) == len(choices):
            raise ValueError("; or ".join(faults))


def _check_object(value: dict[str, Any], schema: Mapping[str, Any], place: str, depth: int) -> None:
    missing = [name for name in schema.get("required") or () if name not in value]
    if missing:
        raise ValueError(f"missing {', '.join(map(repr, missing))} at {place}")
    properties = schema.get("properties") or {}
    if schema.get("additionalProperties") is False and (unknown := sorted(set(value) - set(properties))):
        raise ValueError(f"unknown {', '.join(map(repr, unknown))} at {place}")
    for name, part in properties.items():
        if name in value:
            _check(value[name], part, f"{place}.{name}", depth + 1)


def _type_name_of(value: Any) -> str:
    return next((name for name, fits in TYPES.items() if fits(value)), type(value).__name__)

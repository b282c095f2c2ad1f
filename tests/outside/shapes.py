"""How things are written down as facts, a line each: JSON as the types of its fields, schemas, signatures.

A fact is a name and what is so of it. What may grow is a fact of its own (a choice, a field, a parameter), so that an
addition is a new fact and changes none.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Facts: TypeAlias = dict[str, str]

# Objects whose keys are names that people or the moment choose, by the key under which they stand.
NAMED_FREELY = frozenset({"hooks", "missing", "off", "origins", "platforms", "platforms_off", "replies"})
# What is what somebody else makes of it.
ANYTHING = frozenset({"args", "asked", "bag", "changed", "fields", "kept", "result", "schema", "settings"})
SCALARS: Mapping[type, str] = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}


def shape(*values: Any) -> Facts:
    """The types of all that is in these, by its path: `hooks[].calls`; `*` is any key."""
    found: dict[str, set[str]] = {}
    for value in values:
        for path, kind in _within(value, ""):
            found.setdefault(path, set()).add(kind)
    return {path: " | ".join(sorted(kinds)) for path, kinds in found.items()}


def _within(value: Any, at: str) -> Iterator[tuple[str, str]]:
    key = at.rpartition(".")[2]
    if key in ANYTHING:
        yield at, "anything"
        return
    if at:
        yield at, SCALARS.get(type(value), "list" if isinstance(value, list) else "object")
    if isinstance(value, list):
        for one in value:
            yield from _within(one, f"{at}[]")
    elif isinstance(value, dict):
        for name, one in value.items():
            name = "*" if key in NAMED_FREELY else name
            yield from _within(one, f"{at}.{name}" if at else name)


def flat(schema: Mapping[str, Any], at: str, within: Mapping[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """The facts of a JSON schema; `within` is the whole of it, where its definitions are."""
    whole = within or schema
    if "$ref" in schema:
        yield from flat(whole["$defs"][schema["$ref"].rpartition("/")[2]], at, whole)
        return
    default = {"default": schema["default"]} if isinstance(schema.get("default"), int | float | list) else {}
    for number, choice in enumerate(schema.get("anyOf", ())):  # the first is the one that the default is of
        yield from flat(choice if number else {**choice, **default}, f"{at} (or)" if number else at, whole)
    for choice in schema.get("enum", ()):
        yield f"{at}: {choice}", "a choice"
    if "anyOf" not in schema:
        yield at, _kind(schema)
    for name, field in schema.get("properties", {}).items():
        yield from flat(field, f"{at}.{name}", whole)
        if name in schema.get("required", ()):
            yield f"{at}.{name}, required", "yes"
    if isinstance(schema.get("items"), dict):
        yield from flat(schema["items"], f"{at}[]", whole)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from flat(schema["additionalProperties"], f"{at}.NAME", whole)


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", "a choice" if "enum" in schema else "anything")
    bounds = [f"{word} {schema[key]}" for word, key in (("from", "minimum"), ("to", "maximum")) if key in schema]
    default = [f"by default {schema['default']!r}"] if "default" in schema else []
    return ", ".join([" | ".join(kinds) if isinstance(kinds, list) else kinds, *bounds, *default])


def signature(thing: Any, at: str) -> Facts:
    """Return its kind, and its parameters if they can be known."""
    facts = {at: "class" if isinstance(thing, type) else "callable" if callable(thing) else "value"}
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return facts
    return facts | {
        f"{at}({one.name})": f"{one.kind.description}, {_given(one)}" for one in parameters if one.name != "self"
    }


def _given(one: inspect.Parameter) -> str:
    if one.default is one.empty:
        return "must be given" if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) else "any number"
    is_plain = type(one.default) in SCALARS
    return f"by default {one.default!r}" if is_plain else "may be left out"

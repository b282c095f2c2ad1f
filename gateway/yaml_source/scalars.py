"""One value of a file, read as the wanted type.

Every function here raises `ValueError(what, remedy)` if that is impossible; `what` continues the value's name.
"""

import difflib
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import inspect

from gateway.yaml_source.addresses import build_url
from gateway.yaml_source.tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, as_bool, as_float, as_int, is_null
from gateway.yaml_source.units import format_count, format_duration, format_size, parse_duration, parse_size

LIST_TYPES = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
MAPPING_TYPES = (inspect.StructType, inspect.DictType)


def format_value(value: float, unit: str | None) -> str:
    """Write a number as it would be in a file."""
    if unit == "duration":
        return format_duration(value)
    return format_size(int(value)) if unit == "size" else f"{value:g}" if isinstance(value, float) else str(value)


def describe_type(wanted: inspect.Type, unit: str | None) -> str:
    if isinstance(wanted, inspect.Metadata):
        return describe_type(wanted.type, (wanted.extra or {}).get("unit", unit))
    if unit:
        return "a duration such as 30s or 5m" if unit == "duration" else "a size such as 64kB or 2MiB"
    if isinstance(wanted, inspect.LiteralType):
        return format_choices(wanted.values)
    names: dict[type, str] = {
        inspect.StrType: "text",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.BoolType: "true or false",
        inspect.NoneType: "nothing",
    }
    if isinstance(wanted, (*MAPPING_TYPES, *LIST_TYPES)):
        return "a mapping" if isinstance(wanted, MAPPING_TYPES) else "a list"
    return names.get(type(wanted), "a value")


def format_choices(values: Iterable[Any]) -> str:
    return " or ".join(f"`{value}`" for value in sorted(map(str, values)))


def describe_node(node: YamlNode) -> str:
    match node:
        case YamlMapping():
            return "a mapping"
        case YamlSequence():
            return "a list"
        case _ if is_null(node):
            return "nothing"
        case YamlScalar(quoted=True):
            return "quoted text"
        case YamlScalar(text=text):
            return "true or false" if as_bool(text) is not None else "a number" if as_float(text) else "text"


def describe_missing(name: str, field: inspect.Field) -> str:
    described = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
    description = (described or {}).get("description", "")
    return f"add `{name}: ...`" + (f" ({description})" if description else "")


_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("ge", "at least", operator.ge),
    ("gt", "more than", operator.gt),
    ("le", "at most", operator.le),
    ("lt", "less than", operator.lt),
)


def parse_scalar(node: YamlScalar, wanted: inspect.Type, unit: str | None) -> Any:
    """Read the value; quoted text stays text, unless a unit makes it more."""
    match wanted:
        case inspect.StrType():
            return _check_text(node.text, wanted)
        case inspect.LiteralType(values=values):
            return _parse_choice(node.text, values)
        case inspect.CustomType():
            own: Any = wanted.cls
            return own.from_scalar(node)
    value = None if node.quoted and not unit else _parse_value(node.text, wanted, unit)
    if value is None and not isinstance(wanted, inspect.NoneType):
        raise ValueError(f"is {describe_node(node)}", f"{describe_type(wanted, unit)} is wanted here")
    return _check_range(value, wanted, unit)


def check_length(wanted: Any, length: int, noun: str, nouns: str) -> None:
    if wanted.min_length is not None and length < wanted.min_length:
        what = "is too short" if length else "is empty"
        raise ValueError(what, f"give at least {format_count(wanted.min_length, noun, nouns)}")
    if wanted.max_length is not None and length > wanted.max_length:
        raise ValueError("is too long", f"give at most {format_count(wanted.max_length, noun, nouns)}")


def _check_text(text: str, wanted: inspect.StrType) -> str:
    check_length(wanted, len(text), "character", "characters")
    if wanted.pattern is not None and not re.search(wanted.pattern, text):
        raise ValueError(*_explain_form(text, wanted.pattern))
    return text


def _explain_form(text: str, pattern: str) -> tuple[str, str]:
    what = "does not have the form that is wanted here"
    if "https?://" not in pattern:
        return what, f"it must match `{pattern}`"
    if url := build_url(text):
        return f"says {text} and lacks http:// or https://", f"write {url}"
    return what, "write it from its beginning: http://HOST:PORT/... or https://..."


def _parse_choice(text: str, values: tuple[Any, ...]) -> Any:
    for value in values:
        if text == str(value):
            return value
    close = difflib.get_close_matches(text[:64].lower(), [str(value) for value in values], n=1)
    remedy = f"did you mean `{close[0]}`?" if close else f"write {format_choices(values)}"
    raise ValueError("cannot have this value", remedy)


def _check_range(value: Any, wanted: inspect.Type, unit: str | None) -> Any:
    for name, words, holds in _BOUNDS:
        bound = getattr(wanted, name, None)
        if bound is not None and not holds(value, bound):
            raise ValueError("is out of range", f"write {words} {format_value(bound, unit)}")
    return value


def _parse_value(text: str, wanted: inspect.Type, unit: str | None) -> Any:
    if unit == "duration":
        return parse_duration(text)
    if unit == "size":
        return parse_size(text)
    match wanted:
        case inspect.BoolType():
            return as_bool(text)
        case inspect.IntType():
            return as_int(text)
        case inspect.FloatType():
            return as_float(text)
    return None

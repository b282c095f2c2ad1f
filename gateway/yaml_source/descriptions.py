"""How a wanted type and a found node are called in a finding."""

from collections.abc import Iterable
from typing import Any

from msgspec import inspect

from gateway.yaml_source.tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, as_bool, as_float, is_null
from gateway.yaml_source.units import format_duration, format_size

LIST_TYPES = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
MAPPING_TYPES = (inspect.StructType, inspect.DictType)


def format_value(value: float, unit: str | None) -> str:
    """A number the way it is written in a file."""
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

"""How a wanted type and a found node are called in a finding."""

from collections.abc import Iterable
from typing import Any

from msgspec import inspect

from gateway.located.tree import Mapping, Node, Scalar, Sequence, as_number, as_truth, is_nothing
from gateway.located.units import duration_text, size_text

LISTS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
MAPPINGS = (inspect.StructType, inspect.DictType)


def unit_text(value: float, unit: str | None) -> str:
    """A number the way it is written in a file."""
    if unit == "duration":
        return duration_text(value)
    return size_text(int(value)) if unit == "size" else f"{value:g}" if isinstance(value, float) else str(value)


def wanted_words(wanted: inspect.Type, unit: str | None) -> str:
    if isinstance(wanted, inspect.Metadata):
        return wanted_words(wanted.type, (wanted.extra or {}).get("unit", unit))
    if unit:
        return "a duration such as 30s or 5m" if unit == "duration" else "a size such as 64kB or 2MiB"
    if isinstance(wanted, inspect.LiteralType):
        return listed(wanted.values)
    names: dict[type, str] = {
        inspect.StrType: "text",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.BoolType: "true or false",
        inspect.NoneType: "nothing",
    }
    if isinstance(wanted, (*MAPPINGS, *LISTS)):
        return "a mapping" if isinstance(wanted, MAPPINGS) else "a list"
    return names.get(type(wanted), "a value")


def listed(values: Iterable[Any]) -> str:
    return " or ".join(f"`{value}`" for value in sorted(map(str, values)))


def found_words(node: Node) -> str:
    match node:
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case _ if is_nothing(node):
            return "nothing"
        case Scalar(quoted=True):
            return "quoted text"
        case Scalar(text=text):
            return "true or false" if as_truth(text) is not None else "a number" if as_number(text) else "text"


def missing_words(name: str, field: inspect.Field) -> str:
    described = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
    description = (described or {}).get("description", "")
    return f"add `{name}: ...`" + (f" ({description})" if description else "")

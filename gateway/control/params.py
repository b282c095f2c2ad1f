"""The parameters of a verb, in words for a caller that sent others."""

from typing import Any

from msgspec import inspect

KINDS = {
    inspect.StrType: "text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.DictType: "an object",
    inspect.VarTupleType: "a list",
    inspect.ListType: "a list",
}


def describe_params(params: Any) -> str:
    """Describe the parameters in words: their names, their kinds, and which are optional."""
    found = inspect.type_info(params)
    if not isinstance(found, inspect.StructType):
        return f"it takes {_describe_kind(found)}"
    fields = [
        f"{field.encode_name} ({_describe_kind(field.type)}{'' if field.required else ', may be left out'})"
        for field in found.fields
    ]
    return f"it takes {', '.join(fields)}" if fields else "it takes no parameters"


def _describe_kind(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_describe_kind(one) for one in kind.types)
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(str(value) for value in kind.values)
    if isinstance(kind, inspect.VarTupleType):
        return f"a list, each {_describe_kind(kind.item_type)}"
    return KINDS.get(type(kind), "anything")

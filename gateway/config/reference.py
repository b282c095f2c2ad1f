"""The settings as others need them: a JSON schema for editors, the reference for readers, and the values in force."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import NODEFAULT, Struct, inspect

from gateway.config.agents import Model
from gateway.config.names import ALLOW_ALL, hermes_names, own_names
from gateway.config.secret import Secret
from gateway.config.settings import Hooks, HookSettings, Ids, Settings
from gateway.yaml_source.descriptions import format_value
from gateway.yaml_source.units import DURATION_PATTERN, SIZE_PATTERN, format_duration, format_size

TEMPLATE = "NAME"  # stands for the names that people choose


class Row(NamedTuple):
    """One setting: its whole name, what it can be, what it is by default, what it does, which variables mean it."""

    name: str
    kind: str
    default: str
    does: str
    variables: tuple[str, ...]


def rows() -> Iterator[Row]:
    """Every setting, in the order of the file."""
    variables: dict[str, list[str]] = {}
    for name in (*hermes_names(), *own_names()):
        variables.setdefault(".".join(name.path), []).append(name.variable)
    variables["access.everybody"] += ALLOW_ALL
    for row in _rows(_struct(Settings), "", ""):
        yield row._replace(variables=tuple(variables.get(row.name, ())))


def _rows(struct: inspect.StructType, prefix: str, about: str) -> Iterator[Row]:
    for field in struct.fields:
        name, bare = f"{prefix}{field.encode_name}", _bare(field.type)
        does = f"{about}{_does(field.type)}"
        if isinstance(bare, inspect.StructType):
            yield from _rows(bare, f"{name}.", f"{does}: " if does and bare.cls is Ids else "")
            continue
        yield Row(name, _kind(field.type), _default(field), does, ())
        inner = _bare(getattr(bare, "value_type", None) or getattr(bare, "item_type", None) or inspect.AnyType())
        if isinstance(inner, inspect.StructType) and inner.cls is not Model:  # whose settings stand under `model`
            yield from _rows(inner, f"{name}.{TEMPLATE}." if isinstance(bare, inspect.DictType) else f"{name}[].", "")


def json_schema() -> dict[str, Any]:
    """The schema of `config.yaml`, for editors that complete and check while one types."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "hermes-gateway"}
    return schema | _schema(_struct(Settings), None)


def values(settings: Struct) -> dict[str, Any]:
    """The settings as the file would write them; secrets are not shown, and left out where there are none."""
    struct = _struct(type(settings))
    return {
        field.encode_name: _written(value, field.type)
        for field in struct.fields
        if (value := getattr(settings, field.name)) != Secret() and value is not None
    }


def _written(value: Any, kind: inspect.Type) -> Any:
    unit = _unit(kind)
    match value:
        case Struct():
            return values(value)
        case Secret():
            return str(value)
        case float() if unit == "duration":
            return format_duration(value)
        case int() if unit == "size":
            return format_size(value)
        case dict():
            return {key: _written(below, inspect.AnyType()) for key, below in value.items()}
        case tuple() | list():
            return [_written(below, inspect.AnyType()) for below in value]
        case _:
            return value


def _struct(struct: type[Struct]) -> inspect.StructType:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return described


def _bare(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _optional(kind: inspect.Type) -> inspect.Type:
    """What is left of `X | None`; the file says None by saying nothing."""
    bare = _bare(kind)
    if isinstance(bare, inspect.UnionType) and bare.includes_none:
        kept = [one for one in bare.types if not isinstance(one, inspect.NoneType)]
        return kept[0] if len(kept) == 1 else inspect.UnionType(tuple(kept))
    return kind


def _unit(kind: inspect.Type) -> str | None:
    return (kind.extra or {}).get("unit") if isinstance(kind, inspect.Metadata) else None


def _does(kind: inspect.Type) -> str:
    return str((kind.extra_json_schema or {}).get("description", "")) if isinstance(kind, inspect.Metadata) else ""


def _default(field: inspect.Field) -> str:
    default = (
        field.default_factory()
        if field.default is NODEFAULT and field.default_factory is not NODEFAULT
        else field.default
    )
    if default is NODEFAULT:
        return "must be given"
    if default is None or default in ("", (), {}) or isinstance(default, Secret):
        return ""
    unit = _unit(field.type)
    if unit or (isinstance(default, int | float) and not isinstance(default, bool)):
        return format_value(default, unit)
    if isinstance(default, bool):
        return str(default).lower()
    return f"[{', '.join(map(str, default))}]" if isinstance(default, tuple) else str(default)


def _kind(kind: inspect.Type) -> str:
    """In words."""
    if unit := _unit(kind):
        return unit
    match _bare(_optional(kind)):
        case inspect.LiteralType(values=choices):
            return " | ".join(f"`{choice}`" for choice in sorted(choices, key=str))
        case inspect.BoolType():
            return "`true` | `false`"
        case inspect.IntType():
            return "whole number"
        case inspect.FloatType():
            return "number"
        case inspect.CustomType():
            return "secret"
        case inspect.VarTupleType(item_type=item):
            return f"list of {_plural(item)}"
        case inspect.DictType(value_type=value):
            return "mapping" if isinstance(value, inspect.AnyType) else f"mapping of names to {_plural(value)}"
        case _:
            return "text"


def _plural(kind: inspect.Type) -> str:
    match _bare(kind):
        case inspect.StructType(cls=cls):
            return "sections like `model`" if cls is Model else "sections"
        case inspect.CustomType():
            return "secrets"
        case inspect.LiteralType():
            return _kind(kind)
        case _:
            return "texts"


def _schema(kind: inspect.Type, unit: str | None) -> dict[str, Any]:
    if isinstance(kind, inspect.Metadata):
        described = {"description": _does(kind)} if _does(kind) else {}
        return described | _schema(kind.type, _unit(kind) or unit)
    match kind:
        case inspect.StructType():
            return _object(kind)
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, None)}
        case inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _schema(item, None)}
        case inspect.UnionType(types=types):
            return {"anyOf": [_schema(one, unit) for one in types]}
        case inspect.LiteralType(values=choices):
            return {"enum": sorted(choices, key=str)}
        case inspect.NoneType():
            return {"type": "null"}
        case inspect.AnyType():
            return {}
        case _:
            return _scalar_schema(kind, unit)


def _object(struct: inspect.StructType) -> dict[str, Any]:
    further: Any = _schema(_struct(HookSettings), None) if struct.cls is Hooks else False
    schema: dict[str, Any] = {
        "type": "object",
        "description": (struct.cls.__doc__ or "").strip().split("\n")[0],
        "properties": {field.encode_name: _property(field) for field in struct.fields},
        "additionalProperties": further,
    }
    required = [field.encode_name for field in struct.fields if field.required]
    return schema | ({"required": required} if required else {})


def _property(field: inspect.Field) -> dict[str, Any]:
    schema = _schema(field.type, None)
    has_default = _default(field) and not field.required and not isinstance(_bare(field.type), inspect.StructType)
    return schema | ({"default": _written(field.default, field.type)} if has_default else {})


def _scalar_schema(kind: inspect.Type, unit: str | None) -> dict[str, Any]:
    if unit:
        pattern = DURATION_PATTERN if unit == "duration" else SIZE_PATTERN
        return {"type": ["string", "number"], "pattern": pattern}
    match kind:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType(ge=low, le=high):
            return {"type": "integer", **_bounds(low, high)}
        case inspect.FloatType(ge=low, le=high):
            return {"type": "number", **_bounds(low, high)}
        case inspect.StrType(pattern=str(pattern)):
            return {"type": "string", "pattern": pattern}
        case _:
            return {"type": ["string", "number"] if isinstance(kind, inspect.StrType) else "string"}


def _bounds(low: float | None, high: float | None) -> dict[str, float]:
    return {name: bound for name, bound in (("minimum", low), ("maximum", high)) if bound is not None}

"""The same types as a JSON schema, for editors that complete and check while you type.

It accepts the files that `bind` accepts, read as YAML 1.2, and refuses values of a wrong type. Checks between fields
are in the types' own code, and are not part of it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import NODEFAULT, Struct, inspect

from gateway.yaml_source.binder import describe_shape
from gateway.yaml_source.tree import FALSE_WORDS, TRUE_WORDS
from gateway.yaml_source.units import DURATION_PATTERN, SIZE_PATTERN, format_duration, format_size

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
BOOLEANS = {cased for word in TRUE_WORDS | FALSE_WORDS for cased in (word, word.capitalize(), word.upper())}
BOOLEAN_PATTERN = f"^({'|'.join(sorted(BOOLEANS))})$"  # YAML 1.2 knows true and false alone
TEXT_KINDS = ["string", "number"]  # `version: 1.0` is text here, and a number to others

Further = Mapping[type[Struct], type[Struct]]
"""The types of entries under free names beside the fields of a type."""


def build_json_schema(wanted: type[Struct], title: str, further: Further | None = None) -> dict[str, Any]:
    """Build the schema of a file that holds one value of this type."""
    return {"$schema": DIALECT, "title": title} | _schema_of_struct(describe_shape(wanted), further or {})


def unit_of(kind: inspect.Type) -> str | None:
    return (kind.extra or {}).get("unit") if isinstance(kind, inspect.Metadata) else None


def text_of(kind: inspect.Type) -> str:
    return str((kind.extra_json_schema or {}).get("description", "")) if isinstance(kind, inspect.Metadata) else ""


def initial_value_of(field: inspect.Field) -> Any:
    """Return the default of a field; `NODEFAULT` if it is required."""
    made = field.default is NODEFAULT and field.default_factory is not NODEFAULT
    return field.default_factory() if made else field.default


def _schema_of(kind: inspect.Type, unit: str | None, further: Further) -> dict[str, Any]:
    match kind:
        case inspect.Metadata(type=inner, extra=extra):
            described = {"description": text} if (text := text_of(kind)) else {}
            schema = _schema_of(inner, unit_of(kind) or unit, further)
            if (extra or {}).get("one_or_more"):
                schema = {"anyOf": [{**schema, "type": "array"}, schema["items"]]}
            return described | schema
        case inspect.StructType():
            return _schema_of_struct(kind, further)
        case inspect.DictType(value_type=value):
            return {"type": ["object", "null"], "additionalProperties": _schema_of(value, None, further)}
        case inspect.VarTupleType(item_type=item):
            return {"type": ["array", "null"], "items": _schema_of(item, None, further)}
        case inspect.UnionType(types=types):
            return {"anyOf": [_schema_of(one, unit, further) for one in types]}
        case inspect.LiteralType(values=choices):
            return {"enum": sorted(choices, key=str)}
        case inspect.NoneType():
            return {"type": "null"}
        case inspect.AnyType():
            return {}
        case _:
            return _schema_of_scalar(kind, unit)


def _schema_of_struct(struct: inspect.StructType, further: Further) -> dict[str, Any]:
    others = further.get(struct.cls)
    required = [field.encode_name for field in struct.fields if field.required]
    schema: dict[str, Any] = {
        "type": "object" if required else ["object", "null"],
        "description": (struct.cls.__doc__ or "").strip().split("\n")[0],
        "properties": {field.encode_name: _schema_of_field(field, further) for field in struct.fields},
        "additionalProperties": _schema_of(inspect.type_info(others), None, further) if others else False,
    }
    return schema | ({"required": required} if required else {})


def _schema_of_field(field: inspect.Field, further: Further) -> dict[str, Any]:
    schema, default = _schema_of(field.type, None, further), initial_value_of(field)
    match default:
        case "" | ():
            return schema
        case int() | float() if unit := unit_of(field.type):
            return schema | {"default": format_duration(default) if unit == "duration" else format_size(int(default))}
        case str() | int() | float():
            return schema | {"default": default}
        case tuple():
            return schema | {"default": list(default)}
        case _:
            return schema


def _schema_of_scalar(kind: inspect.Type, unit: str | None) -> dict[str, Any]:
    bounds = {word: bound for name, word in BOUNDS.items() if (bound := getattr(kind, name, None)) is not None}
    match kind:
        case _ if unit:
            pattern = DURATION_PATTERN if unit == "duration" else SIZE_PATTERN
            return {"type": TEXT_KINDS, "pattern": pattern, **bounds}
        case inspect.BoolType():
            return {"type": ["boolean", "string"], "pattern": BOOLEAN_PATTERN}
        case inspect.IntType():
            return {"type": "integer", **bounds}
        case inspect.FloatType():
            return {"type": "number", **bounds}
        case inspect.StrType(pattern=pattern, max_length=longest):
            length = {} if longest is None else {"maxLength": longest}
            return {"type": "string", "pattern": pattern, **length} if pattern else {"type": TEXT_KINDS, **length}
        case _:
            return {"type": "string"}
